"""Days and hours made up for over the API, and made up for again."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from include.as_of import local_date
from include.clearpath import ZONE
from tests.clearpath import world
from tests.dags import states
from tests.live.conftest import FirstDay
from tests.live.desk import Desk, Run, mails, until
from tests.live.rows import add_session, put_off_mails, queue_mails, statuses

EXPIRY = "clearpath_session_expiry"
DISPATCH = "clearpath_email_queue_dispatch"
GRACE = 90


@pytest.fixture(scope="module")
def slots(desk: Desk, first_day: FirstDay) -> dict[str, list[datetime]]:
    """Return the slots to make up for, before any that a run has taken: three days, and three hours of quarters."""
    now = datetime.now(UTC)
    quarter = now.replace(minute=now.minute // 15 * 15, second=0, microsecond=0) - timedelta(hours=1)
    return {
        EXPIRY: _planned(desk, EXPIRY, now - timedelta(days=5), now - timedelta(days=2)),
        DISPATCH: _planned(desk, DISPATCH, quarter - timedelta(hours=3), quarter - timedelta(minutes=15)),
    }


def _body(dag_id: str, start: datetime, end: datetime, behaviour: str = "none") -> dict[str, Any]:
    return {
        "dag_id": dag_id,
        "from_date": start.isoformat(),
        "to_date": end.isoformat(),
        "reprocess_behavior": behaviour,
    }


def _planned(desk: Desk, dag_id: str, start: datetime, end: datetime) -> list[datetime]:
    answer = desk.admin.call("POST", "/api/v2/backfills/dry_run", json=_body(dag_id, start, end))
    assert answer.is_success, answer.text
    return sorted(datetime.fromisoformat(slot["logical_date"]) for slot in answer.json()["backfills"])


def backfill(desk: Desk, slots: dict[str, list[datetime]], behaviour: str) -> dict[Run, datetime]:
    """Make up for the slots of both DAGs, ten runs of each at a time as the form has it; return run → slot."""
    asked = [
        desk.admin.call("POST", "/api/v2/backfills", json=_body(dag_id, times[0], times[-1], behaviour))
        for dag_id, times in slots.items()
    ]
    assert all(answer.is_success for answer in asked), [answer.text for answer in asked]
    made = [answer.json()["id"] for answer in asked]

    def over() -> bool:
        found = [desk.admin.call("GET", f"/api/v2/backfills/{one}").json() for one in made]
        return all(one["completed_at"] for one in found)

    until("the backfills' ends", over, within=400, every=0.5)
    with desk.stack.database("airflow").connect() as connection:
        rows = connection.execute(
            text(
                "SELECT d.dag_id, d.run_id, d.logical_date, d.state, (SELECT max(t.try_number) FROM task_instance t"
                " WHERE t.dag_id = d.dag_id AND t.run_id = d.run_id) AS attempts FROM dag_run d "
                "JOIN backfill_dag_run b ON b.dag_run_id = d.id WHERE b.backfill_id = ANY (:ids)"
            ),
            {"ids": made},
        ).all()
    assert {row.state for row in rows} == {"success"}
    # No run waited for another one at the cost of an attempt.
    assert {row.attempts for row in rows} == {1 if behaviour == "none" else 2}
    return {Run(row.dag_id, row.run_id): row.logical_date for row in rows}


@pytest.fixture(scope="module")
def made_up(desk: Desk, slots: dict[str, list[datetime]]) -> dict[str, Any]:
    """Make up for days and hours twice, the second time with the reprocessing of completed runs."""
    clearpath = desk.stack.database("clearpath")
    desk.idle(EXPIRY, DISPATCH)
    with clearpath.begin() as connection:
        # A session falls due on the last of the three days; its grace period is over the day before.
        last_day = local_date(slots[EXPIRY][-1], ZONE)
        session = add_session(
            connection, "active", 0, expected_completion_date=last_day - timedelta(days=GRACE + 1)
        )
    people = queue_mails(clearpath, people=4)
    put_off_mails(clearpath)
    first = backfill(desk, slots, "none")
    expired = {
        local_date(slot, ZONE): desk.summary(run)["counts"].get("expired", 0)
        for run, slot in first.items()
        if run.dag_id == EXPIRY
    }
    put_off_mails(clearpath)
    mailed, rows = _mailed(desk, people), states.rows(clearpath)
    started = datetime.now(UTC)
    second = backfill(desk, slots, "completed")
    return {
        "session": session["id"],
        "last day": last_day,
        "expired": expired,
        "people": people,
        "first": first,
        "second": second,
        "mailed": (mailed, _mailed(desk, people)),
        "rows": (rows, states.rows(clearpath)),
        "started": started,
    }


def _mailed(desk: Desk, people: list[str]) -> Counter[str]:
    return Counter(str(mail["To"]) for mail in mails(desk.stack.home.outbox) if str(mail["To"]) in people)


def test_the_slots_are_those_of_the_schedule(slots: dict[str, list[datetime]]) -> None:
    """A backfill of three days is three runs, at 02:00 in Edmonton; three hours are twelve quarters."""
    assert len(slots[EXPIRY]) == 3
    assert len(slots[DISPATCH]) == 12
    assert {slot.astimezone(ZONE).hour for slot in slots[EXPIRY]} == {2}


def test_each_run_decides_by_its_own_date(desk: Desk, slots: dict[str, list[datetime]], made_up: Any) -> None:
    """T2, T4: the summaries' as-of are the slots, the first time and the second."""
    for runs in (made_up["first"], made_up["second"]):
        for dag_id, times in slots.items():
            assert sorted(slot for run, slot in runs.items() if run.dag_id == dag_id) == times
        for run, slot in runs.items():
            summary = desk.summary(run)
            assert summary["as_of"] == slot
            assert not summary["preview"]


def test_the_day_decides(made_up: Any) -> None:
    """Ruling 1: a session expires in the run of the day on which it is due, not in an earlier one, nor later."""
    assert made_up["expired"][made_up["last day"]] == 1
    assert sum(made_up["expired"].values()) == 1
    assert made_up["rows"][0]["test_sessions"][str(made_up["session"])]["status"] == "expired"


def test_no_second_message(desk: Desk, made_up: Any) -> None:
    """T3: reprocessing completed runs sends nothing again; there is one file per message."""
    first, second = made_up["mailed"]
    assert first == dict.fromkeys(made_up["people"], 1)
    assert second == first
    for address in made_up["people"]:
        assert statuses(desk.stack.database("clearpath"), address) == ["sent"]


def test_nothing_changed_the_second_time(made_up: Any) -> None:
    """Ruling 2: the same runs over the same days leave every row as it was, bookkeeping apart."""
    known = states.known_uuids(made_up["rows"][0])
    before, after = made_up["rows"]
    assert before.keys() == after.keys()
    for table in before.keys() - {"jobs_state"}:
        ignored = world.BOOKKEEPING.get(table, set())
        plain = [
            {
                key: states.plain_row(row, known, made_up["started"], ignored)
                for key, row in rows[table].items()
            }
            for rows in (before, after)
        ]
        assert plain[0] == plain[1], table
