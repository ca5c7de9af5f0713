"""Who is told what, by which channels, and once: the ground on which every job of EcoComply tells people."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from typing import Any
from uuid import uuid4

import pytest
from msgspec.structs import replace
from sqlalchemy import text

from include.ecocomply import recipients
from include.ecocomply.access import act_as_user
from include.ecocomply.notices import Notice, notify, tell
from include.ecocomply.recipients import Rule
from include.errors import BadInput
from include.isolation import each_chunk
from include.run import EngineDatabase, Transaction
from tests.ecocomply.rows import TODAY, Rows


@pytest.fixture
def rows(database_of: Callable[..., EngineDatabase]) -> Rows:
    """Make a company with one site, and nobody in it."""
    return Rows(database_of("ecocomply"))


ALL = (
    "owner", "admin", "manager", "site_manager", "lead", "officer", "staff", "site_staff", "assignee", "consultant",
)  # fmt: skip


def people(rows: Rows, but: str = "") -> dict[str, Any]:
    """Make a company full of people, and another with one of each; leave out those named in `but`."""
    here = {"sites": [rows.site]}
    wanted: dict[str, tuple[str, dict[str, Any]]] = {
        "owner": ("OWNER", {}), "admin": ("ADMIN", {}), "manager": ("MANAGER", {}), "site_manager": ("MANAGER", here),
        "lead": ("TEAM_LEAD", {}), "officer": ("COMPLIANCE_OFFICER", {}), "staff": ("STAFF", {}),
        "site_staff": ("STAFF", here), "assignee": ("STAFF", {}),
    }  # fmt: skip
    made = {
        name: rows.user(name, role, **more)
        for name, (role, more) in wanted.items()
        if name not in but.split()
    }
    other = rows.add("companies", name="Other")
    theirs = rows.add("sites", company_id=other, name="Theirs")
    for role in ("OWNER", "ADMIN", "MANAGER", "TEAM_LEAD", "COMPLIANCE_OFFICER", "STAFF"):
        rows.user(f"other_{role}", role, company=other, sites=[theirs])
    consultant = rows.user("consultant", "CONSULTANT", company=other)
    status = "INACTIVE" if "consultant" in but.split() else "ACTIVE"
    rows.add(
        "consultant_client_assignments", consultant_id=consultant, company_id=rows.company, status=status
    )
    return made | {"consultant": consultant}


def told(rows: Rows) -> list[str]:
    """Return who has a notification in the application, by name."""
    found = rows.run_sql(
        "SELECT DISTINCT u.full_name FROM notifications AS n JOIN users AS u ON u.id = n.user_id ORDER BY 1"
    )
    return list(found.scalars())


@pytest.mark.parametrize(
    ("rule", "but", "who"),
    [
        (recipients.SITE_MANAGERS, "", "site_manager"),
        (recipients.SITE_MANAGERS, "site_manager", "admin"),
        (recipients.SITE_MANAGERS, "site_manager admin", "owner"),
        (recipients.SITE_MANAGERS, "site_manager admin owner", ""),
        (recipients.ASSIGNEE, "", "assignee"),
        (recipients.ASSIGNEE, "assignee", "site_manager"),
        (recipients.ASSIGNEE, "assignee site_manager", "admin"),
        (recipients.ASSIGNEE_AND_SITE_MANAGERS, "", "assignee site_manager"),
        (recipients.NAMED_ALONE, "", "assignee"),
        (recipients.NAMED_ALONE, "assignee", ""),
        (recipients.NAMED_ELSE_ADMINS, "assignee", "admin"),
        (recipients.NAMED_ELSE_ADMINS, "assignee admin", "owner"),
        (recipients.NAMED_ELSE_MANAGERS, "assignee", "manager site_manager"),
        (recipients.NAMED_ELSE_MANAGERS, "assignee manager site_manager", "admin"),
        (recipients.NAMED_ELSE_OWNERS_AND_ADMINS, "", "assignee"),
        (recipients.NAMED_ELSE_OWNERS_AND_ADMINS, "assignee", "admin owner"),
        (recipients.NAMED_ELSE_OWNERS_AND_ADMINS, "assignee owner", "admin"),
        (recipients.OWNERS, "", "owner"),
        (recipients.OWNERS_AND_ADMINS, "", "admin owner"),
        (recipients.OWNERS_AND_ADMINS, "owner", "admin"),
        (recipients.ADMINS, "", "admin"),
        (recipients.MANAGERS, "", "manager site_manager"),
        (recipients.MANAGERS_AND_ADMINS, "", "admin manager site_manager"),
        (recipients.OVERSIGHT, "", "admin manager owner site_manager"),
        (recipients.OVERSIGHT, "admin", "manager owner site_manager"),
        (recipients.ASSIGNEE_AND_OVERSIGHT, "", "admin assignee manager owner site_manager"),
        (recipients.SITE_TEAM, "", "site_manager site_staff"),
        (recipients.SITE_TEAM, "site_manager site_staff", "admin"),
        (recipients.RENEWAL_90, "", "admin owner"),
        (recipients.RENEWAL_30, "", "admin owner site_staff"),
        (recipients.RENEWAL_7, "", "admin owner site_manager site_staff"),
        (recipients.REVIEW_LEVELS[0], "", "lead"),
        (recipients.REVIEW_LEVELS[0], "lead", "manager site_manager"),
        (recipients.REVIEW_LEVELS[0], "lead manager site_manager", "admin"),
        (recipients.REVIEW_LEVELS[0], "lead manager site_manager admin", "owner"),
        (recipients.REVIEW_LEVELS[2], "", "admin officer"),
        (recipients.REVIEW_LEVELS[2], "officer", "admin"),
        ((recipients.role("STAFF"),), "staff site_staff assignee", "admin"),
        (recipients.CLIENTS_CONSULTANTS, "", "consultant"),
        (recipients.CLIENTS_CONSULTANTS, "consultant", ""),
    ],
)
def test_who_is_told(rows: Rows, rule: Rule, but: str, who: str) -> None:
    """Rulings: each rule's own people, a role that falls to the next, and never anybody of another company."""
    made = people(rows, but)
    run = rows.run()
    notify(run, [rows.notice(recipients=rule, named=[made.get("assignee")])])
    assert told(rows) == who.split()
    assert run.counts["without_recipient"] == (not who)


