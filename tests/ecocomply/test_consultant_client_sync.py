"""Consultants: which clients they have, what they see of each, and the summary that they get."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Row

from include.ecocomply import consultant_client_sync
from include.ecocomply.access import as_user
from include.errors import BadInput
from include.job import NothingOutside, perform
from include.run import EngineDatabase, Run
from tests.ecocomply.rows import AS_OF, TODAY, Rows

DAY = timedelta(days=1)


@dataclass
class Consultancy(Rows):
    """A client with a site, and cora, who looks after it for another company."""

    office: UUID = field(default_factory=uuid4)
    cora: UUID = field(default_factory=uuid4)

    def fill(self) -> None:
        """Add the consultancy and its consultant."""
        self.add("companies", id=self.office, name="Consultancy")
        self.consultant("cora", id=self.cora)
        self.assign(self.cora)

    def consultant(self, name: str, *roles: str, **values: Any) -> UUID:
        """Add a consultant, or somebody with other roles."""
        return self.user(name, *(roles or ("CONSULTANT",)), company=self.office, **values)

    def assign(self, user: UUID, client: UUID | None = None, **values: Any) -> UUID:
        """Let a consultant look after a client."""
        row = {"consultant_id": user, "company_id": client or self.company}
        return self.add("consultant_client_assignments", **(row | values))

    def obligation(self, **values: Any) -> UUID:
        """Add an obligation of the client's site."""
        return self.add("obligations", **({"site_id": self.site, "summary": "Stack test"} | values))

    def deadline(self, days: int, obligation: UUID | None = None, **values: Any) -> UUID:
        """Add a deadline in so many days, of an obligation of its own."""
        of = obligation or self.obligation()
        return self.add("deadlines", obligation_id=of, due_date=TODAY + days * DAY, **values)

    def sync(self, as_of: Any = AS_OF, **params: Any) -> Run:
        """Run the job in full for every consultant, unless told otherwise."""
        wanted = {"consultant_id": None, "sync_type": "FULL"} | params
        return self.perform(consultant_client_sync, NothingOutside(), as_of, **wanted)

    def ask(self, user: UUID, **params: Any) -> Run:
        """Run the job as a user asked for it."""
        wanted = {"consultant_id": None, "sync_type": "FULL"} | params
        run = as_user(self.run(AS_OF, consultant_client_sync.NAME, **wanted), user)
        perform(consultant_client_sync, run, NothingOutside())
        return run

    def seen(self, user: UUID | None = None) -> Row[Any]:
        """Return the one row of a consultant's dashboard."""
        (row,) = (one for one in self.all("consultant_dashboard") if one.consultant_id == (user or self.cora))
        return row

    def statuses(self) -> dict[UUID, tuple[str, str | None]]:
        """Return the assignments' statuses and why."""
        return {row.id: (row.status, row.status_reason) for row in self.all("consultant_client_assignments")}


@pytest.fixture
def rows(database_of: Callable[..., EngineDatabase]) -> Consultancy:
    """Make the consultancy and its client."""
    made = Consultancy(database_of("ecocomply"))
    made.fill()
    return made


@pytest.mark.parametrize(
    ("days", "status", "expected"),
    [
        (-400, "PENDING", (1, 0)),
        (-1, "PENDING", (1, 0)),
        (-1, "OVERDUE", (1, 0)),
        (-1, "COMPLETED", (0, 0)),
        (-1, "NOT_APPLICABLE", (0, 0)),
        (0, "DUE_SOON", (0, 1)),
        (30, "PENDING", (0, 1)),
        (31, "PENDING", (0, 0)),
        (5, "COMPLETED", (0, 0)),
    ],
)
def test_overdue_and_due_in_30_days(
    rows: Consultancy, days: int, status: str, expected: tuple[int, int]
) -> None:
    """By the day, whatever another job has marked yet; today is not overdue."""
    rows.deadline(days, status=status)
    rows.sync()
    assert (rows.seen().overdue_count, rows.seen().due_soon_count) == expected
    assert len(rows.seen().upcoming_deadlines) == expected[1]


