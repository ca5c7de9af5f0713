"""Gaps: kind by the evidence, severity by the days, one open gap a deadline, and who hears of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from include.ecocomply import evidence_gap_detection
from include.job import NothingOutside
from include.run import EngineDatabase, Run
from tests.ecocomply.rows import AS_OF, TODAY, Rows

ALL: dict[str, Any] = {"company_id": None, "look_ahead_days": 30}
DAY = timedelta(days=1)
APPROVED: dict[str, Any] = {"validation_status": "APPROVED"}
PAST: dict[str, Any] = {"expiry_date": TODAY - DAY}


@pytest.fixture
def rows(database_of: Callable[..., EngineDatabase]) -> Rows:
    """Make a company with one site and its manager."""
    made = Rows(database_of("ecocomply"))
    made.user("manager", "MANAGER", sites=[made.site])
    return made


def deadline(rows: Rows, days: int, status: str = "PENDING", /, **obligation: Any) -> UUID:
    """Add an obligation with a deadline in so many days; return the deadline."""
    given = {"company_id": rows.company, "site_id": rows.site, "summary": "Stack test"}
    key = rows.add("obligations", **(given | obligation))
    return rows.add("deadlines", obligation_id=key, due_date=TODAY + days * DAY, status=status)


def evidence(rows: Rows, key: UUID, *, unlinked: bool = False, **values: Any) -> UUID:
    """Add evidence of a deadline's obligation."""
    (obligation,) = (row.obligation_id for row in rows.all("deadlines") if row.id == key)
    given = {"company_id": rows.company, "site_id": rows.site, "file_name": "stack.pdf"}
    item = rows.add("evidence_items", **(given | values))
    rows.add(
        "obligation_evidence_links",
        obligation_id=obligation,
        evidence_id=item,
        unlinked_at=AS_OF if unlinked else None,
    )
    return item


def perform(rows: Rows, as_of: datetime = AS_OF, **params: Any) -> Run:
    """Run the job for every company, unless told otherwise."""
    return rows.perform(evidence_gap_detection, NothingOutside(), as_of, **(ALL | params))


def gaps(rows: Rows) -> list[tuple[str, str, bool]]:
    """Return kind, severity and whether it is resolved, of all gaps in the order in which they were found."""
    found = rows.all("evidence_gaps", "detected_at")
    return [(row.gap_type, row.severity, row.resolved_at is not None) for row in found]


@pytest.mark.parametrize(
    ("days", "severity"),
    [
        (0, "CRITICAL"),
        (7, "CRITICAL"),
        (8, "HIGH"),
        (14, "HIGH"),
        (15, "MEDIUM"),
        (30, "MEDIUM"),
        (31, None),
        (-1, None),
    ],
)
def test_severity_without_evidence(rows: Rows, days: int, severity: str | None) -> None:
    """The boundary days; counts are by severity, and the gap is of the run's own instant."""
    key = deadline(rows, days)
    run = perform(rows)
    assert gaps(rows) == ([("NO_EVIDENCE", severity, False)] if severity else [])
    assert run.counts["gaps_detected"] == (severity is not None)
    for word in ("CRITICAL", "HIGH", "MEDIUM", "LOW"):
        assert run.counts[word.lower()] == (severity == word)
    for row in rows.all("evidence_gaps"):
        assert (row.deadline_id, row.detected_at, row.site_id) == (key, AS_OF, rows.site)


@pytest.mark.parametrize(("days", "found"), [(31, True), (60, True), (61, False)])
def test_beyond_thirty_days_it_is_low(rows: Rows, days: int, *, found: bool) -> None:
    """Who looks further ahead than the severities reach finds gaps that are LOW."""
    deadline(rows, days)
    perform(rows, look_ahead_days=60)
    assert gaps(rows) == ([("NO_EVIDENCE", "LOW", False)] if found else [])


@pytest.mark.parametrize(
    ("items", "kind"),
    [
        ([], "NO_EVIDENCE"),
        ([APPROVED | {"unlinked": True}], "NO_EVIDENCE"),
        ([APPROVED | {"deleted_at": AS_OF}], "NO_EVIDENCE"),
        ([APPROVED | {"is_archived": True}], "NO_EVIDENCE"),
        ([APPROVED | PAST], "EXPIRED_EVIDENCE"),
        ([APPROVED | PAST, APPROVED | {"deleted_at": AS_OF}], "EXPIRED_EVIDENCE"),
        ([{}], "INSUFFICIENT_EVIDENCE"),
        ([{"validation_status": "REJECTED"}], "INSUFFICIENT_EVIDENCE"),
        ([{}, APPROVED | PAST], "INSUFFICIENT_EVIDENCE"),
        ([APPROVED], None),
        ([APPROVED | {"expiry_date": TODAY}], None),
        ([APPROVED, APPROVED | PAST, {}], None),
    ],
)
def test_kind_by_the_evidence(rows: Rows, items: list[dict[str, Any]], kind: str | None) -> None:
    """Sufficient is one live item that was approved; live but none approved is insufficient; both are LOW."""
    key = deadline(rows, 5)
    for item in items:
        evidence(rows, key, **item)
    perform(rows)
    severity = "CRITICAL" if kind == "NO_EVIDENCE" else "LOW"
    assert gaps(rows) == ([(kind, severity, False)] if kind else [])


