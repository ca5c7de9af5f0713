"""Escalations: one level a day, by the days of the right workflow, to those whom it names, until it is over."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text

from include.ecocomply import process_escalations
from include.ecocomply.access import as_user
from include.ecocomply.generator import generate
from include.job import NothingOutside
from include.job import perform as perform_job
from include.run import EngineDatabase, Run
from tests.ecocomply.rows import AS_OF, TODAY, Rows

ALL = {"company_id": None, "obligation_category": None, "batch_size": 500}
DAY = timedelta(days=1)


@pytest.fixture
def rows(database_of: Callable[..., EngineDatabase]) -> Rows:
    """Make a company with an owner, an admin, a manager and somebody of the staff."""
    made = Rows(database_of("ecocomply"))
    for name in ("owner", "admin", "manager", "staff"):
        made.user(name, name.upper())
    return made


def overdue(
    rows: Rows, days: int, *, deadline: bool = True, company: UUID | None = None, **values: Any
) -> UUID:
    """Add an obligation that is overdue for so many days; return its deadline's id, or its own without one."""
    owner = company or rows.company
    site = rows.site if company is None else rows.add("sites", company_id=company, name="Theirs")
    due = TODAY - timedelta(days=days)
    given = {
        "company_id": owner, "site_id": site, "summary": "Stack test", "category": "MONITORING", "status": "OVERDUE",
        "deadline_date": due,
    }  # fmt: skip
    obligation = rows.add("obligations", **(given | values))
    if not deadline:
        return obligation
    return rows.add("deadlines", obligation_id=obligation, due_date=due, status="OVERDUE")


def workflow(rows: Rows, *days: int | None, **values: Any) -> UUID:
    """Add a workflow with the days of its levels."""
    levels = {f"level_{level}_days": given for level, given in enumerate(days, start=1)}
    return rows.add("escalation_workflows", **({"company_id": rows.company} | levels | values))


def perform(rows: Rows, as_of: datetime = AS_OF, **params: Any) -> Run:
    """Run the job for every company, unless told otherwise."""
    return rows.perform(process_escalations, NothingOutside(), as_of, **(ALL | params))


def levels(rows: Rows, entity: UUID) -> list[int]:
    """Return the levels of an entity that are unresolved."""
    found = rows.all("escalations", "escalation_level")
    return [row.escalation_level for row in found if row.entity_id == entity and row.resolved_at is None]


def told(rows: Rows) -> set[str]:
    """Return who was told by mail."""
    return {row.recipient_email.split("@")[0] for row in rows.all("notifications") if row.channel == "EMAIL"}


@pytest.mark.parametrize("asked", [True, False])
def test_a_level_names_its_consultant_whoever_starts_it(rows: Rows, asked: bool) -> None:  # noqa: FBT001 - a case
    """Whoever of the client asks for the job sees none of the consultancy's users: the level is told all the same."""
    cora = rows.user("cora", "CONSULTANT", company=rows.add("companies", name="Consultancy"))
    rows.add("consultant_client_assignments", consultant_id=cora, company_id=rows.company)
    workflow(rows, 7, level_1_recipients=[cora])
    overdue(rows, 7)
    ana = rows.user("ana", "OWNER")
    run = rows.run(AS_OF, process_escalations.NAME, **ALL)
    run = as_user(run, ana) if asked else run
    perform_job(process_escalations, run, NothingOutside())
    assert told(rows) == {"cora"}
    assert run.counts["invalid_recipients"] == 0
    assert [row.escalated_to for row in rows.all("escalations")] == [[cora]]