def test_obligations_without_a_deadline_count_by_their_own_date(rows: Consultancy) -> None:
    """Before 2.1 has made deadlines there is something to see all the same; with them, nothing counts twice."""
    rows.obligation(deadline_date=TODAY - DAY)
    rows.obligation(deadline_date=TODAY + 30 * DAY)
    rows.obligation(deadline_date=TODAY + 31 * DAY)
    rows.obligation(deadline_date=TODAY - DAY, status="COMPLETED")
    rows.deadline(-1, rows.obligation(deadline_date=TODAY - DAY))
    rows.deadline(-1, rows.obligation(status="NOT_APPLICABLE"))
    rows.deadline(-1, rows.obligation(deleted_at=AS_OF - DAY))
    rows.sync()
    assert (rows.seen().overdue_count, rows.seen().due_soon_count) == (2, 1)


def at(days: int, hour: time = time(12)) -> datetime:
    """Return an instant so many days from today."""
    return datetime.combine(TODAY + days * DAY, hour, UTC)


@pytest.mark.parametrize(
    ("due", "score"),
    [
        ([], None),
        ([(-1, at(-1, time(23, 59, 59)))], "100.0"),
        ([(-1, at(0, time(0)))], "0.0"),
        ([(-1, None)], "100.0"),
        ([(-90, at(-91)), (-91, at(-80))], "100.0"),
        ([(-90, at(-80)), (-91, at(-91))], "0.0"),
        ([(0, at(-1))], None),
        ([(-3, at(-3)), (-4, at(-4)), (-5, at(-1))], "66.7"),
    ],
)
def test_the_score(rows: Consultancy, due: list[tuple[int, datetime | None]], score: str | None) -> None:
    """The share of 90 days' deadlines that were completed in time, to the day; nothing due is no score."""
    for days, done in due:
        rows.deadline(days, status="COMPLETED", completed_at=done)
    rows.sync()
    assert rows.seen().compliance_score == (None if score is None else Decimal(score))


def test_one_that_was_never_completed_lowers_the_score(rows: Consultancy) -> None:
    """Missed is missed; what never applied counts for nothing."""
    rows.deadline(-5, status="COMPLETED", completed_at=at(-5))
    rows.deadline(-5, status="OVERDUE")
    rows.deadline(-5, status="NOT_APPLICABLE")
    rows.sync()
    assert rows.seen().compliance_score == 50


def test_open_gaps(rows: Consultancy) -> None:
    """A gap that evidence has closed is no gap."""
    for resolved in (None, AS_OF - DAY):
        of = rows.obligation()
        gap = {"gap_type": "NO_EVIDENCE", "severity": "HIGH", "detected_at": AS_OF - 9 * DAY}
        rows.add(
            "evidence_gaps", obligation_id=of, deadline_id=rows.deadline(-9, of), resolved_at=resolved, **gap
        )
    rows.sync()
    assert rows.seen().open_gap_count == 1


def test_recent_activity(rows: Consultancy) -> None:
    """The last ten of the client's audit entries, newest first; none of others, none that were to come."""
    for minutes in range(-1, 12):
        entry = {"entity_type": "EVIDENCE", "created_at": AS_OF - timedelta(minutes=minutes)}
        rows.add("audit_logs", company_id=rows.company, action_type=f"{minutes} minutes ago", **entry)
    rows.add(
        "audit_logs", company_id=rows.office, action_type="ours", entity_type="EVIDENCE", created_at=AS_OF
    )
    rows.sync()
    assert [one["action_type"] for one in rows.seen().recent_activity] == [
        f"{minutes} minutes ago" for minutes in range(10)
    ]
    assert rows.seen().recent_activity[0]["created_at"] == "2026-11-25T09:00:00.000000Z"


def test_upcoming_deadlines(rows: Consultancy) -> None:
    """The next ten, soonest first."""
    for days in range(12, 0, -1):
        rows.deadline(days, rows.obligation(summary=f"in {days}"))
    rows.sync()
    assert [one["obligation"] for one in rows.seen().upcoming_deadlines] == [
        f"in {days}" for days in range(1, 11)
    ]
    assert rows.seen().due_soon_count == 12


