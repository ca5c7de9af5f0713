"""Rules by the calendar and by events: which dates, which events, what they make, and once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from include.ecocomply import execute_pending_recurrence_triggers as job
from include.ecocomply import triggers
from include.ecocomply.tables.base import FREQUENCIES
from include.ecocomply.tables.obligations import DEADLINE_STATUSES, SCHEDULE_STATUSES
from include.ecocomply.tables.triggers import EXECUTION_RESULTS, TARGET_TYPES, TRIGGER_TYPES
from include.job import NothingOutside
from include.run import EngineDatabase, Run
from include.statements import statement
from tests.ecocomply.rows import AS_OF, TODAY, Rows

DAY = timedelta(days=1)
UNMET = "its condition is not met"
NO_DAYS = "is no number of days up to 3,660"
NOT_THEIRS = "its obligation is none of the company's"
DULL = "the obligation is not applicable"
RECURSION = "Expression recursion limit exceeded. limit: 32"
TYPES = "No matching overloads found : _>_(string, int64)"
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
def rows(database_of: Callable[..., EngineDatabase]) -> Rows:
    """Make a company with one site."""
    return Rows(database_of("ecocomply"))


def obligation(rows: Rows, **values: Any) -> UUID:
    """Add an obligation of the company."""
    return rows.add(
        "obligations", **({"company_id": rows.company, "site_id": rows.site, "summary": "Sample"} | values)
    )


def rule(rows: Rows, kind: str, config: Any, target: UUID | None, **values: Any) -> UUID:
    """Add a rule that makes deadlines of an obligation."""
    given = {
        "company_id": rows.company, "rule_name": "Mine", "trigger_type": kind, "rule_config": config,
        "target_entity_type": "DEADLINE", "created_at": LONG_AGO,
        "template_data": {} if target is None else {"obligation_id": str(target)},
    }  # fmt: skip
    return rows.add("recurrence_trigger_rules", **(given | values))


def event(rows: Rows, kind: str, data: Any = None, **values: Any) -> UUID:
    """Add an event of the company that happened yesterday."""
    given = {
        "company_id": rows.company, "event_type": kind, "event_data": data or {}, "occurred_at": AS_OF - DAY,
    }  # fmt: skip
    return rows.add("recurrence_events", **(given | values))


def perform(rows: Rows, as_of: datetime = AS_OF, **params: Any) -> Run:
    """Run the job for every company, unless told otherwise."""
    return rows.perform(job, NothingOutside(), as_of, **({"company_id": None, "batch_size": 100} | params))


def days_of(rows: Rows, column: str, table: str = "deadlines") -> list[date]:
    """Return the days of a table's column, in order."""
    return [getattr(row, column) for row in rows.all(table, column)]


def executions(rows: Rows) -> list[tuple[str, str | None]]:
    """Return what came of each firing, and why."""
    return [
        (row.execution_result, row.execution_data.get("reason"))
        for row in rows.all("recurrence_trigger_executions", "period", "created_at")
    ]