@pytest.mark.parametrize("gone", [{"is_active": False}, {"deleted_at": "2026-01-01T00:00Z"}])
def test_who_has_left_is_not_told(rows: Rows, gone: dict[str, Any]) -> None:
    """Recipients are active users: a group of nobody else falls to the next."""
    made = people(rows)
    rows.change("users", made["assignee"], **gone)
    rows.change("users", made["site_manager"], **gone)
    notify(rows.run(), [rows.notice(named=[made["assignee"]])])
    assert told(rows) == ["admin"]


def test_a_user_of_another_company_is_never_named(rows: Rows) -> None:
    """A row that names a stranger, as an adopted database may, tells the stranger nothing."""
    people(rows)
    stranger = rows.user("stranger", "ADMIN", company=rows.add("companies", name="Third"))
    notify(rows.run(), [rows.notice(named=[stranger])])
    assert told(rows) == ["site_manager"]


@pytest.mark.parametrize("table", ["sites", "companies"])
def test_of_what_is_deleted_nobody_is_told(rows: Rows, table: str, caplog: pytest.LogCaptureFixture) -> None:
    """Obligations and deadlines outlive their site's deletion: a count says so, and no warning each day."""
    ana = rows.user("ana")
    other = rows.add("sites", company_id=rows.company, name="Other")
    gone = rows.site if table == "sites" else rows.company
    rows.run_sql(f"UPDATE {table} SET deleted_at = now() WHERE id = '{gone}'")
    run = rows.run()
    with caplog.at_level(logging.WARNING, "almanac"):
        notify(run, [rows.notice(named=[ana]), rows.notice(named=[ana], site_id=other)])
    of_deleted = 1 if table == "sites" else 2
    assert (run.counts["of_deleted"], run.counts["without_recipient"]) == (of_deleted, 0)
    assert told(rows) == ["ana"] * (of_deleted == 1)
    assert caplog.text == ""