@pytest.mark.parametrize(
    ("days", "present", "level"),
    [
        (6, 0, None),
        (7, 0, 1),
        (13, 1, None),
        (14, 1, 2),
        (20, 2, None),
        (21, 2, 3),
        (29, 3, None),
        (30, 3, 4),
        (90, 4, None),
        (90, 0, 1),
        (90, 1, 2),
    ],
)
def test_the_levels_without_a_workflow(rows: Rows, days: int, present: int, level: int | None) -> None:
    """7, 14, 21 and 30 days, on the day itself; however long it is overdue, the level goes up by one."""
    key = overdue(rows, days)
    for before in range(1, present + 1):
        rows.add(
            "escalations", company_id=rows.company, entity_type="DEADLINE", entity_id=key, escalation_level=before,
            escalated_at=AS_OF - DAY,
        )  # fmt: skip
    run = perform(rows)
    assert levels(rows, key) == [*range(1, present + 1), *([level] if level else [])]
    assert (run.counts["processed"], run.counts["escalations"]) == (1, int(level is not None))
    assert told(rows) == ({"owner", "admin"} if level else set())


def test_a_day_gives_a_level_once(rows: Rows) -> None:
    """A later run of the day gives nothing, nor does a day that is made up for; the next day gives one level more."""
    key = overdue(rows, 60)
    midnight = AS_OF.replace(hour=0)
    for as_of, expected in (
        (AS_OF, [1]),
        (AS_OF, [1]),
        (midnight + DAY - timedelta(seconds=1), [1]),
        (AS_OF - DAY, [1]),
        (midnight, [1]),
        (AS_OF + DAY, [1, 2]),
    ):
        perform(rows, as_of)
        assert levels(rows, key) == expected
    assert [row.escalated_at for row in rows.all("escalations", "escalation_level")] == [AS_OF, AS_OF + DAY]


def test_by_deadline_where_there_is_one(rows: Rows) -> None:
    """An obligation with deadlines is escalated by those of them that are overdue, one without by itself."""
    deadline = overdue(rows, 8)
    bare = overdue(rows, 8, deadline=False)
    done = overdue(rows, 8, deadline=False)
    rows.add("deadlines", obligation_id=done, due_date=TODAY - 8 * DAY, status="COMPLETED")
    perform(rows)
    found = {(row.entity_type, row.entity_id) for row in rows.all("escalations")}
    assert found == {("DEADLINE", deadline), ("OBLIGATION", bare)}
    assert {(row.entity_type, row.entity_id) for row in rows.all("notifications")} == {
        ("deadline", deadline),
        ("obligation", bare),
    }


@pytest.mark.parametrize(
    "values",
    [
        {"status": "NOT_APPLICABLE"},
        {"deleted_at": AS_OF},
    ],
)
def test_what_applies_no_more_is_left(rows: Rows, values: dict[str, Any]) -> None:
    """Nobody is told of an obligation that was dropped, though a deadline of it still says overdue."""
    overdue(rows, 8, **values)
    overdue(rows, 8, deadline=False, **values)
    perform(rows)
    assert not rows.all("escalations")


def test_the_categorys_workflow_goes_before_the_companys(rows: Rows) -> None:
    """The company's is for every category that has none of its own; one that is not active counts for nothing."""
    workflow(rows, 1, obligation_category="MONITORING", is_active=False)
    companys, categorys = workflow(rows, 5), workflow(rows, 9, obligation_category="REPORTING")
    monitoring = overdue(rows, 5)
    reporting = overdue(rows, 8, category="REPORTING")
    late = overdue(rows, 9, category="REPORTING")
    perform(rows)
    found = {row.entity_id: row.workflow_id for row in rows.all("escalations")}
    assert found == {monitoring: companys, late: categorys}
    assert reporting not in found


@pytest.mark.parametrize(
    ("present", "days", "level"), [(0, 3, 1), (1, 9, None), (1, 10, 3), (3, 11, None), (3, 99, None)]
)
def test_a_level_without_days_is_skipped(rows: Rows, present: int, days: int, level: int | None) -> None:
    """After the first comes the third, where the second has no days; after the last there is none."""
    workflow(rows, 3, None, 10, None)
    key = overdue(rows, days)
    if present:
        rows.add(
            "escalations", company_id=rows.company, entity_type="DEADLINE", entity_id=key, escalation_level=present,
            escalated_at=AS_OF - DAY,
        )  # fmt: skip
    perform(rows)
    assert levels(rows, key) == [*([present] if present else []), *([level] if level else [])]


