"""From Airflow's context to a run, and from the run to its summary."""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select, text

from almanac.runs import begin, end, open_run
from include.clearpath import certificate_expiry
from include.clearpath.tables import CERTIFICATES
from include.errors import BadInput, Refused
from include.platform import tables
from tests.almanac.conftest import NOW, Platform, context

NOTHING = certificate_expiry.Outside()
LOGICAL = NOW - timedelta(days=1)
ASKED = "2026-04-01T00:30:00-06:00"

_CERTIFICATE = """
WITH u AS (INSERT INTO users (full_name) VALUES ('Ana') RETURNING id),
s AS (INSERT INTO test_sessions (user_id, status) SELECT id, 'complete' FROM u RETURNING id)
INSERT INTO certificates (test_session_id, status, valid_until) SELECT id, 'valid', :until FROM s
"""


def add_certificate(platform: Platform, until: date) -> None:
    """Insert a valid certificate."""
    with platform.clearpath.transaction() as tx:
        tx.execute(text(_CERTIFICATE), until=until)


def statuses(platform: Platform) -> list[str]:
    """Return the states of all certificates."""
    with platform.clearpath.transaction() as tx:
        return [row.status for row in tx.rows(select(CERTIFICATES.c.status))]


def attempt(
    task: str,
    number: int,
    *,
    counts: dict[str, int] | None = None,
    note: str | None = None,
    state: str = "success",
    error: Exception | None = None,
) -> None:
    """Let one attempt of a task do so much, and end so."""
    with suppress(Refused), open_run(context(task, number), certificate_expiry) as run:
        run.counts.update(counts or {})
        run.state = state
        if note is not None:
            run.note(note)
        if error is not None:
            raise error


@pytest.mark.parametrize(
    ("conf", "more", "as_of", "given"),
    [
        ({"as_of": ASKED}, {"logical_date": LOGICAL}, datetime(2026, 4, 1, 6, 30, tzinfo=UTC), True),
        ({}, {"logical_date": LOGICAL}, LOGICAL, False),
        ({}, {"logical_date": None}, NOW, False),
        ({}, {}, NOW, False),
    ],
)
def test_which_as_of(
    platform: Platform, conf: dict[str, Any], more: dict[str, Any], as_of: datetime, *, given: bool
) -> None:
    """Ruling 1: the param, else the logical date, else run_after, which a manual or an event's run has alone."""
    with open_run(context(conf=conf, **more), certificate_expiry) as run:
        assert run.as_of == as_of
        assert run.as_of_given is given
        assert str(run.zone) == "America/Edmonton"


def test_as_of_and_dry_run_are_no_params_of_the_job(platform: Platform) -> None:
    """A step that reads them would decide by something else than its run."""
    asked = context(conf={"as_of": ASKED, "grace_days": 5})
    with open_run(asked, certificate_expiry) as run:
        assert run.params == {"grace_days": 5}


def test_an_unknown_param_opens_no_run(platform: Platform) -> None:
    """Ruling 10: what comes past the API fails the first task, and a permanent error is not tried again."""
    with pytest.raises(BadInput, match="unknown param 'dryrun'"):
        begin(context(conf={"dryrun": True}), certificate_expiry, NOTHING)
    assert platform.all(tables.RUN_SUMMARY) == []


def test_a_preview_is_all_done_in_the_first_task(platform: Platform) -> None:
    """Ruling 9: it says False, on which Airflow skips the others; nothing has changed, and the result is kept."""
    add_certificate(platform, NOW.date() - timedelta(days=1))
    assert begin(context(conf={"dry_run": True}), certificate_expiry, NOTHING) is False
    assert statuses(platform) == ["valid"]
    (kept,) = platform.all(tables.PREVIEW)
    assert [table["table"] for table in kept.result["tables"]] == ["certificates", "jobs_state"]
    (summary,) = platform.all(tables.RUN_SUMMARY)
    assert (summary.preview, summary.state, summary.counts["expired"]) == (True, "success", 1)
    assert summary.notes == ["preview: nothing was changed"]