@pytest.mark.parametrize(
    ("config", "first", "until", "due", "following"),
    [
        ({"frequency": "DAILY"}, (2026, 11, 23), (2026, 11, 25), [(11, 23), (11, 24), (11, 25)], (2026, 11, 26)),
        ({"frequency": "DAILY"}, (2026, 11, 26), (2026, 11, 25), [], (2026, 11, 26)),
        ({"frequency": "WEEKLY"}, (2026, 11, 11), (2026, 11, 25), [(11, 11), (11, 18), (11, 25)], (2026, 12, 2)),
        ({"frequency": "MONTHLY"}, (2026, 1, 31), (2026, 4, 29), [(1, 31), (2, 28), (3, 31)], (2026, 4, 30)),
        ({"frequency": "MONTHLY"}, (2024, 1, 30), (2024, 3, 1), [(1, 30), (2, 29)], (2024, 3, 30)),
        (
            {"frequency": "MONTHLY", "day_of_month": 31},
            (2026, 2, 28), (2026, 3, 31), [(2, 28), (3, 31)], (2026, 4, 30),
        ),
        ({"frequency": "MONTHLY", "day_of_month": 1}, (2026, 11, 15), (2026, 11, 25), [(12, 1)], (2027, 1, 1)),
        (
            {"frequency": "MONTHLY", "day_of_month": 1, "create_advance_days": 7},
            (2026, 10, 25), (2026, 11, 24), [(11, 1), (12, 1)], (2026, 12, 25),
        ),
        (
            {"frequency": "MONTHLY", "day_of_month": 1, "create_advance_days": 7},
            (2026, 10, 25), (2026, 11, 23), [(11, 1)], (2026, 11, 24),
        ),
        ({"frequency": "QUARTERLY"}, (2025, 11, 30), (2026, 6, 1), [(11, 30), (2, 28), (5, 30)], (2026, 8, 30)),
        ({"frequency": "ANNUAL"}, (2024, 2, 29), (2026, 3, 1), [(2, 29), (2, 28), (2, 28)], (2027, 2, 28)),
        ({"frequency": "ONE_TIME", "create_advance_days": 3}, (2026, 11, 20), (2026, 11, 25), [(11, 23)], None),
    ],
)  # fmt: skip
def test_dates(rows: Rows, config: Any, first: Any, until: Any, due: Any, following: Any) -> None:
    """Every missed date up to the day is made, anchored on the first; the next one is the first to come."""
    key = rule(rows, "SCHEDULED", config, obligation(rows), next_execution_date=date(*first))
    run = perform(rows, datetime(*until, 9, tzinfo=UTC))
    assert [(day.month, day.day) for day in days_of(rows, "due_date")] == due
    (found,) = (row for row in rows.all("recurrence_trigger_rules") if row.id == key)
    assert found.next_execution_date == (None if following is None else date(*following))
    assert found.execution_count == run.counts["deadlines"] == run.counts["scheduled"] == len(due)
    assert found.last_executed_at == (datetime(*until, 9, tzinfo=UTC) if due else None)


def test_the_series_goes_on_as_it_began(rows: Rows) -> None:
    """After a short month the next run still knows the series' day; a date that somebody set begins anew."""
    key = rule(
        rows, "SCHEDULED", {"frequency": "MONTHLY"}, obligation(rows), next_execution_date=date(2026, 1, 31)
    )
    for month, day in ((1, 31), (2, 28), (3, 31)):
        perform(rows, datetime(2026, month, day, tzinfo=UTC))
    assert days_of(rows, "due_date") == [date(2026, 1, 31), date(2026, 2, 28), date(2026, 3, 31)]
    rows.change("recurrence_trigger_rules", key, next_execution_date=date(2026, 4, 10))
    perform(rows, datetime(2026, 5, 31, tzinfo=UTC))
    assert days_of(rows, "due_date")[3:] == [date(2026, 4, 10), date(2026, 5, 10)]


def test_a_long_gap_is_made_up_for_in_one_run(rows: Rows) -> None:
    """However many dates were missed: memory is bounded, the number made is not."""
    missed = 2 * triggers.PERIODS + 5
    rule(
        rows, "SCHEDULED", {"frequency": "DAILY"}, obligation(rows), next_execution_date=TODAY - missed * DAY
    )
    perform(rows)
    assert days_of(rows, "due_date") == [TODAY - n * DAY for n in range(missed, -1, -1)]


@pytest.mark.parametrize(
    ("days", "status"), [(-1, "OVERDUE"), (0, "DUE_SOON"), (3, "DUE_SOON"), (4, "PENDING")]
)
def test_a_deadline(rows: Rows, days: int, status: str) -> None:
    """It has the standing of its day, the period from the day after the last, its schedule and its site."""
    target = obligation(rows)
    schedule = rows.add("schedules", obligation_id=target, frequency="WEEKLY")
    config = {"frequency": "WEEKLY", "create_advance_days": 10}
    rule(rows, "SCHEDULED", config, target, next_execution_date=TODAY + (days - 10) * DAY)
    perform(rows)
    made = rows.all("deadlines", "due_date")[0]
    due = TODAY + days * DAY
    assert (made.due_date, made.status, made.company_id, made.site_id) == (
        due,
        status,
        rows.company,
        rows.site,
    )
    assert (made.compliance_period_start, made.compliance_period_end) == (due - 6 * DAY, due)
    execution = rows.all("recurrence_trigger_executions", "period")[0]
    assert (execution.deadline_id, execution.schedule_id, made.schedule_id) == (made.id, None, schedule)
    assert (execution.execution_result, execution.next_due_date) == ("SUCCESS", due)
    assert (execution.execution_date, execution.period) == (AS_OF, due - 10 * DAY)
    assert execution.execution_data["created_entity_id"] == str(made.id)