def test_whom_a_level_names(rows: Rows, caplog: pytest.LogCaptureFixture) -> None:
    """Those of the company who are still there; who is not is a warning; if nobody is left, OWNERs and ADMINs."""
    other = rows.add("companies", name="Other")
    stranger = rows.user("stranger", "OWNER", company=other)
    gone = rows.user("gone", "ADMIN", is_active=False)
    users = {row.full_name: row.id for row in rows.all("users")}
    workflow(
        rows, 3, 4, level_1_recipients=[users["staff"], users["manager"], stranger], level_2_recipients=[gone]
    )
    key = overdue(rows, 5)
    run = perform(rows)
    assert told(rows) == {"staff", "manager"}
    assert run.counts["invalid_recipients"] == 1
    assert str(stranger) in caplog.text
    perform(rows, AS_OF + DAY)
    assert told(rows) == {"staff", "manager", "owner", "admin"}
    of_level = {row.escalation_level: set(row.escalated_to) for row in rows.all("escalations")}
    assert of_level == {1: {users["staff"], users["manager"]}, 2: {users["owner"], users["admin"]}}
    assert levels(rows, key) == [1, 2]


@pytest.mark.parametrize("nested", [True, False])
def test_what_a_workflow_lists_may_have_gaps(rows: Rows, nested: bool) -> None:  # noqa: FBT001 - a case
    """An array of arrays, or one without a value in a place, is no reason to escalate for nobody else."""
    users = {row.full_name: row.id for row in rows.all("users")}
    other = rows.add("companies", name="Other")
    nobody = UUID(int=7)
    listed = [[users["staff"]], [nobody]] if nested else [None, users["staff"], nobody]
    workflow(rows, 3, level_1_recipients=listed)
    keys = [overdue(rows, 8), overdue(rows, 8, company=other)]
    run = perform(rows)
    assert [levels(rows, key) for key in keys] == [[1], [1]]
    assert told(rows) == {"staff"}
    assert (run.counts["invalid_recipients"], run.counts["failed"]) == (1, 0)


@pytest.mark.parametrize("kind", ["jsonb", "text[]"])
def test_an_application_may_list_users_its_own_way(rows: Rows, kind: str) -> None:
    """A column of JSON, or of texts: the same are told, no warning is given, and a word that is no id stands alone."""
    users = {row.full_name: row.id for row in rows.all("users")}
    workflow(rows, 3, level_1_recipients=[users["staff"]], obligation_category="MONITORING")
    workflow(rows, 3, level_1_recipients=[UUID(int=7)], obligation_category="REPORTING")
    of_levels = [("escalation_workflows", f"level_{level}_recipients") for level in (1, 2, 3, 4)]
    for table, column in (*of_levels, ("escalations", "escalated_to")):
        using = f"to_jsonb({column})" if kind == "jsonb" else f"{column}::text[]"
        rows.run_sql(f"ALTER TABLE {table} ALTER {column} DROP DEFAULT")
        rows.run_sql(f"ALTER TABLE {table} ALTER {column} TYPE {kind} USING {using}")
        rows.run_sql(f"ALTER TABLE {table} ALTER {column} SET DEFAULT '{'[]' if kind == 'jsonb' else '{}'}'")
    word = """'["nobody"]'::jsonb""" if kind == "jsonb" else "'{nobody}'::text[]"
    rows.run_sql(
        f"UPDATE escalation_workflows SET level_1_recipients = {word} WHERE obligation_category = 'REPORTING'"
    )
    key, bad = overdue(rows, 8), overdue(rows, 8, category="REPORTING")
    run = perform(rows)
    assert (levels(rows, key), levels(rows, bad)) == ([1], [])
    assert told(rows) == {"staff"}
    assert (run.counts["invalid_recipients"], run.counts["failed"]) == (0, 1)
    with rows.database.transaction() as tx:
        assert tx.value(text("SELECT to_jsonb(escalated_to) FROM escalations")) == [str(users["staff"])]