@pytest.mark.parametrize("sync_type", ["ASSIGNMENTS", "FULL"])
def test_assignments_end(rows: Consultancy, sync_type: str) -> None:
    """A deleted client, or a user without the role: INACTIVE with the reason; who has left is left alone."""
    gone = rows.add("companies", name="Gone", deleted_at=AS_OF)
    later = rows.add("companies", name="Later", deleted_at=AS_OF + DAY)
    mere = rows.consultant("mere", "STAFF")
    left = rows.consultant("left", "STAFF", is_active=False)
    kept = rows.assign(rows.consultant("second"))
    wanted = {
        rows.assign(rows.cora, gone): ("INACTIVE", "the client company was deleted"),
        rows.assign(rows.cora, later): ("ACTIVE", None),
        rows.assign(mere): ("INACTIVE", "the user is no consultant any more"),
        rows.assign(left): ("ACTIVE", None),
        kept: ("ACTIVE", None),
    }
    run = rows.sync(sync_type=sync_type)
    assert {key: rows.statuses()[key] for key in wanted} == wanted
    assert run.counts["assignments_ended"] == 2
    assert run.counts["processed"] > 0
    assert bool(rows.all("consultant_dashboard")) == (sync_type == "FULL")


def test_dashboard_alone_changes_no_assignment_and_tells_nobody(rows: Consultancy) -> None:
    """Each type does its own part; the summary is of the full one."""
    gone = rows.assign(rows.cora, rows.add("companies", name="Gone", deleted_at=AS_OF))
    run = rows.sync(sync_type="DASHBOARD")
    assert rows.statuses()[gone] == ("ACTIVE", None)
    assert rows.seen().company_id == rows.company
    assert not rows.all("notifications")
    assert run.counts["processed"] == 1


@pytest.mark.parametrize(
    "values", [{"is_active": False}, {"deleted_at": AS_OF}], ids=["not active", "deleted"]
)
def test_a_consultant_who_is_not_there_is_skipped(rows: Consultancy, values: dict[str, Any]) -> None:
    """6.5: the others go on."""
    second = rows.consultant("second")
    rows.assign(second)
    rows.change("users", rows.cora, **values)
    run = rows.sync()
    assert {row.consultant_id for row in rows.all("consultant_dashboard")} == {second}
    assert (run.counts["skipped"], run.counts["processed"]) == (1, 1)
    assert rows.sync(consultant_id=str(uuid4())).notes


def test_what_is_no_client_any_more_is_no_longer_seen(rows: Consultancy) -> None:
    """The figures of a former client are none of theirs."""
    rows.sync()
    (assignment,) = rows.statuses()
    rows.change("consultant_client_assignments", assignment, status="INACTIVE")
    assert rows.sync().counts["clients_removed"] == 1
    assert not rows.all("consultant_dashboard")


@pytest.mark.parametrize("sync_type", ["DASHBOARD", "FULL"])
@pytest.mark.parametrize(
    "ends",
    [
        "DELETE FROM user_roles WHERE role = 'CONSULTANT'",
        "UPDATE users SET is_active = FALSE; UPDATE consultant_client_assignments SET status = 'INACTIVE'",
        "UPDATE users SET deleted_at = now(); UPDATE consultant_client_assignments SET status = 'INACTIVE'",
        f"UPDATE companies SET deleted_at = '{AS_OF}' WHERE name = 'Acme'",
    ],
    ids=["the role is lost", "not active", "deleted", "the client is deleted"],
)
def test_figures_of_a_client_that_is_gone_are_removed(rows: Consultancy, ends: str, sync_type: str) -> None:
    """Whoever is skipped as no consultant, and whatever part is asked for, keeps no other company's figures."""
    rows.sync()
    for statement in ends.split("; "):
        rows.run_sql(statement)
    assert rows.sync(AS_OF + DAY, sync_type=sync_type).counts["clients_removed"] == 1
    assert not rows.all("consultant_dashboard")


def test_a_client_that_is_to_be_deleted_later_is_one_still(rows: Consultancy) -> None:
    """As of the day of the run, not of today."""
    rows.sync()
    rows.change("companies", rows.company, deleted_at=AS_OF + 2 * DAY)
    assert rows.sync(AS_OF + DAY).counts["clients_removed"] == 0
    assert rows.seen().synced_at == AS_OF + DAY