def test_a_deadline_that_is_there_stays(rows: Rows) -> None:
    """One deadline an obligation and day: a completed one is named by the execution, and left as it is."""
    target = obligation(rows)
    there = rows.add("deadlines", obligation_id=target, due_date=TODAY, status="COMPLETED")
    rule(rows, "SCHEDULED", {"frequency": "ANNUAL"}, target, next_execution_date=TODAY)
    run = perform(rows)
    (made,) = rows.all("deadlines")
    assert (made.id, made.status, run.counts["deadlines"]) == (there, "COMPLETED", 0)
    assert rows.all("recurrence_trigger_executions")[0].deadline_id == there


def test_the_one_schedule_is_made_then_moved(rows: Rows) -> None:
    """A SCHEDULE target upserts: however often it fires, the obligation has one, whose base keeps the series' day."""
    target = obligation(rows, frequency="MONTHLY")
    config = {"frequency": "MONTHLY", "day_of_month": 31}
    rule(
        rows,
        "SCHEDULED",
        config,
        target,
        next_execution_date=date(2026, 1, 31),
        target_entity_type="SCHEDULE",
    )
    for month, day in ((1, 31), (2, 28)):
        perform(rows, datetime(2026, month, day, tzinfo=UTC))
    (schedule,) = rows.all("schedules")
    assert (schedule.frequency, schedule.next_due_date, schedule.base_date, schedule.status) == (
        "MONTHLY", date(2026, 2, 28), date(2026, 1, 31), "ACTIVE",
    )  # fmt: skip
    assert {(row.schedule_id, row.deadline_id) for row in rows.all("recurrence_trigger_executions")} == {
        (schedule.id, None)
    }


@pytest.mark.parametrize(
    ("config", "expression", "kind", "fires"),
    [
        ({"event_types": ["A", "B"]}, None, "B", True),
        ({"event_types": ["A", "B"]}, None, "C", False),
        ({"event_types": ["A"]}, "C", "C", True),
        ({}, "C", "C", True),
        ({}, "C or D", "C", False),
        ({}, None, "C", False),
    ],
)
def test_which_events_match(
    rows: Rows, config: Any, expression: str | None, kind: str, *, fires: bool
) -> None:
    """As ruled: in event_types, or equal to trigger_expression; not a part of it."""
    rule(rows, "EVENT_BASED", config | {"delay_days": 30}, obligation(rows), trigger_expression=expression)
    key = event(rows, kind)
    perform(rows)
    assert [row.event_id for row in rows.all("recurrence_trigger_executions")] == ([key] if fires else [])
    assert days_of(rows, "due_date") == ([TODAY + 29 * DAY] if fires else [])


@pytest.mark.parametrize(
    ("config", "data", "result", "reason"),
    [
        ({"condition": "v > threshold", "threshold_value": 1000}, {"v": 1000.5}, "SUCCESS", None),
        ({"condition": "v > threshold", "threshold_value": 1000}, {"v": 1000}, "SKIPPED", UNMET),
        ({"condition": "v > threshold", "threshold_value": 9}, {"v": 1, "threshold": 0}, "SKIPPED", UNMET),
        ({"condition": "event.type == 'A' && type_of == 2"}, {"type": "A", "type_of": 2}, "SUCCESS", None),
        ({"condition": "v > 1"}, {}, "FAILED", "~undeclared reference to 'v'"),
        ({"condition": "v > 1"}, {"v": "x"}, "FAILED", f"~{TYPES}"),
        ({"condition": "1 / v == 1"}, {"v": 0}, "FAILED", "~divide by zero"),
        ({"condition": "(" * 400 + "true" + ")" * 400}, {}, "FAILED", f"~{RECURSION}"),
        ({"condition": "x" * 1001}, {}, "FAILED", "~it has more than 1,000 characters"),
        ({}, {}, "FAILED", "~there is no expression"),
        ({"condition": "true", "delay_days": -1}, {}, "FAILED", f"its delay_days {NO_DAYS}"),
        ({"condition": "true", "delay_days": 10**9}, {}, "FAILED", f"its delay_days {NO_DAYS}"),
    ],
)  # fmt: skip
def test_a_condition(rows: Rows, config: Any, data: Any, result: str, reason: str | None) -> None:
    """Over the event's fields and the rule's threshold; what can't be evaluated is FAILED with the reason, once."""
    rule(rows, "CONDITIONAL", config, obligation(rows), trigger_expression="A")
    event(rows, "A", data)
    run = perform(rows)
    said = None if reason is None else reason.replace("~", "its condition could not be evaluated: ")
    assert executions(rows) == [(result, said)]
    assert len(rows.all("deadlines")) == (result == "SUCCESS")
    assert run.counts["failed"] == (result == "FAILED")
    before = rows.all("recurrence_trigger_executions"), rows.all("recurrence_trigger_rules")
    assert perform(rows, AS_OF + DAY).counts["processed"] == 0
    assert (rows.all("recurrence_trigger_executions"), rows.all("recurrence_trigger_rules")) == before