@pytest.mark.parametrize(
    ("status", "obligation"),
    [
        ("COMPLETED", {}),
        ("NOT_APPLICABLE", {}),
        ("PENDING", {"evidence_required": False}),
        ("PENDING", {"status": "COMPLETED"}),
        ("PENDING", {"status": "NOT_APPLICABLE"}),
        ("PENDING", {"deleted_at": AS_OF}),
    ],
)
def test_what_needs_no_evidence(rows: Rows, status: str, obligation: dict[str, Any]) -> None:
    """It has no gap; one that it had is resolved as of the run."""
    deadline(rows, 5, status, **obligation)
    key = deadline(rows, 6)
    perform(rows)
    assert gaps(rows) == [("NO_EVIDENCE", "CRITICAL", False)]
    (obligation_id,) = (row.obligation_id for row in rows.all("deadlines") if row.id == key)
    rows.change("deadlines", key, status=status)
    if obligation:
        rows.change("obligations", obligation_id, **obligation)
    run = perform(rows, AS_OF + DAY)
    (gap,) = rows.all("evidence_gaps")
    assert gap.resolved_at == AS_OF + DAY
    assert run.counts["gaps_resolved"] == 1


def test_it_becomes_graver_in_the_same_row(rows: Rows) -> None:
    """From day to day: MEDIUM, HIGH, CRITICAL, and CRITICAL still when the deadline has passed."""
    deadline(rows, 15)
    seen = []
    for days in (0, 1, 7, 8, 15, 16, 40):
        perform(rows, AS_OF + days * DAY)
        seen.append(gaps(rows))
    words = ["MEDIUM", "HIGH", "HIGH", "CRITICAL", "CRITICAL", "CRITICAL", "CRITICAL"]
    assert seen == [[("NO_EVIDENCE", word, False)] for word in words]


def test_passed_and_not_completed_it_is_critical(rows: Rows) -> None:
    """Whatever was missing: evidence that waits for approval is LOW only while there is time."""
    key = deadline(rows, 3)
    evidence(rows, key)
    perform(rows, AS_OF + 3 * DAY)
    assert gaps(rows) == [("INSUFFICIENT_EVIDENCE", "LOW", False)]
    rows.change("deadlines", key, status="OVERDUE")
    perform(rows, AS_OF + 4 * DAY)
    assert gaps(rows) == [("INSUFFICIENT_EVIDENCE", "CRITICAL", False)]
    assert {row.priority for row in rows.all("notifications")} == {"URGENT"}


def test_only_worse_is_taken(rows: Rows) -> None:
    """A file that nobody has approved makes it another kind, and no milder; nobody is told again."""
    key = deadline(rows, 5)
    perform(rows)
    told = rows.all("notifications", "id")
    evidence(rows, key)
    run = perform(rows)
    assert gaps(rows) == [("INSUFFICIENT_EVIDENCE", "CRITICAL", False)]
    assert rows.all("notifications", "id") == told
    assert run.counts["gaps_updated"] == 1


@pytest.mark.parametrize(
    ("days", "severity", "subjects"),
    [
        (40, "LOW", 1),
        (20, "MEDIUM", 1),
        (10, "HIGH", 2),
        (6, "CRITICAL", 2),
    ],
)
def test_a_moved_date_starts_anew(rows: Rows, days: int, severity: str, subjects: int) -> None:
    """What was grave for the former date is as grave as the new one is near, and people are told for it."""
    key = deadline(rows, 5)
    perform(rows)
    rows.change("deadlines", key, due_date=TODAY + days * DAY)
    perform(rows)
    assert gaps(rows) == [("NO_EVIDENCE", severity, False)]
    found = [row for row in rows.all("notifications") if row.channel == "EMAIL"]
    assert len({row.dedupe_key for row in found}) == subjects
    before = rows.all("evidence_gaps", "id"), rows.all("notifications", "id")
    perform(rows)
    assert (rows.all("evidence_gaps", "id"), rows.all("notifications", "id")) == before
    perform(rows, AS_OF + (days + 1) * DAY)
    assert gaps(rows) == [("NO_EVIDENCE", "CRITICAL", False)]
    assert any(f"{TODAY + days * DAY}" in row.dedupe_key for row in rows.all("notifications"))


def test_an_overdue_deadline_that_is_moved_has_its_gap(rows: Rows) -> None:
    """The date decides, whatever the status still says."""
    deadline(rows, 5, "OVERDUE")
    perform(rows)
    assert gaps(rows) == [("NO_EVIDENCE", "CRITICAL", False)]