def test_who_was_told_for_an_earlier_date_is_not_told_now(rows: Rows) -> None:
    """Overdue anew since another date: `escalated_to` holds those of this time, and who has left since is a warning."""
    users = {row.full_name: row.id for row in rows.all("users")}
    workflow(rows, 3, level_1_recipients=[users["staff"]])
    key = overdue(rows, 8)
    perform(rows)
    rows.change("deadlines", key, status="COMPLETED")
    perform(rows, AS_OF + DAY)
    rows.change("users", users["staff"], is_active=False)
    rows.change("deadlines", key, status="OVERDUE", due_date=TODAY - 5 * DAY)
    run = perform(rows, AS_OF + 2 * DAY)
    assert run.counts["invalid_recipients"] == 1
    (now,) = (row for row in rows.all("escalations") if row.resolved_at is None)
    assert set(now.escalated_to) == {users["owner"], users["admin"]}


@pytest.mark.parametrize("deadline", [True, False])
@pytest.mark.parametrize("table", ["sites", "companies"])
def test_of_what_is_deleted_nothing_is_escalated(rows: Rows, table: str, deadline: bool) -> None:  # noqa: FBT001 - a case
    """Nor is anybody called a stranger whom a deleted site's workflow names."""
    workflow(rows, 3, level_1_recipients=[row.id for row in rows.all("users")])
    overdue(rows, 8, deadline=deadline)
    rows.change(table, rows.site if table == "sites" else rows.company, deleted_at=AS_OF)
    run = perform(rows)
    assert rows.all("escalations") == []
    assert (run.counts["processed"], run.counts["invalid_recipients"]) == (0, 0)


def test_nobody_to_tell(rows: Rows) -> None:
    """The escalation stands, and a warning is counted."""
    other = rows.add("companies", name="Empty")
    key = overdue(rows, 8, company=other)
    run = perform(rows)
    assert levels(rows, key) == [1]
    assert (run.counts["without_recipient"], run.counts["notifications"]) == (1, 0)
    assert rows.all("escalations")[0].escalated_to == []


def test_the_record(rows: Rows) -> None:
    """What an application shows: the escalation, and a notification that links to the obligation."""
    used = workflow(rows, 1)
    key = overdue(rows, 1)
    perform(rows)
    (made,) = rows.all("escalations")
    assert (made.company_id, made.site_id, made.workflow_id) == (rows.company, rows.site, used)
    assert (made.escalated_at, made.escalation_reason) == (AS_OF, "1 day overdue")
    found = next(row for row in rows.all("notifications") if row.channel == "EMAIL")
    assert found.subject == "Level 1 Escalation: Stack test"
    assert found.action_url.endswith(f"/sites/{rows.site}/obligations/{made.obligation_id}")
    assert (found.priority, found.is_escalation, found.escalation_level) == ("URGENT", True, 1)
    assert found.escalation_state == "ESCALATED_LEVEL_1"
    assert found.metadata == {"escalation_level": 1, "days_overdue": 1, "workflow_id": str(used)}
    assert (found.variables["deadline_id"], found.obligation_id) == (str(key), made.obligation_id)