def unfired(rows: Rows) -> int:
    """Return how many events a run would look at."""
    binds = {"as_of": AS_OF, "types": [triggers.EVENT_BASED], "after": None, "limit": 10}
    with rows.run().transaction() as tx:
        found = tx.rows(
            statement("include.ecocomply", "events_unfired"), company_id=None, event_id=None, **binds
        )
        return len(found)


def test_once_by_rule_and_event(rows: Rows) -> None:
    """Two rules fire by one event, each once; an event that came late, after others, is not lost."""
    for _ in range(2):
        rule(rows, "EVENT_BASED", {}, obligation(rows), trigger_expression="A")
    event(rows, "A")
    perform(rows)
    # What was recorded would stop it too, but not keep a year's events from being read in each run.
    assert unfired(rows) == 0
    perform(rows)
    event(rows, "A", occurred_at=AS_OF - 5 * DAY)
    perform(rows)
    assert [row.execution_count for row in rows.all("recurrence_trigger_rules")] == [2, 2]
    assert len(rows.all("recurrence_trigger_executions")) == 4


def test_events_that_are_none_of_a_rules(rows: Rows) -> None:
    """To come, of another company, or from before the rule: none of them fires it."""
    company = rows.add("companies", name="Other")
    rule(rows, "EVENT_BASED", {}, obligation(rows), trigger_expression="A", created_at=AS_OF - 2 * DAY)
    rule(rows, "EVENT_BASED", {}, obligation(rows), trigger_expression="A", is_active=False)
    event(rows, "A", company_id=company)
    event(rows, "A", occurred_at=AS_OF + timedelta(seconds=1))
    event(rows, "A", occurred_at=AS_OF - 3 * DAY)
    assert unfired(rows) == 0
    perform(rows)
    assert not rows.all("recurrence_trigger_executions")


def test_events_of_before_the_adoption_are_history(rows: Rows) -> None:
    """The first run on a database in use makes no deadlines of what its application has long dealt with."""
    rule(rows, "EVENT_BASED", {}, obligation(rows), trigger_expression="A")
    event(rows, "A", created_at=AS_OF - 3 * DAY, occurred_at=AS_OF - 3 * DAY)
    new = event(rows, "A", created_at=AS_OF - DAY)
    rows.run_sql("INSERT INTO baseline (name, at) VALUES ('adoption', :at)", at=AS_OF - 2 * DAY)
    perform(rows)
    assert [row.event_id for row in rows.all("recurrence_trigger_executions")] == [new]


