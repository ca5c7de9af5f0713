"""The first run on a database in use: nobody is told of what was past at the adoption; of what comes next, as ever."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from include.run import EngineDatabase
from tests.dags.every import DagFile, dag_files
from tests.dags.test_promises import Scene
from tests.ecocomply import (
    test_auto_validate_consignment_notes as notes,
)
from tests.ecocomply import (
    test_check_regulator_response_deadlines as regulators,
)
from tests.ecocomply import (
    test_detect_breaches_and_alerts as breaches,
)
from tests.ecocomply import (
    test_evidence_reminder as evidence,
)
from tests.ecocomply import (
    test_execute_pending_recurrence_triggers as triggers,
)
from tests.ecocomply import (
    test_flag_pending_runtime_validations as runtimes,
)
from tests.ecocomply import (
    test_monitor_corrective_action_items as items,
)
from tests.ecocomply import (
    test_notification_delivery as delivery,
)
from tests.ecocomply import (
    test_permit_renewal_reminder as renewals,
)
from tests.ecocomply import (
    test_process_escalations as escalations,
)
from tests.ecocomply import (
    test_recurring_task_generation as tasks,
)
from tests.ecocomply import (
    test_review_queue_escalation as reviews,
)
from tests.ecocomply import (
    test_run_hour_monitoring as run_hours,
)
from tests.ecocomply import (
    test_sampling_schedule as samples,
)
from tests.ecocomply import (
    test_update_sla_breach_timers as timers,
)
from tests.ecocomply.rows import AS_OF, TODAY, Rows

OURS = tuple(dag for dag in dag_files() if dag.system == "ecocomply")
DAY, HOUR = timedelta(days=1), timedelta(hours=1)

UNDATED = {
    # of a generator's year or month, which may have begun before
    "run_hours_80", "run_hours_90", "run_hours_100", "runtime_exceedance",
    # of a level that is reached now
    "review_escalation", "sla_escalation",
    # the migration marks clocks, and these are made after it
    "clock_reminder",
    # what changes by the run itself
    "corrective_action_ready", "consignment_note_failed",
}  # fmt: skip
"""Kinds whose day is not the one by which people had to act."""


@pytest.fixture
def rows(database_of: Callable[..., EngineDatabase]) -> Rows:
    """Make a company with somebody in each role, all at its site."""
    made = Rows(database_of("ecocomply"))
    for name in ("owner", "admin", "manager", "team_lead", "staff", "ana"):
        made.user(name, "STAFF" if name == "ana" else name.upper(), sites=[made.site])
    return made


def adopt(rows: Rows, at: datetime = AS_OF) -> None:
    """Say when the platform took the database over."""
    rows.run_sql("INSERT INTO baseline (name, at) VALUES ('adoption', :at)", at=at)


def told(rows: Rows) -> set[Any]:
    """Return the entities that somebody was told of."""
    return {row.entity_id for row in rows.all("notifications")}


def _days_told_of(database: EngineDatabase) -> set[date]:
    with database.engine.begin() as connection:
        keys = connection.execute(text("SELECT dedupe_key FROM notifications")).scalars()
        parts = [key.split("/") for key in keys if key and key.count("/") >= 5]
    dated = [part[3] for part in parts if part[0] not in UNDATED]
    return {date.fromisoformat(day) for day in dated if day[:2] == "20"}


@pytest.mark.parametrize("dag", OURS, ids=str)
def test_no_job_tells_of_what_was_past(dag: DagFile, database_of: Callable[..., EngineDatabase]) -> None:
    """Ruling 15, over every job: on its own seed, which has days of before and after."""
    now = datetime.now(UTC)
    scene = Scene(dag, database_of("ecocomply"), now)
    with scene.database.engine.begin() as connection:
        connection.execute(text("INSERT INTO baseline (name, at) VALUES ('adoption', :at)"), {"at": now})
    scene.perform()
    assert {day for day in _days_told_of(scene.database) if day < now.date()} == set()


def test_the_jobs_would_tell_of_it(database_of: Callable[..., EngineDatabase]) -> None:
    """Where the platform made the database there is no history: these are all to be told."""
    now = datetime.now(UTC)
    (dag,) = [dag for dag in OURS if dag.dag_id == "ecocomply_sampling_schedule"]
    scene = Scene(dag, database_of("ecocomply"), now)
    scene.perform()
    assert min(_days_told_of(scene.database)) < now.date()


def test_samples(rows: Rows) -> None:
    """One that was due the day before the adoption is history; one of the day itself is not."""
    adopt(rows)
    samples.parameter(rows, "DAILY", last=TODAY - 2 * DAY)
    key = samples.parameter(rows, "DAILY", last=TODAY - DAY)
    samples.job(rows)
    assert told(rows) == {key}


@pytest.mark.parametrize(
    ("waits", "at_adoption", "day_later"),
    [(11, None, 24), (12, 12, 24), (13, None, 24), (30, None, 48), (49, None, None)],
)
def test_breaches_that_stood(rows: Rows, waits: int, at_adoption: int | None, day_later: int | None) -> None:
    """Levels that were reached before are history; each one reached later is told."""
    adopt(rows)
    timers.breached(rows, waits * HOUR)

    def levels() -> set[int]:
        return {row.metadata["threshold_hours"] for row in rows.all("notifications")}

    timers.perform(rows)
    assert levels() == ({at_adoption} if at_adoption else set())
    timers.perform(rows, AS_OF + DAY)
    assert levels() == {one for one in (at_adoption, day_later) if one}


@pytest.mark.parametrize(("target", "found"), [(-1, False), (0, True)])
def test_sla_targets(rows: Rows, target: int, *, found: bool) -> None:
    """A target that was missed before the adoption is neither marked nor told, one of its day is, once missed."""
    adopt(rows)
    key = breaches.deadline(rows, -9, sla_target_date=TODAY + target * DAY)
    breaches.perform(rows, AS_OF + DAY)
    assert (breaches.standing(rows, key).sla_breached_at is not None) == found
    assert bool(told(rows)) == found


@pytest.mark.parametrize(("due", "found"), [(1, False), (0, True)])
def test_deadlines(rows: Rows, due: int, *, found: bool) -> None:
    """The same of a due date; by its day and not by the mark alone, which a deadline made later has not."""
    adopt(rows)
    breaches.deadline(rows, due)
    breaches.perform(rows, AS_OF + DAY)
    assert bool(told(rows)) == found


def test_a_deadline_that_was_moved_is_told_anew(rows: Rows) -> None:
    """Ruling 2: the mark of the adoption was of the date that had passed then."""
    adopt(rows)
    key = breaches.deadline(rows, 9, past_at_adoption=True, breach_notification_sent=True)
    breaches.perform(rows, AS_OF + DAY)
    assert told(rows) == set()
    rows.change("deadlines", key, due_date=TODAY + DAY)
    breaches.perform(rows, AS_OF + 2 * DAY)
    assert told(rows) == {key}


@pytest.mark.parametrize("of_deadline", [True, False])
@pytest.mark.parametrize(("days", "found"), [(1, False), (0, True)])
def test_escalations(rows: Rows, days: int, *, of_deadline: bool, found: bool) -> None:
    """What was overdue is not escalated; what becomes so is, after its days."""
    adopt(rows)
    key = escalations.overdue(rows, days, deadline=of_deadline)
    escalations.perform(rows, AS_OF + 9 * DAY)
    assert escalations.levels(rows, key) == ([1] if found else [])


@pytest.mark.parametrize(("overdue", "found"), [(1, False), (0, True)])
def test_regulators(rows: Rows, overdue: int, *, found: bool) -> None:
    """One that had not answered in time is history: it is not even noted."""
    adopt(rows)
    key = regulators.workflow(rows, overdue)
    regulators.perform(rows, AS_OF + DAY)
    assert told(rows) == ({key} if found else set())
    assert bool(regulators.notes(rows, key)) == found


@pytest.mark.parametrize(("days", "found"), [(-1, False), (0, True), (3, True)])
def test_corrective_items(rows: Rows, days: int, *, found: bool) -> None:
    """Also those that managers and admins would hear of after a week."""
    adopt(rows)
    key = items.item(rows, days)
    for later in (0, 1, 12):
        items.perform(rows, AS_OF + later * DAY)
    assert told(rows) == ({key} if found else set())


@pytest.mark.parametrize(
    ("waited", "risky", "at_adoption", "days_later"),
    [
        (49, False, 0, 2),
        (47, False, 0, 1),
        (48, False, 1, 2),
        (200, False, 0, 0),
        (25, True, 0, 2),
        (24, True, 1, 2),
    ],
)
def test_reviews(rows: Rows, waited: int, *, risky: bool, at_adoption: int, days_later: int) -> None:
    """Levels that were reached before are history, and halved for what a model may have made up."""
    adopt(rows)
    key = reviews.item(rows, waited * HOUR, hallucination_risk=risky)
    reviews.perform(rows)
    assert reviews.level(rows, key) == at_adoption
    reviews.perform(rows, AS_OF + (DAY if risky else 2 * DAY))
    assert reviews.level(rows, key) == days_later


@pytest.mark.parametrize(
    ("days", "first", "then"),
    [(6, [], []), (29, [], [7]), (30, [30], [30, 7]), (31, [], [30, 7]), (90, [90], [90, 30, 7])],
)
def test_renewals(rows: Rows, days: int, first: list[int], then: list[int]) -> None:
    """Marks that were crossed before are history."""
    adopt(rows)
    renewals.document(rows, days)
    renewals.perform(rows)
    assert renewals.marks(rows) == first
    for later in range(days + 1):
        renewals.perform(rows, AS_OF + later * DAY)
    assert renewals.marks(rows) == then


@pytest.mark.parametrize(("days", "found"), [(-1, False), (0, True)])
def test_obligations_without_evidence(rows: Rows, days: int, *, found: bool) -> None:
    """One that was due before is history, whatever its status says."""
    adopt(rows)
    key = evidence.obligation(rows, days, status="IN_PROGRESS")
    evidence.perform(rows)
    assert told(rows) == ({key} if found else set())


@pytest.mark.parametrize(("age", "found"), [(25, False), (24, True)])
def test_runs_that_wait(rows: Rows, age: int, *, found: bool) -> None:
    """Those that had waited for too long are history."""
    adopt(rows)
    runtimes.entry(rows, runtimes.generator(rows), age * HOUR)
    runtimes.job(rows, AS_OF + HOUR)
    assert bool(told(rows)) == found


@pytest.mark.parametrize(
    ("before", "since", "told_of"),
    [(450, 0, []), (450, 10, []), (450, 50, [100]), (399, 1, [80]), (500, 9, [])],
)
def test_run_hours(rows: Rows, before: int, since: int, told_of: list[int]) -> None:
    """Thresholds that the hours up to the adoption had reached are history; of the others the highest is told."""
    adopt(rows)
    run_hours.generator(rows, (TODAY - DAY, before), (TODAY, since))
    run_hours.job(rows)
    assert {row.metadata["threshold_level"] for row in run_hours.mails(rows)} == set(told_of)


def test_rules_by_the_calendar(rows: Rows) -> None:
    """Dates of before are used up and make nothing, and the series goes on as it began."""
    adopt(rows)
    target = triggers.obligation(rows)
    triggers.rule(rows, "SCHEDULED", {"frequency": "MONTHLY"}, target, next_execution_date=date(2015, 1, 31))
    triggers.perform(rows)
    assert triggers.days_of(rows, "due_date") == []
    assert triggers.days_of(rows, "next_execution_date", "recurrence_trigger_rules") == [date(2026, 11, 30)]
    assert {result for result, _ in triggers.executions(rows)} == {"SKIPPED"}
    triggers.perform(rows, AS_OF + 36 * DAY)
    assert triggers.days_of(rows, "due_date") == [date(2026, 11, 30), date(2026, 12, 31)]


def test_a_rule_that_fails_waits_where_it_does(rows: Rows) -> None:
    """What follows the history waits for its rule to be mended, as ever."""
    adopt(rows, AS_OF - 2 * DAY)
    strangers = rows.add("companies", name="B")
    site = rows.add("sites", company_id=strangers, name="There")
    theirs = triggers.obligation(rows, company_id=strangers, site_id=site)
    rule = triggers.rule(
        rows, "SCHEDULED", {"frequency": "DAILY"}, theirs, next_execution_date=TODAY - 4 * DAY
    )
    triggers.perform(rows)
    assert triggers.days_of(rows, "next_execution_date", "recurrence_trigger_rules") == [TODAY - 2 * DAY]
    mine = triggers.obligation(rows)
    rows.change("recurrence_trigger_rules", rule, template_data={"obligation_id": str(mine)})
    triggers.perform(rows)
    assert triggers.days_of(rows, "due_date") == [TODAY - 2 * DAY, TODAY - DAY, TODAY]


def test_a_rule_that_fires_once(rows: Rows) -> None:
    """It had its day."""
    adopt(rows)
    target = triggers.obligation(rows)
    triggers.rule(rows, "SCHEDULED", {"frequency": "ONE_TIME"}, target, next_execution_date=TODAY - DAY)
    triggers.perform(rows)
    assert triggers.days_of(rows, "due_date") == []
    assert triggers.days_of(rows, "next_execution_date", "recurrence_trigger_rules") == [None]


def test_recurring_tasks(rows: Rows) -> None:
    """Years of missed tasks are no help to anybody."""
    adopt(rows, AS_OF - DAY)
    key = tasks.definition(rows, "DAILY", TODAY - 900 * DAY)
    tasks.perform(rows)
    assert tasks.dates(rows, key) == [TODAY - DAY, TODAY]
    assert tasks.following(rows, key) == TODAY + DAY


@pytest.mark.parametrize(
    ("consigned", "changed", "status"),
    [(-1, -1, "NOT_VALIDATED"), (-1, 1, "PASSED"), (0, -1, "PASSED"), (3, -1, "PASSED")],
)
def test_consignment_notes(rows: Rows, consigned: int, changed: int, status: str) -> None:
    """What was on its way before is history, unless somebody changes it."""
    adopt(rows)
    given = {"consignment_date": TODAY + consigned * DAY, "updated_at": AS_OF + changed * HOUR}
    key = notes.note(rows, **given)
    notes.perform(rows)
    assert notes.standing(rows, key)[0] == status


@pytest.mark.parametrize(
    ("channel", "age", "status"),
    [("EMAIL", 8, "CANCELLED"), ("EMAIL", 6, "SENT"), ("IN_APP", 8, "DELIVERED"), ("SMS", 8, "CANCELLED")],
)
def test_notifications_that_wait(delivered: delivery.World, channel: str, age: int, status: str) -> None:
    """What an application had not sent for a week is no news; in the application itself it may stand."""
    world = delivered
    now = datetime.now(UTC)
    adopt(world.rows, now)
    waits = {"scheduled_for": now - age * DAY, "recipient_phone": "+1"}
    world.rows.notification(world.rows.user("ana", phone="+1"), channel=channel, **waits)
    world.perform()
    (row,) = world.rows.all("notifications")
    assert row.status == status


@pytest.fixture
def delivered(database_of: Callable[..., EngineDatabase]) -> delivery.World:
    """Make a company, and providers that are well."""
    return delivery.World(Rows(database_of("ecocomply")))