@pytest.mark.parametrize("sync_type", ["ASSIGNMENTS", "DASHBOARD", "FULL"])
@pytest.mark.parametrize("named", [True, False])
def test_a_consultant_asks_for_the_own_clients(rows: Consultancy, sync_type: str, named: bool) -> None:  # noqa: FBT001 - a case
    """Ruling 14: the books are the service's, and whose they are the consultant's own claims decide."""
    second = rows.consultant("second")
    rows.assign(second)
    gone = rows.add("companies", name="Gone", deleted_at=AS_OF)
    mine, theirs = rows.assign(rows.cora, gone), rows.assign(second, gone)
    rows.deadline(-1)
    run = rows.ask(rows.cora, sync_type=sync_type, consultant_id=str(rows.cora) if named else None)
    assert run.counts["failed"] == 0
    assert {row.consultant_id for row in rows.all("consultant_dashboard")} == (
        set() if sync_type == "ASSIGNMENTS" else {rows.cora}
    )
    assert rows.statuses()[mine][0] == ("ACTIVE" if sync_type == "DASHBOARD" else "INACTIVE")
    assert rows.statuses()[theirs][0] == "ACTIVE"
    assert {row.user_id for row in rows.all("notifications")} == (
        {rows.cora} if sync_type == "FULL" else set()
    )
    if sync_type != "ASSIGNMENTS":
        assert rows.seen().overdue_count == 1


def test_nobody_asks_for_another_consultants(rows: Consultancy) -> None:
    """The payload widens nothing: it is refused for good, and no row is touched."""
    second = rows.consultant("second")
    rows.assign(second)
    for sync_type in ("ASSIGNMENTS", "DASHBOARD", "FULL"):
        with pytest.raises(BadInput, match="may not sync"):
            rows.ask(second, sync_type=sync_type, consultant_id=str(rows.cora))
    owner = rows.user("owner", "OWNER")
    run = rows.ask(owner)
    assert run.notes
    assert not rows.all("consultant_dashboard")


def test_the_summary(rows: Consultancy) -> None:
    """Once a day, over all clients, to the consultant alone; none to who has no client."""
    rows.consultant("idle")
    other = rows.add("companies", name="Second client")
    rows.assign(rows.cora, other)
    rows.deadline(-1)
    rows.deadline(3)
    rows.sync()
    rows.sync(AS_OF + timedelta(hours=1))
    told = rows.all("notifications")
    assert {(row.recipient_email, row.channel, row.priority) for row in told} == {
        ("cora@ecocomply.test", "IN_APP", "LOW"),
        ("cora@ecocomply.test", "EMAIL", "LOW"),
    }
    assert {row.body_text for row in told} == {
        "Your dashboard is up to date: 2 companies, 1 overdue deadline, 1 deadline in the next 30 days."
    }
    rows.sync(AS_OF + DAY)
    assert len(rows.all("notifications")) == 2 * len(told)


def test_a_second_run_writes_nothing(rows: Consultancy) -> None:
    """The same as-of again leaves every row as it is."""
    rows.deadline(-1)
    rows.sync()
    before = [rows.all(table, "id") for table in ("consultant_dashboard", "notifications")]
    assert rows.sync().counts["clients_synced"] == 0
    assert [rows.all(table, "id") for table in ("consultant_dashboard", "notifications")] == before


def test_an_older_day_does_not_undo_a_newer_one(rows: Consultancy) -> None:
    """A backfill of last week must not show last week's figures as today's."""
    rows.deadline(-1)
    rows.sync()
    rows.sync(AS_OF - 7 * DAY)
    assert (rows.seen().overdue_count, rows.seen().synced_at) == (1, AS_OF)
    assert len(rows.all("notifications")) == 2


def test_a_consultant_narrows_it(rows: Consultancy) -> None:
    """Another consultant's rows stay as they are, assignments included."""
    second = rows.consultant("second")
    theirs = rows.assign(second, rows.add("companies", name="Gone", deleted_at=AS_OF))
    rows.assign(second)
    rows.sync(consultant_id=str(rows.cora))
    assert {row.consultant_id for row in rows.all("consultant_dashboard")} == {rows.cora}
    assert rows.statuses()[theirs] == ("ACTIVE", None)


def test_one_consultants_failure_is_a_counted_row(rows: Consultancy) -> None:
    """As ruled: the others are synced, and who failed gets no summary of old figures."""
    second = rows.consultant("second")
    rows.assign(second)
    rows.run_sql(f"ALTER TABLE consultant_dashboard ADD CHECK (consultant_id <> '{rows.cora}')")
    run = rows.sync()
    assert {row.consultant_id for row in rows.all("consultant_dashboard")} == {second}
    assert (run.counts["failed"], run.counts["processed"]) == (1, 1)
    assert {row.recipient_email for row in rows.all("notifications")} == {"second@ecocomply.test"}
