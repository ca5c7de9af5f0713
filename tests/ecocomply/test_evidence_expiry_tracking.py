"""Evidence that expires: each mark told of once, to who uploaded it and who is assigned to what it proves."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from include.ecocomply import evidence_expiry_tracking
from include.job import NothingOutside
from include.run import EngineDatabase, Run
from tests.ecocomply.rows import AS_OF, TODAY, Rows

DAY = timedelta(days=1)


@pytest.fixture
def rows(database_of: Callable[..., EngineDatabase]) -> Rows:
    """Make a company with one site and its manager."""
    made = Rows(database_of("ecocomply"))
    made.user("manager", "MANAGER", sites=[made.site])
    return made


def evidence(rows: Rows, days: int | None, **values: Any) -> UUID:
    """Add evidence that expires in so many days."""
    given = {
        "company_id": rows.company, "site_id": rows.site, "file_name": "stack.pdf",
        "expiry_date": None if days is None else TODAY + days * DAY,
    }  # fmt: skip
    return rows.add("evidence_items", **(given | values))


def linked(rows: Rows, item: UUID, user: UUID | None, **link: Any) -> None:
    """Link evidence to an obligation of a user."""
    obligation = rows.add(
        "obligations", company_id=rows.company, site_id=rows.site, summary="Stack test", assigned_to=user
    )
    rows.add("obligation_evidence_links", obligation_id=obligation, evidence_id=item, **link)


def perform(rows: Rows, as_of: datetime = AS_OF) -> Run:
    """Run the job."""
    return rows.perform(evidence_expiry_tracking, NothingOutside(), as_of)


@pytest.mark.parametrize(
    ("days", "priority", "words"),
    [
        (31, None, None),
        (30, "NORMAL", "expires in 30 days"),
        (15, "NORMAL", "expires in 15 days"),
        (14, "NORMAL", "expires in 14 days"),
        (8, "NORMAL", "expires in 8 days"),
        (7, "HIGH", "expires in 7 days"),
        (2, "HIGH", "expires in 2 days"),
        (1, "HIGH", "expires tomorrow"),
        (0, "HIGH", "expires today"),
        (-1, None, None),
        (None, None, None),
    ],
)
def test_marks(rows: Rows, days: int | None, priority: str | None, words: str) -> None:
    """The boundary days; HIGH from 7 days on; what has expired is not told of."""
    key = evidence(rows, days)
    run = perform(rows)
    found = rows.all("notifications", "channel")
    assert [(row.channel, row.priority) for row in found] == (
        [("EMAIL", priority), ("IN_APP", priority)] if priority else []
    )
    assert run.counts["processed"] == (priority is not None)
    for row in found:
        assert (row.notification_type, row.entity_id, row.evidence_id) == ("EVIDENCE_EXPIRING", key, key)
        assert words in row.body_text
    perform(rows)
    assert rows.all("notifications", "channel") == found


def test_day_by_day_each_mark_once(rows: Rows) -> None:
    """Run every day: four times told. After a gap of days the most urgent mark alone."""
    evidence(rows, 31)
    for days in range(40):
        perform(rows, AS_OF + days * DAY)
    mails = [row.subject for row in rows.all("notifications", "created_at") if row.channel == "EMAIL"]
    assert [mail.partition(":")[0].removeprefix("Evidence ") for mail in mails] == [
        "expires in 30 days",
        "expires in 14 days",
        "expires in 7 days",
        "expires tomorrow",
    ]


def test_missed_marks_are_not_told_late(rows: Rows) -> None:
    """Ruling 4: from 31 days to 5 without a run is told of once, as of 7."""
    evidence(rows, 5)
    perform(rows)
    perform(rows)
    assert len(rows.all("notifications")) == 2


def test_an_older_day_tells_of_no_milder_mark(rows: Rows) -> None:
    """After the last week's mark nobody hears of the 30 days' one for the same date; for another date they do."""
    key = evidence(rows, 6)
    perform(rows)
    for days in (4, 10, 20):
        perform(rows, AS_OF - days * DAY)
    assert len(rows.all("notifications")) == 2
    rows.change("evidence_items", key, expiry_date=TODAY + 7 * DAY)
    perform(rows, AS_OF - 20 * DAY)
    assert len(rows.all("notifications")) == 4


def test_a_moved_expiry_is_told_anew(rows: Rows) -> None:
    """The key holds the date."""
    key = evidence(rows, 30)
    perform(rows)
    rows.change("evidence_items", key, expiry_date=TODAY + 29 * DAY)
    perform(rows)
    assert len({row.subject for row in rows.all("notifications")}) == 2


@pytest.mark.parametrize("values", [{"deleted_at": AS_OF}, {"is_archived": True}])
def test_what_is_gone_is_not_told_of(rows: Rows, values: dict[str, Any]) -> None:
    """Deleted softly or archived: nobody has to renew it."""
    evidence(rows, 7, **values)
    perform(rows)
    assert not rows.all("notifications")


def test_uploader_and_assignees_else_the_site(rows: Rows) -> None:
    """All of them, each once; who has left does not count, nor a link that was taken back."""
    ana, bea, gone = rows.user("ana"), rows.user("bea"), rows.user("gone", is_active=False)
    both = evidence(rows, 7, uploaded_by=ana)
    linked(rows, both, bea)
    linked(rows, both, ana)
    linked(rows, both, rows.user("former"), unlinked_at=AS_OF)
    nobody = evidence(rows, 14, uploaded_by=gone)
    linked(rows, nobody, None)
    elsewhere = evidence(rows, 30, site_id=None)
    rows.user("admin", "ADMIN")
    run = perform(rows)
    heard = {(row.entity_id, row.recipient_email.partition("@")[0]) for row in rows.all("notifications")}
    assert heard == {(both, "ana"), (both, "bea"), (nobody, "manager"), (elsewhere, "admin")}
    assert run.counts["notifications"] == 8


def test_another_companys_evidence_is_told_there(rows: Rows) -> None:
    """And a company without anybody is a warning and a count."""
    for number in range(2):
        company = rows.add("companies", name=f"Other {number}")
        site = rows.add("sites", company_id=company, name="Theirs")
        if number:
            rows.user("stranger", "OWNER", company=company)
        evidence(rows, 7, company_id=company, site_id=site)
    run = perform(rows)
    assert {row.recipient_email for row in rows.all("notifications")} == {"stranger@ecocomply.test"}
    assert run.counts["without_recipient"] == 1