@pytest.mark.parametrize(
    "over",
    [
        {"status": "COMPLETED"},
        {"status": "NOT_APPLICABLE"},
        {"due_date": TODAY},
    ],
)
def test_it_is_resolved_once_it_is_over(rows: Rows, over: dict[str, Any]) -> None:
    """Completed, dropped or moved: the levels are resolved as of the run; overdue again, they begin anew."""
    key, other = overdue(rows, 20), overdue(rows, 20)
    perform(rows)
    rows.change("deadlines", key, **over)
    run = perform(rows, AS_OF + DAY / 2)
    assert (levels(rows, key), levels(rows, other)) == ([], [1])
    assert run.counts["resolved"] == 1
    resolved = [row.resolved_at for row in rows.all("escalations") if row.entity_id == key]
    assert resolved == [AS_OF + DAY / 2]
    states = {row.escalation_state for row in rows.all("notifications") if row.entity_id == key}
    assert states == {"RESOLVED"}
    rows.change("deadlines", key, status="OVERDUE", due_date=TODAY - 9 * DAY)
    perform(rows, AS_OF + DAY)
    assert levels(rows, key) == [1]


def test_what_is_gone_is_over(rows: Rows) -> None:
    """A deadline that was deleted leaves an escalation that nobody could resolve otherwise."""
    key = overdue(rows, 20)
    perform(rows)
    rows.run_sql("DELETE FROM deadlines WHERE id = :id", id=key)
    perform(rows, AS_OF + DAY)
    assert levels(rows, key) == []


def test_a_newer_escalation_is_not_resolved_by_an_older_day(rows: Rows) -> None:
    """Ruling 1: on the day that is made up for it was not overdue yet, and yet nothing newer is undone."""
    workflow(rows, 1)
    key = overdue(rows, 1)
    perform(rows)
    perform(rows, AS_OF - DAY)
    assert levels(rows, key) == [1]


@pytest.mark.parametrize("param", ["company_id", "obligation_category"])
def test_a_param_narrows_it(rows: Rows, param: str) -> None:
    """Another company's rows, or another category's, are neither escalated nor resolved."""
    other = rows.add("companies", name="Other")
    wanted = {"company_id": str(other), "obligation_category": "REPORTING"}
    mine = overdue(rows, 8)
    theirs = overdue(rows, 8, company=other, category="REPORTING")
    over = overdue(rows, 8)
    perform(rows)
    rows.change("deadlines", over, status="COMPLETED")
    again = overdue(rows, 8, deadline=False)
    perform(rows, AS_OF + 6 * DAY, **{param: wanted[param]})
    assert (levels(rows, mine), levels(rows, theirs)) == ([1], [1, 2])
    assert (levels(rows, over), levels(rows, again)) == ([1], [])


def test_a_second_run_writes_nothing(rows: Rows) -> None:
    """Whatever there is, the same run again leaves every row as it is."""
    workflow(rows, 3, None, 5, level_1_recipients=[rows.user("ana", "STAFF")])
    for days in (2, 3, 6, 40):
        overdue(rows, days)
    perform(rows)
    before = [rows.all(table, "id") for table in ("escalations", "notifications")]
    run = perform(rows)
    assert [rows.all(table, "id") for table in ("escalations", "notifications")] == before
    assert (run.counts["escalations"], run.counts["resolved"], run.counts["skipped"]) == (0, 0, 4)


def test_a_bad_row_stands_alone(rows: Rows) -> None:
    """One that can't be escalated is counted; the chunk's others are."""
    bad, good = overdue(rows, 8), overdue(rows, 8)
    rows.run_sql(f"ALTER TABLE escalations ADD CONSTRAINT bad CHECK (entity_id <> '{bad}')")
    run = perform(rows)
    assert (levels(rows, bad), levels(rows, good)) == ([], [1])
    assert (run.counts["failed"], run.counts["escalations"]) == (1, 1)
    assert {row.entity_id for row in rows.all("notifications")} == {good}


def test_the_generated_data_has_work(database_of: Callable[..., EngineDatabase]) -> None:
    """A demo in which nothing is escalated shows nothing."""
    made = Rows(database_of("ecocomply"))
    with made.database.engine.begin() as connection:
        generate(connection, today=date(2026, 11, 25), companies=3, obligations=90)
    assert perform(made).counts["escalations"] > 0