@pytest.mark.parametrize(
    ("config", "values", "result", "reason"),
    [
        ({"frequency": "HOURLY"}, {}, "FAILED", "its frequency is none that is known"),
        ({"frequency": ["DAILY"]}, {}, "FAILED", "its frequency is none that is known"),
        ({"frequency": "MONTHLY", "day_of_month": 32}, {}, "FAILED", "its day_of_month is no day"),
        ({"frequency": "DAILY", "create_advance_days": "7"}, {}, "FAILED", f"its create_advance_days {NO_DAYS}"),
        (["DAILY"], {}, "FAILED", "its config and template are no objects"),
        ({"frequency": "DAILY"}, {"template_data": {"obligation_id": "x"}}, "FAILED", NOT_THEIRS),
        ({"frequency": "DAILY"}, {"template_data": {}}, "SKIPPED", "its template has no obligation_id"),
        ({"frequency": "DAILY"}, {"obligation": {"status": "NOT_APPLICABLE"}}, "SKIPPED", DULL),
        ({"frequency": "DAILY"}, {"obligation": {"deleted_at": AS_OF}}, "SKIPPED", DULL),
    ],
)  # fmt: skip
def test_what_makes_nothing(
    rows: Rows, config: Any, values: dict[str, Any], result: str, reason: str
) -> None:
    """A wrong rule is FAILED and waits at its date until it is mended; one without a target is SKIPPED and goes on."""
    own = {key: value for key, value in values.items() if key != "obligation"}
    target = obligation(rows, **values.get("obligation", {}))
    key = rule(rows, "SCHEDULED", config, target, next_execution_date=TODAY, **own)
    other = rule(rows, "SCHEDULED", {"frequency": "DAILY"}, obligation(rows), next_execution_date=TODAY)
    perform(rows)
    perform(rows)
    assert sorted(executions(rows), key=str) == sorted([(result, reason), ("SUCCESS", None)], key=str)
    assert len(rows.all("deadlines")) == 1
    following = {row.id: row.next_execution_date for row in rows.all("recurrence_trigger_rules")}
    assert following == {key: TODAY if result == "FAILED" else TODAY + DAY, other: TODAY + DAY}
    if result == "FAILED":
        rows.change(
            "recurrence_trigger_rules", key,
            rule_config={"frequency": "DAILY"}, template_data={"obligation_id": str(target)},
        )  # fmt: skip
        perform(rows, AS_OF + DAY)
        assert {one for one, _ in executions(rows)} == {"SUCCESS"}
        assert [row.due_date for row in rows.all("deadlines", "due_date") if row.obligation_id == target] == [
            TODAY, TODAY + DAY,
        ]  # fmt: skip


def test_another_companys_obligation(rows: Rows) -> None:
    """Companies are matched everywhere: a rule that names a stranger's obligation makes nothing."""
    company = rows.add("companies", name="Other")
    site = rows.add("sites", company_id=company, name="Theirs")
    theirs = obligation(rows, company_id=company, site_id=site)
    rule(rows, "SCHEDULED", {"frequency": "DAILY"}, theirs, next_execution_date=TODAY)
    rule(rows, "EVENT_BASED", {}, theirs, trigger_expression="A", target_entity_type="SCHEDULE")
    event(rows, "A")
    perform(rows)
    assert {one for one, _ in executions(rows)} == {"FAILED"}
    assert not rows.all("deadlines")
    assert not rows.all("schedules")


def test_what_the_database_refuses_is_tried_again(rows: Rows) -> None:
    """It is FAILED and stands alone; when it can be made, the next run makes it."""
    first, second = obligation(rows), obligation(rows)
    for target in (first, second):
        rule(rows, "EVENT_BASED", {}, target, trigger_expression="A")
    event(rows, "A")
    rows.run_sql(f"ALTER TABLE deadlines ADD CONSTRAINT refused CHECK (obligation_id <> '{first}')")
    run = perform(rows)
    assert sorted(executions(rows), key=str) == [
        ("FAILED", "the database refused what it makes"), ("SUCCESS", None),
    ]  # fmt: skip
    assert run.counts["failed"] == 1
    rows.run_sql("ALTER TABLE deadlines DROP CONSTRAINT refused")
    perform(rows)
    assert executions(rows) == [("SUCCESS", None)] * 2
    assert len(rows.all("deadlines")) == 2


def test_json_that_nobody_can_read_is_its_rules_fault(rows: Rows) -> None:
    """A number of thousands of digits, which JSON allows, stops no other rule."""
    key = rule(rows, "SCHEDULED", {}, obligation(rows), next_execution_date=TODAY)
    rows.run_sql(
        f"UPDATE recurrence_trigger_rules SET rule_config = '{{\"day\": {'9' * 5000}}}' WHERE id = :id",
        id=key,
    )
    rule(rows, "SCHEDULED", {"frequency": "DAILY"}, obligation(rows), next_execution_date=TODAY)
    perform(rows)
    assert set(executions(rows)) == {("FAILED", "its JSON can't be read"), ("SUCCESS", None)}