def test_nobody_at_all_is_a_warning_and_a_count(rows: Rows, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever looks after the run sees which entity nobody was told of; the others are told."""
    ana = rows.user("ana")
    run = rows.run()
    lost, found = rows.notice(), rows.notice(named=[ana])
    with caplog.at_level(logging.WARNING, "almanac"):
        notify(run, [lost, found])
    assert (run.counts["without_recipient"], run.counts["notifications"]) == (1, 2)
    assert f"recordId=evidence_reminder of obligation {lost.entity_id}" in caplog.text
    assert str(found.entity_id) not in caplog.text


@pytest.mark.parametrize(
    ("priority", "phone", "channels"),
    [
        ("LOW", "+44", "EMAIL IN_APP"),
        ("NORMAL", "+44", "EMAIL IN_APP"),
        ("HIGH", "+44", "EMAIL IN_APP"),
        ("CRITICAL", "+44", "EMAIL IN_APP SMS"),
        ("URGENT", "+44", "EMAIL IN_APP SMS"),
        ("URGENT", None, "EMAIL IN_APP"),
        ("URGENT", " ", "EMAIL IN_APP"),
    ],
)
def test_the_priority_decides_the_channels(
    rows: Rows, priority: str, phone: str | None, channels: str
) -> None:
    """2.2's matrix; without a phone there is no SMS, which is counted."""
    ana = rows.user("ana", phone=phone)
    run = rows.run()
    notify(run, [rows.notice(named=[ana], priority=priority)])
    assert [row.channel for row in rows.all("notifications", "channel")] == channels.split()
    urgent = priority in ("CRITICAL", "URGENT")
    assert run.counts["without_phone"] == (urgent and not (phone or "").strip())


def test_channels_that_are_named_are_the_channels(rows: Rows) -> None:
    """A kind's own, as the specification has them, or a notice's; one without an address is counted."""
    ana = rows.user("ana", email=" ")
    run = rows.run()
    suggestion = {"module": "Water", "keyword": "effluent", "module_id": uuid4()}
    notify(
        run,
        [
            rows.notice(kind="module_suggestion", named=[ana], values=suggestion),
            rows.notice(named=[ana], channels=["PUSH", "EMAIL"]),
        ],
    )
    assert [row.channel for row in rows.all("notifications", "channel")] == ["IN_APP", "PUSH"]
    assert run.counts["without_email"] == 1


def test_a_notice_is_the_rich_record(rows: Rows) -> None:
    """15.2: everything that an application and the delivery want of it, in words for people and in data."""
    ana = rows.user("ana", phone="+44 1")
    obligation = rows.add("obligations", company_id=rows.company, site_id=rows.site, summary="Stack test")
    notice = rows.notice(
        kind="escalation", entity_id=obligation, obligation_id=obligation, named=[ana], escalation_level=2,
        threshold=2, values={"obligation": "Stack test", "site": "Leeds", "level": 2, "days_overdue": 15},
        metadata={"workflow_id": None, "days_overdue": 15}, channels=["EMAIL"],
    )  # fmt: skip
    notify(rows.run(), [notice])
    (row,) = rows.all("notifications")
    assert (row.notification_type, row.channel, row.priority, row.urgency) == (
        "ESCALATION_ALERT", "EMAIL", "URGENT", 5,
    )  # fmt: skip
    assert (row.company_id, row.site_id, row.obligation_id) == (rows.company, rows.site, obligation)
    assert (row.recipient_email, row.recipient_phone) == ("ana@ecocomply.test", "+44 1")
    assert row.subject == "Level 2 Escalation: Stack test"
    assert row.body_text == "“Stack test” at Leeds is 15 days overdue and has been escalated to level 2."
    assert row.body_html == f"<p>{row.body_text}</p>"
    assert row.action_url == f"https://app.ecocomply.test/sites/{rows.site}/obligations/{obligation}"
    assert (row.is_escalation, row.escalation_level, row.escalation_state) == (True, 2, "ESCALATED_LEVEL_2")
    assert (row.entity_type, row.entity_id) == ("obligation", obligation)
    assert row.metadata == {"workflow_id": None, "days_overdue": 15}
    assert row.variables["days_overdue"] == 15
    assert row.variables["action_url"] == row.action_url
    assert (row.status, row.delivery_status, row.retry_count) == ("PENDING", None, 0)
    assert row.dedupe_key == f"escalation/obligation/{obligation}/2026-11-27/2/{ana}/EMAIL"


def test_told_once(rows: Rows) -> None:
    """Ruling: a rerun adds nothing; another date, threshold, kind or recipient is another notification."""
    ana, bea = rows.user("ana"), rows.user("bea")
    one = {"entity_id": uuid4(), "named": [ana], "channels": ["IN_APP"]}
    first = rows.run()
    notify(first, [rows.notice(**one), rows.notice(**one)])
    again = rows.run()
    notify(again, [rows.notice(**one)])
    assert (first.counts["notifications"], first.counts["already_told"]) == (1, 1)
    assert (again.counts["notifications"], again.counts["already_told"]) == (0, 1)
    more: list[dict[str, Any]] = [
        {"counts_toward": date(2026, 11, 28)}, {"threshold": 7}, {"kind": "evidence_gap"}, {"named": [ana, bea]},
        {"channels": ["EMAIL"]},
    ]  # fmt: skip
    gap = {
        "obligation": "A",
        "site": "B",
        "due_date": TODAY,
        "severity": "HIGH",
        "gap": "none",
        "obligation_id": 1,
    }
    for number, other in enumerate(more, start=2):
        values = {"values": gap} if "kind" in other else {}
        notify(rows.run(), [rows.notice(**(one | other | values))])
        assert len(rows.all("notifications")) == number


def test_one_bad_notice_stands_alone(rows: Rows) -> None:
    """Ruling 6: what can't be worded, and what the database refuses, are counted; the rest are told."""
    ana = rows.user("ana")
    unwritable = rows.notice(named=[ana], obligation_id=uuid4())
    wordless = rows.notice(named=[ana], values={"obligation": "A"})
    of_no_kind = rows.notice(named=[ana], kind="evidence_remainder")
    good = [rows.notice(named=[ana]) for _ in range(9)]
    run = rows.run()
    notify(run, [*good[:4], unwritable, wordless, of_no_kind, *good[4:]])
    assert (run.counts["failed"], run.counts["notifications"]) == (3, 18)


def test_telling_is_part_of_the_jobs_own_transaction(rows: Rows) -> None:
    """A mark that somebody was told and what they were told stand or fall together."""
    ana = rows.user("ana")
    run = rows.run()

    def die() -> None:
        with run.transaction() as tx:
            tell(run, tx, [rows.notice(named=[ana])])
            raise BadInput("the mark can't be written")

    with pytest.raises(BadInput):
        die()
    assert rows.all("notifications") == []


def test_a_users_job_tells_the_own_company_alone(rows: Rows) -> None:
    """Ruling 14: in the user's role the statement works, and sees nobody of another company."""
    ana = rows.user("ana")
    other = rows.add("companies", name="Other")
    boss = rows.user("boss", "OWNER", company=other)
    run = rows.run()
    own, foreign = rows.notice(named=[ana]), rows.notice(company_id=other, site_id=None, named=[boss])

    def change(tx: Transaction, chunk: Sequence[Notice]) -> None:
        act_as_user(tx, ana)
        tell(run, tx, chunk)

    each_chunk(run, [own, replace(foreign, values={**own.values, "site_id": rows.site})], change)
    assert told(rows) == ["ana"]
    assert run.counts["without_recipient"] == 1


def test_whom_a_job_tells_does_not_depend_on_who_started_it(rows: Rows) -> None:
    """A client's user sees no row of its consultants, and they are told all the same: those of the company alone."""
    ana = rows.user("ana")
    office, other = rows.add("companies", name="Consultancy"), rows.add("companies", name="Other")
    cora = rows.user("cora", "CONSULTANT", company=office, phone=" +44 1 ")
    named = [cora]
    for name, client, more in (
        ("of another", other, {}),
        ("former", rows.company, {"status": "INACTIVE"}),
        ("gone", rows.company, {}),
    ):
        user = rows.user(name, "CONSULTANT", company=office, is_active=name != "gone")
        rows.add("consultant_client_assignments", consultant_id=user, company_id=client, **more)
        named.append(user)
    rows.add("consultant_client_assignments", consultant_id=cora, company_id=rows.company)
    found = []
    for by in (None, ana, cora):
        run = rows.run()
        with run.transaction() as tx:
            if by is not None:
                act_as_user(tx, by)
            notice = rows.notice(named=named, channels=["EMAIL", "SMS"])
            tell(run, tx, [notice, rows.notice(recipients=recipients.CLIENTS_CONSULTANTS)])
        found.append(
            sorted((row.user_id, row.channel, row.recipient_email, row.recipient_phone)
                   for row in rows.all("notifications"))
        )  # fmt: skip
        rows.run_sql("DELETE FROM notifications")
    assert found[0] == found[1] == found[2]
    assert {(user, phone) for user, _, _, phone in found[0]} == {(cora, "+44 1")}


def test_who_has_lost_the_consultants_role_is_not_told(rows: Rows) -> None:
    """An assignment is ended by the sync, once a day; what may be seen ends with the role, and so does what is told."""
    office = rows.add("companies", name="Consultancy")
    mere = rows.user("mere", "STAFF", company=office)
    rows.add("consultant_client_assignments", consultant_id=mere, company_id=rows.company)
    notify(rows.run(), [rows.notice(named=[mere])])
    assert told(rows) == []


def test_a_user_may_not_ask_for_the_consultants_of_others(rows: Rows) -> None:
    """The function works with its owner's rights: it must not tell more than the claims allow."""
    other, office = rows.add("companies", name="Other"), rows.add("companies", name="Consultancy")
    ana = rows.user("ana")
    cora = rows.user("cora", "CONSULTANT", company=office)
    for client in (rows.company, other):
        rows.add("consultant_client_assignments", consultant_id=cora, company_id=client)
    with rows.run().transaction() as tx:
        act_as_user(tx, ana)
        seen = tx.rows(text("SELECT company_id, user_id FROM ecocomply_consultants()"))
    assert [tuple(row) for row in seen] == [(rows.company, cora)]


def test_many_are_told_by_few_statements(rows: Rows) -> None:
    """A chunk is one statement, whatever the number of recipients and channels."""
    for name in ("ana", "bea"):
        rows.user(name, "OWNER", phone="+44")
    notices = [rows.notice(recipients=recipients.OWNERS, priority="URGENT") for _ in range(1_001)]
    run = rows.run()
    notify(run, notices)
    assert run.counts["notifications"] == 1_001 * 6


def test_a_role_of_nobodys_is_refused() -> None:
    """A misspelt role would reach nobody, and nobody would know."""
    with pytest.raises(BadInput, match="no role 'BOSS'"):
        recipients.role("BOSS")


def test_days_are_told_by_the_runs_own_day(rows: Rows) -> None:
    """Ruling: the text is real, on every day up to the due date and after it."""
    ana = rows.user("ana")
    for days, said in (
        (7, "in 7 days"),
        (1, "tomorrow"),
        (0, "today"),
        (-1, "yesterday"),
        (-2, "2 days ago"),
    ):
        due = TODAY + timedelta(days=days)
        notify(
            rows.run(),
            [rows.notice(kind="deadline_7", named=[ana], counts_toward=due, channels=["IN_APP"],
                         values={"obligation": "A", "site": "Leeds", "due_date": due, "obligation_id": 1})],
        )  # fmt: skip
        assert rows.all("notifications", "created_at")[-1].subject == f"Due {said}: A"