def test_a_run_that_is_none(platform: Platform) -> None:
    """Without dry_run the first task only opens the summary, and the others follow."""
    add_certificate(platform, NOW.date() - timedelta(days=1))
    assert begin(context(), certificate_expiry, NOTHING) is True
    assert statuses(platform) == ["valid"]
    (summary,) = platform.all(tables.RUN_SUMMARY)
    assert (summary.preview, summary.state, summary.as_of) == (False, "running", NOW)


def test_the_summary_is_the_sum_of_all_attempts(platform: Platform, caplog: pytest.LogCaptureFixture) -> None:
    """Ruling 8: what a failed attempt did counts; the end is stored, logged as one line, and returned."""
    begin(context(), certificate_expiry, NOTHING)
    attempt("work", 1, counts={"processed": 3, "expired": 2}, note="half-way", error=Refused("lab: no"))
    attempt("work", 2, counts={"processed": 1, "expired": 1, "failed": 1})
    with caplog.at_level(logging.INFO, "almanac"):
        line = end(context("note_run"), certificate_expiry)
    counts = {"processed": 4, "sent": 0, "skipped": 0, "failed": 1, "expired": 3}
    assert {name: line[name] for name in counts} == counts
    assert (line["job"], line["run"], line["as_of"], line["state"]) == (
        "certificateExpiry",
        "run 1",
        NOW.isoformat(),
        "success",
    )
    assert line["durationMs"] >= 0
    (said,) = [record.getMessage() for record in caplog.records if "Job completed" in record.getMessage()]
    assert json.loads(said.removeprefix("Job completed: ")) == line
    (summary,) = platform.all(tables.RUN_SUMMARY)
    assert summary.counts == {"processed": 4, "failed": 1, "expired": 3}
    assert summary.notes == ["half-way"]
    assert summary.ended_at is not None


def test_what_failed_is_logged_with_its_stack(platform: Platform, caplog: pytest.LogCaptureFixture) -> None:
    """Ruling 8: the log has the job, the error and the stack; the step on record has the error in one line."""
    with (
        caplog.at_level(logging.ERROR, "almanac"),
        pytest.raises(Refused),
        open_run(context("work"), certificate_expiry),
    ):
        raise Refused("lab: no\nand more")
    (record,) = caplog.records
    assert record.exc_info is not None
    assert record.getMessage().startswith("Job failed: job=certificateExpiry err=lab: no durationMs=")
    (step,) = platform.all(tables.RUN_STEP)
    assert (step.task_id, step.try_number, step.state, step.error) == ("work", 1, "failed", "lab: no")


@pytest.mark.parametrize(
    ("states", "state"),
    [
        ({"a": ["success"], "b": ["success"]}, "success"),
        ({"a": ["failed", "success"], "b": ["success"]}, "success"),
        ({"a": ["success"], "b": ["deferred"]}, "deferred"),
        ({"a": ["skipped"], "b": ["success"]}, "skipped"),
        ({"a": ["deferred"], "b": ["success", "failed"]}, "failed"),
    ],
)
def test_a_runs_state_is_the_worst_of_last_attempts(
    platform: Platform, states: dict[str, list[str]], state: str
) -> None:
    """An attempt that failed and was made good is history; one task that was put off puts the run off."""
    begin(context(), certificate_expiry, NOTHING)
    for task, attempts in states.items():
        for number, word in enumerate(attempts, 1):
            attempt(task, number, state=word, error=Refused("no") if word == "failed" else None)
    assert end(context("note_run"), certificate_expiry)["state"] == state


def test_a_run_that_is_done_over_begins_anew(platform: Platform) -> None:
    """A cleared run is told of by its latest life: the counts of the earlier one are not added."""
    for _ in range(2):
        begin(context(), certificate_expiry, NOTHING)
        attempt("work", 1, counts={"processed": 5})
        assert end(context("note_run"), certificate_expiry)["processed"] == 5


@pytest.mark.parametrize("date", [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, tzinfo=UTC)])
def test_a_date_that_no_run_can_decide_by(platform: Platform, date: datetime) -> None:
    """What comes past the API is a permanent error that names the date, not an overflow that is tried again."""
    with pytest.raises(BadInput, match=r"logical_date: .* is not between"):
        begin(context(logical_date=date), certificate_expiry, NOTHING)
    assert platform.all(tables.RUN_SUMMARY) == []