def test_a_company_narrows_it_and_a_batch_is_no_cap(rows: Rows) -> None:
    """All due rules of the company fire in chunks; another company's wait."""
    company = rows.add("companies", name="Other")
    for _ in range(5):
        rule(rows, "SCHEDULED", {"frequency": "ANNUAL"}, obligation(rows), next_execution_date=TODAY)
        event(rows, "A")
    rule(rows, "EVENT_BASED", {}, obligation(rows), trigger_expression="A")
    theirs = rule(
        rows, "SCHEDULED", {"frequency": "ANNUAL"}, None, next_execution_date=TODAY, company_id=company
    )
    run = perform(rows, company_id=str(rows.company), batch_size=2)
    assert (run.counts["scheduled"], run.counts["event_based"], run.counts["succeeded"]) == (5, 5, 10)
    (found,) = (row for row in rows.all("recurrence_trigger_rules") if row.id == theirs)
    assert found.next_execution_date == TODAY


def test_words_may_be_enums(rows: Rows) -> None:
    """An application may have enum types where this platform has words, and its database is taken as it is."""
    rows.as_enum("recurrence_trigger_rules", "trigger_type", *TRIGGER_TYPES)
    rows.as_enum("recurrence_trigger_rules", "target_entity_type", *TARGET_TYPES)
    rows.as_enum("recurrence_trigger_executions", "execution_result", *EXECUTION_RESULTS)
    rows.as_enum("deadlines", "status", *DEADLINE_STATUSES)
    rows.as_enum("schedules", "frequency", *FREQUENCIES)
    rows.as_enum("schedules", "status", *SCHEDULE_STATUSES)
    target = obligation(rows)
    config = {"frequency": "MONTHLY"}
    rule(rows, "SCHEDULED", config, target, next_execution_date=TODAY)
    rule(rows, "SCHEDULED", config, target, next_execution_date=TODAY, target_entity_type="SCHEDULE")
    rule(rows, "EVENT_BASED", {"delay_days": 9}, target, trigger_expression="A")
    event(rows, "A")
    perform(rows)
    assert executions(rows) == [("SUCCESS", None)] * 3
    assert days_of(rows, "due_date") == [TODAY, TODAY + 8 * DAY]
    assert [row.status for row in rows.all("schedules")] == ["ACTIVE"]


@pytest.mark.parametrize("odd", ["-infinity", "0044-03-15 BC", "0026-11-25", "1899-12-31"])
def test_an_odd_next_date_is_its_own_rules_fault(rows: Rows, odd: str) -> None:
    """A series from there has no end: the rule waits as a failure that says why, and the other fires."""
    target = obligation(rows)
    good, bad = (
        rule(rows, "SCHEDULED", {"frequency": "DAILY"}, target, next_execution_date=TODAY) for _ in range(2)
    )
    rows.run_sql(
        "UPDATE recurrence_trigger_rules SET next_execution_date = :odd WHERE id = :id", odd=odd, id=bad
    )
    assert [perform(rows).counts["failed"] for _ in range(2)] == [1, 1]
    came = {row.trigger_rule_id: row for row in rows.all("recurrence_trigger_executions")}
    assert came[good].execution_result == "SUCCESS"
    assert came[bad].execution_result == "FAILED"
    assert "next_execution_date" in came[bad].execution_data["reason"]
    assert days_of(rows, "due_date") == [TODAY]


@pytest.mark.parametrize("odd", ["-infinity", "0044-03-15 BC"])
def test_an_odd_event_is_its_own_fault(rows: Rows, odd: str) -> None:
    """From its instant no date follows: a failure that says why, and the other event fires."""
    key = rule(rows, "EVENT_BASED", {"event_types": ["X"]}, obligation(rows))
    rows.run_sql("UPDATE recurrence_trigger_rules SET created_at = '-infinity' WHERE id = :id", id=key)
    event(rows, "X")
    bad = event(rows, "X")
    rows.run_sql("UPDATE recurrence_events SET occurred_at = :odd WHERE id = :id", odd=odd, id=bad)
    perform(rows)
    came = {row.event_id == bad: row for row in rows.all("recurrence_trigger_executions")}
    assert came[False].execution_result == "SUCCESS"
    assert came[True].execution_result == "FAILED"
    assert "occurred_at" in came[True].execution_data["reason"]