def test_evidence_resolves_it_and_a_new_lack_is_a_new_gap(rows: Rows) -> None:
    """Approved evidence ends the gap as of the run; when it expires there is another one."""
    key = deadline(rows, 20)
    perform(rows)
    evidence(rows, key, **APPROVED, expiry_date=TODAY + 2 * DAY)
    run = perform(rows, AS_OF + DAY)
    assert run.counts["gaps_resolved"] == 1
    (gap,) = rows.all("evidence_gaps")
    assert gap.resolved_at == AS_OF + DAY
    perform(rows, AS_OF + 2 * DAY)
    perform(rows, AS_OF + 3 * DAY)
    assert gaps(rows) == [("NO_EVIDENCE", "MEDIUM", True), ("EXPIRED_EVIDENCE", "LOW", False)]


def test_an_earlier_day_undoes_nothing(rows: Rows) -> None:
    """A run that is made up for leaves what was found after its day."""
    key = deadline(rows, 20)
    evidence(rows, key, **APPROVED, expiry_date=TODAY)
    perform(rows, AS_OF + DAY)
    before = rows.all("evidence_gaps")
    perform(rows)
    assert rows.all("evidence_gaps") == before
    assert gaps(rows) == [("EXPIRED_EVIDENCE", "LOW", False)]


@pytest.mark.parametrize(("days", "priority"), [(5, "URGENT"), (10, "HIGH"), (20, None)])
def test_who_hears(rows: Rows, days: int, priority: str | None) -> None:
    """The assignee and the site's managers, of CRITICAL and HIGH alone, once each."""
    deadline(rows, days, assigned_to=rows.user("ana"))
    run = perform(rows)
    found = rows.all("notifications")
    assert {(row.recipient_email.partition("@")[0], row.priority) for row in found} == (
        {("ana", priority), ("manager", priority)} if priority else set()
    )
    assert run.counts["notifications_sent"] == len(found) == (4 if priority else 0)
    (gap,) = rows.all("evidence_gaps")
    assert {(row.entity_type, row.entity_id) for row in found} <= {("evidence_gap", gap.id)}
    perform(rows)
    assert len(rows.all("notifications")) == len(found)


def test_each_degree_is_told_once(rows: Rows) -> None:
    """From MEDIUM, of which nobody hears, to HIGH and CRITICAL, of which people hear once each."""
    deadline(rows, 15)
    for hours in range(0, 24 * 20, 12):
        perform(rows, AS_OF + timedelta(hours=hours))
    mails = [row.subject for row in rows.all("notifications", "created_at") if row.channel == "EMAIL"]
    assert mails == ["Evidence Gap (HIGH): Stack test", "Evidence Gap (CRITICAL): Stack test"]


def test_nobody_to_tell(rows: Rows) -> None:
    """A warning and a count; the gap is there all the same."""
    company = rows.add("companies", name="Empty")
    site = rows.add("sites", company_id=company, name="Nowhere")
    deadline(rows, 5, company_id=company, site_id=site)
    run = perform(rows)
    assert run.counts["without_recipient"] == run.counts["gaps_detected"] == 1


def test_a_second_run_writes_nothing(rows: Rows) -> None:
    """It runs four times a day over everything."""
    for days in (5, 10, 20):
        evidence(rows, deadline(rows, days))
        deadline(rows, days)
    perform(rows)
    before = rows.all("evidence_gaps", "id"), rows.all("notifications", "id")
    run = perform(rows)
    assert (rows.all("evidence_gaps", "id"), rows.all("notifications", "id")) == before
    assert not run.counts["gaps_updated"]


def test_a_company_narrows_it(rows: Rows) -> None:
    """Another company's gaps are neither found nor resolved."""
    company = rows.add("companies", name="Other")
    site = rows.add("sites", company_id=company, name="Theirs")
    mine = deadline(rows, 20)
    perform(rows)
    evidence(rows, mine, **APPROVED)
    deadline(rows, 20)
    theirs = deadline(rows, 20, company_id=company, site_id=site)
    perform(rows, company_id=str(company))
    found = {(row.deadline_id, row.resolved_at) for row in rows.all("evidence_gaps")}
    assert found == {(mine, None), (theirs, None)}


def test_a_bad_row_stands_alone(rows: Rows) -> None:
    """Ruling 6: a gap that the database refuses is counted; the others of its chunk are found."""
    keys = [deadline(rows, 5) for _ in range(3)]
    rows.run_sql(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'this row is bad' USING ERRCODE = '23514'; END $$"
    )
    rows.run_sql(
        f"CREATE TRIGGER refuse BEFORE INSERT ON evidence_gaps FOR EACH ROW WHEN (NEW.deadline_id = '{keys[1]}') "
        "EXECUTE FUNCTION refuse()"
    )
    run = perform(rows)
    assert run.counts["failed"] == 1
    assert {row.deadline_id for row in rows.all("evidence_gaps")} == {keys[0], keys[2]}
