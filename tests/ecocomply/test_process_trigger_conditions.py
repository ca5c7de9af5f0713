"""An event that an application sends: stored once, and the conditions that listen to it looked at."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from include.ecocomply import process_trigger_conditions as job
from include.errors import BadInput
from include.job import NothingOutside, perform
from include.run import EngineDatabase, Run
from tests.ecocomply.rows import AS_OF, TODAY, Rows
from tests.ecocomply.test_execute_pending_recurrence_triggers import event, executions, obligation, rule

NONE = dict.fromkeys(("event_type", "event_data", "company_id", "event_id"))
TOO_MUCH = {"condition": "volume > threshold", "threshold_value": 1000, "delay_days": 5}
ROW = UUID("0190f3c2-0000-7000-8000-000000000001")


@pytest.fixture
def rows(database_of: Callable[..., EngineDatabase]) -> Rows:
    """Make a company with one site."""
    return Rows(database_of("ecocomply"))


def happen(rows: Rows, run_id: str = "manual", **params: Any) -> Run:
    """Run the job with what an application or a person gave it."""
    run = rows.run(AS_OF, job.NAME, **(NONE | params))
    run.run_id = run_id
    perform(job, run, NothingOutside())
    return run


@pytest.mark.parametrize(
    ("run_id", "given", "expected"),
    [
        (f"job__{ROW}", None, ROW),
        (f"job__{ROW}__2", None, ROW),
        (f"job__{ROW}", "0190f3c2-0000-7000-8000-00000000000f", None),
        ("manual__2026-11-25T09:00:00+00:00", None, None),
    ],
)
def test_the_event_is_stored_once(rows: Rows, run_id: str, given: str | None, expected: UUID | None) -> None:
    """By the application's id, else the job row's, else the run's: a run that is tried again adds none."""
    target = obligation(rows)
    rule(rows, "CONDITIONAL", TOO_MUCH, target, trigger_expression="volume_exceeded")
    params = {
        "event_type": "volume_exceeded",
        "event_data": {"volume": 1001},
        "company_id": str(rows.company),
    }
    first = happen(rows, run_id, event_id=given, **params)
    again = happen(rows, run_id, event_id=given, **params)
    (stored,) = rows.all("recurrence_events")
    if given or expected:
        assert stored.id == (UUID(given) if given else expected)
    assert (stored.event_type, stored.event_data, stored.occurred_at) == (
        "volume_exceeded",
        {"volume": 1001},
        AS_OF,
    )
    (deadline,) = rows.all("deadlines")
    assert (deadline.obligation_id, deadline.due_date) == (target, TODAY + timedelta(days=5))
    assert [(run.counts["events"], run.counts["succeeded"]) for run in (first, again)] == [(1, 1), (0, 0)]
    (execution,) = rows.all("recurrence_trigger_executions")
    assert (execution.event_id, execution.deadline_id) == (stored.id, deadline.id)


def test_only_conditions_of_the_company_that_listen(rows: Rows) -> None:
    """Another company's, another event's, an inactive rule and one without a condition are none of this job's."""
    company = rows.add("companies", name="Other")
    rule(rows, "CONDITIONAL", TOO_MUCH, None, trigger_expression="A", company_id=company)
    rule(rows, "CONDITIONAL", TOO_MUCH, obligation(rows), trigger_expression="AB")
    rule(rows, "CONDITIONAL", TOO_MUCH, obligation(rows), trigger_expression="A", is_active=False)
    rule(rows, "EVENT_BASED", {}, obligation(rows), trigger_expression="A")
    happen(rows, event_type="A", event_data={"volume": 2000}, company_id=str(rows.company))
    assert not rows.all("recurrence_trigger_executions")


def test_only_its_own_event(rows: Rows) -> None:
    """Others that wait are left to the hourly job: this one answers within its minute."""
    rule(rows, "CONDITIONAL", TOO_MUCH, obligation(rows), trigger_expression="A")
    event(rows, "A", {"volume": 2000})
    happen(rows, event_type="A", event_data={"volume": 1}, company_id=str(rows.company))
    assert executions(rows) == [("SKIPPED", "its condition is not met")]


@pytest.mark.parametrize(("named", "looked_at"), [("event", 1), ("company", 2), ("nothing", 3)])
def test_without_an_event_it_looks_at_what_waits(rows: Rows, named: str, looked_at: int) -> None:
    """As ruled, null means all rows that wait; an id or a company narrows that."""
    company = rows.add("companies", name="Other")
    for owner in (rows.company, company):
        rule(rows, "CONDITIONAL", TOO_MUCH, None, trigger_expression="A", company_id=owner)
    one, _ = (event(rows, "A", {"volume": 1}) for _ in range(2))
    event(rows, "A", {"volume": 1}, company_id=company)
    params = {"event": {"event_id": str(one)}, "company": {"company_id": str(rows.company)}, "nothing": {}}
    assert happen(rows, **params[named]).counts["processed"] == looked_at


@pytest.mark.parametrize("case", ["no company", "unknown company", "stranger's event", "data alone"])
def test_what_is_refused(rows: Rows, case: str) -> None:
    """An event of no company, or of another one than its id says, is a permanent error; nothing is stored."""
    company = rows.add("companies", name="Other")
    theirs = event(rows, "A", company_id=company)
    params: dict[str, Any] = {
        "no company": {"event_type": "A"},
        "unknown company": {"event_type": "A", "company_id": str(uuid4())},
        "stranger's event": {"event_type": "A", "company_id": str(rows.company), "event_id": str(theirs)},
        "data alone": {"event_data": {"volume": 1}},
    }
    with pytest.raises(BadInput):
        happen(rows, **params[case])
    assert len(rows.all("recurrence_events")) == 1
