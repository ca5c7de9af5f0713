"""What the pages show: values, reasons, filters, pages of long lists, and hostile text as text."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from fastapi.testclient import TestClient
from markupsafe import escape
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from console.databases import Databases
from include.clearpath.tables import EMAIL_LOG
from include.odd_dates import OddDate
from include.platform.tables import ALERT, RUN_SUMMARY
from tests.console import sample
from tests.console.conftest import Console
from tests.console.sample import DISPATCH, EXPIRY, HOSTILE, number

MAIL = "/almanac/clearpath/mail"
EVERY_MAIL = {
    "sent",
    "duplicate",
    "claimed",
    "coming",
    "retry",
    "cancelled",
    "hostile",
    "unknown",
    "abandoned",
    "due",
}


def words(html: str) -> str:
    """Return a page's text as a reader has it: no tags, no references, single spaces."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def ids(html: str) -> list[str]:
    """Return the mails that a page lists, in their order."""
    return re.findall(r'href="/almanac/clearpath/mail/([0-9a-f-]{36})"', html)


def names(html: str) -> set[str]:
    """Return which of the sample's mails a page lists."""
    by_id = {str(number(name)): name for name in EVERY_MAIL}
    return {by_id[one] for one in ids(html)}


def test_the_mail_log_says_why(reader: TestClient) -> None:
    """The page exists for its sentences: each state of the sample has its own."""
    page = words(reader.get(MAIL).text)
    for sentence in (
        "not sent: session cancelled on 3 March 2027",
        "duplicate of the mail sent on",
        "claimed by run scheduled__2027-03-10T09:00:00+00:00 since",
        "will be tried again after",
        "provider said mailbox is full",
        "given up after three tries: recipient refused",
        "outcome unknown the key has expired, and nobody knows whether it went out; a person decides",
        "waits: due since",
    ):
        assert sentence in page
    assert "waits: due on" not in page


def test_a_paused_queue_is_the_reason_of_what_is_due(console: Console, viewer: TestClient) -> None:
    """Somebody who looks up a late mail must read of the provider's quota, not of the row."""
    sample.pause_queue(console.clearpath.engine, console.now + timedelta(hours=3), "provider quota")
    assert "waits: provider quota until" in words(viewer.get(MAIL, params={"q": "zoe"}).text)


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"due_until": ""}, EVERY_MAIL),
        ({"q": "ADA.byron"}, {"sent", "duplicate", "claimed", "coming", "retry"}),
        ({"q": "zoë"}, {"unknown", "abandoned", "due"}),
        ({"q": '<a href="https'}, {"cancelled", "hostile"}),
        ({"q": "nobody"}, set()),
        ({"q": "%"}, set()),
        ({"q": str(number("sent"))}, {"sent"}),
        ({"q": str(number("zoe session"))}, {"unknown", "abandoned"}),
        ({"q": str(number("zoe"))}, {"unknown", "abandoned", "due"}),
        ({"status": "abandoned"}, {"abandoned"}),
        ({"status": "unknown"}, {"unknown"}),
        ({"status": "queued"}, {"claimed", "coming", "due"}),
        ({"type": "welcome"}, {"due"}),
        ({"type": "no such type"}, set()),
        ({"q": "ada", "status": "queued", "type": "day_80"}, {"coming"}),
    ],
    ids=str,
)  # fmt: skip
def test_the_mail_log_is_narrowed(reader: TestClient, filters: dict[str, str], found: set[str]) -> None:
    """Each filter alone and together; a search by name must not be read as a pattern."""
    assert names(reader.get(MAIL, params=filters).text) == found


def test_the_due_range_has_both_of_its_days(console: Console, viewer: TestClient) -> None:
    """Case T4: the days of the filter are Edmonton's, where an evening is already tomorrow in UTC."""
    put = sample.put
    evening = {"user_id": number("ada"), "email_type": "late", "status": "sent", "sent_at": console.now}
    put(
        console.clearpath.engine,
        EMAIL_LOG,
        evening | {"id": number("late"), "scheduled_at": "2027-03-10T02:00:00Z"},
    )

    def listed(due_from: str, due_until: str) -> list[str]:
        query = {"type": "late", "due_from": due_from, "due_until": due_until}
        return ids(viewer.get(MAIL, params=query).text)

    assert listed("2027-03-09", "2027-03-09") == [str(number("late"))]
    assert listed("2027-03-10", "2027-03-10") == []
    assert listed("2027-03-08", "2027-03-08") == []


def test_what_is_to_come_is_left_out_until_asked_for(reader: TestClient) -> None:
    """The first page must show what has happened; the filled field says what is left out."""
    first = reader.get(MAIL).text
    assert "coming" not in names(first)
    assert re.search(r'name="due_until" value="\d{4}-\d\d-\d\d"', first)
    assert "coming" in names(reader.get(MAIL, params={"status": "queued"}).text)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"status": "lost"}, "status: 'lost' is not one of"),
        ({"due_from": "2027-02-30"}, "due from: '2027-02-30' is no day"),
        ({"due_until": "9999-12-31"}, "due until: 9999-12-31 has no day after it"),
        ({"after": "x", "after_id": str(number("sent"))}, "page: 'x' is no place"),
        ({"after": "2027-03-10T00:00:00", "after_id": str(number("sent"))}, "is no place"),
        ({"after": "", "after_id": "nonsense"}, "page: 'nonsense' is no id"),
        ({"q": "x" * 201}, "201 characters are too many"),
        ({"q": "a\x00b"}, "holds a null character"),
        ({"type": "a\x00b"}, "holds a null character"),
    ],
    ids=str,
)
def test_a_filter_that_can_not_be_is_named(reader: TestClient, query: dict[str, str], said: str) -> None:
    """An address that was edited by hand gets a clear answer, never a stack trace or an empty list."""
    answer = reader.get(MAIL, params=query)
    assert answer.status_code == 422
    assert said in words(answer.text)


@pytest.mark.parametrize("none", [None, OddDate("infinity"), OddDate("0044-03-15 00:00:00+00 BC")], ids=str)
def test_a_long_log_is_paged_to_its_end(console: Console, viewer: TestClient, none: OddDate | None) -> None:
    """Keyset pages: every mail once, in order, among them equal instants and mails without a usable date."""
    same = console.now - timedelta(days=400)
    rows = [
        {"id": number(f"bulk {n}"), "user_id": number("zoe"), "email_type": "bulk", "status": "sent",
         "scheduled_at": none if n < 60 else same if n < 130 else same + timedelta(minutes=n)}
        for n in range(180)
    ]  # fmt: skip
    sample.put(console.clearpath.engine, EMAIL_LOG, *rows)
    seen: list[str] = []
    query: dict[str, Any] = {"type": "bulk"}
    while query:
        page = viewer.get(MAIL, params=query).text
        seen += ids(page)
        assert len(seen) <= 180
        older = re.search(r'href="([^"]*)" rel="next"', page)
        query = dict(parse_qs(urlsplit(unescape(older[1])).query)) if older else {}
    assert len(seen) == 180
    assert set(seen) == {str(row["id"]) for row in rows}


def test_the_next_page_keeps_the_day_that_the_first_began_with(console: Console, viewer: TestClient) -> None:
    """The first page fills in today; without it the second page would jump to what is still to come."""
    rows = [
        {"user_id": number("zoe"), "email_type": "bulk", "status": "sent",
         "scheduled_at": console.now - timedelta(days=1, minutes=n)} for n in range(60)
    ]  # fmt: skip
    sample.put(console.clearpath.engine, EMAIL_LOG, *rows)
    older = re.search(r'href="([^"]*)" rel="next"', viewer.get(MAIL).text)
    assert older is not None
    second = viewer.get(unescape(older[1])).text
    assert len(ids(second)) == 19
    assert str(number("coming")) not in second
    assert 'name="due_until" value="' in second
    assert 'name="due_until" value=""' not in second


def test_a_search_that_nearly_everybody_matches_says_so(console: Console, viewer: TestClient) -> None:
    """Half an answer that looks whole is worse than none."""
    with console.clearpath.engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO users (email, full_name) "
                "SELECT 'crowd' || n || '@example.test', 'Crowd' FROM generate_series(1, 501) AS n"
            )
        )
    assert "More than 500 people match" in words(viewer.get(MAIL, params={"q": "crowd"}).text)
    assert "More than" not in words(viewer.get(MAIL, params={"q": "crowd50"}).text)


def test_a_mail_shows_its_attempts_and_the_message(reader: TestClient) -> None:
    """What went out is what was claimed; the page must show that, not a new rendering."""
    page = reader.get(f"{MAIL}/{number('sent')}").text
    shown = words(page)
    for value in (
        "accepted", "re_7Hq2", "Your radon test is a third of the way", "Reply-To help@clearpath.test",
        "ClearPath RD <radon@clearpath.test>", "Thirty days have passed.", str(number("claim sent")),
    ):  # fmt: skip
        assert value in shown
    frame = re.search(r"<iframe[^>]*>", page)
    assert frame is not None
    assert 'sandbox=""' in frame[0]
    assert f"/message/{number('claim sent')}/0" in frame[0]


def test_a_rejected_attempt_says_what_the_provider_said(reader: TestClient) -> None:
    """The provider's words are what a person acts on."""
    shown = words(reader.get(f"{MAIL}/{number('retry')}").text)
    assert "rejected" in shown
    assert "Provider said: mailbox is full" in shown


def test_a_stored_message_that_can_not_be_read_does_not_break_the_page(
    console: Console, viewer: TestClient
) -> None:
    """A row that another version wrote must not take the whole page with it."""
    with console.clearpath.engine.begin() as connection:
        connection.execute(text("UPDATE email_attempts SET message = '{\"other\": 1}'"))
    assert "can't be read as a message" in words(viewer.get(f"{MAIL}/{number('sent')}").text)
    assert viewer.get(f"{MAIL}/{number('sent')}/message/{number('claim sent')}/0").status_code == 404


def test_the_stored_html_comes_with_nothing_allowed(reader: TestClient) -> None:
    """The message is a stranger's page on our origin: its policy must hold even outside of the frame."""
    answer = reader.get(f"{MAIL}/{number('sent')}/message/{number('claim sent')}/0")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox; default-src 'none';")
    assert "script-src" not in policy
    assert "form-action 'none'" in policy
    assert answer.text == sample.HOSTILE_HTML


def test_a_message_is_found_under_its_own_mail_alone(reader: TestClient) -> None:
    """An address with parts that don't belong together must not show somebody else's message."""
    for mail, batch, position in (
        ("sent", "claim sent", 1),
        ("retry", "claim sent", 0),
        ("sent", "claim open", 0),
    ):
        assert reader.get(f"{MAIL}/{number(mail)}/message/{number(batch)}/{position}").status_code == 404
    assert reader.get(f"{MAIL}/{number('nobody')}").status_code == 404
    assert reader.get(f"{MAIL}/nonsense").status_code == 422


@pytest.mark.parametrize(
    "path",
    [
        "clearpath/mail",
        f"clearpath/mail/{number('hostile')}",
        f"clearpath/mail?q={HOSTILE}",
        "clearpath/certificates",
        f"clearpath/certificates?q={HOSTILE}",
        f"clearpath/lab?reason={HOSTILE}",
        "alerts",
        f"runs/{DISPATCH}/scheduled__2027-03-10T09:00:00+00:00",
        f"runs/{EXPIRY}/manual__2027-03-10T08:00:00+00:00",
    ],
)
def test_hostile_text_is_text(reader: TestClient, path: str) -> None:
    """Case E4: a name that is markup shows as it was written and is no link."""
    html = reader.get(f"/almanac/{path}").text
    assert str(escape(HOSTILE)) in html or "lab?" in path
    assert '<a href="https://evil.test' not in html
    assert "<script>alert" not in html


def test_an_unknown_page_says_so_without_repeating_markup(reader: TestClient) -> None:
    """Case E4, on the pages that nobody thinks of: errors."""
    answer = reader.get(f"/almanac/runs/{DISPATCH}/{HOSTILE.replace('/', '')}")
    assert answer.status_code == 404
    assert '<a href="https:evil' not in answer.text


def test_lab_records_are_listed_by_reason(reader: TestClient) -> None:
    """Open ones alone, the oldest first, with what came."""
    shown = words(reader.get("/almanac/clearpath/lab").text)
    assert shown.index("LR-1001") < shown.index("LR-1002")
    assert "order id CP-ada and kit K-zoe name two sessions" in shown
    assert "LR-0990" not in shown
    assert "tried 3 times" in shown
    one = words(reader.get("/almanac/clearpath/lab", params={"reason": "no_unit"}).text)
    assert "LR-1002" in one
    assert "LR-1001" not in one


def test_runs_show_the_latest_of_every_dag(reader: TestClient) -> None:
    """Counts, state, as-of, notes, a link to Airflow, and the DAGs that have not run."""
    html = reader.get("/almanac/runs").text
    shown = words(html)
    assert "14 processed 9 sent 3 skipped 2 failed 4 deferred" in shown
    assert "clearpath_email is out of reach: HTTP 429 daily quota" in shown
    assert "scheduled__2027-03-10T08:45" not in html
    assert f'href="/dags/{DISPATCH}/runs/scheduled__2027-03-10T09:00:00+00:00"' in html
    assert "clearpath_cnrpp_expiry_alert" in shown[shown.index("Without a run") :]


def test_runs_of_dags_that_the_user_may_not_read_stay_hidden(console: Console, viewer: TestClient) -> None:
    """The list is of the DAGs that Airflow lets the user read, not of what the table holds."""
    foreign = {"dag_id": "another_teams_dag", "run_id": "r", "as_of": console.now, "state": "success"}
    sample.put(console.almanac.engine, RUN_SUMMARY, foreign)
    assert "another_teams_dag" not in viewer.get("/almanac/runs").text


def test_a_dags_runs_are_paged(console: Console, viewer: TestClient) -> None:
    """A DAG that runs every 15 minutes has 35,000 runs a year."""
    rows = [
        {"dag_id": EXPIRY, "run_id": f"bulk {n}", "as_of": console.now, "state": "success",
         "started_at": console.now - timedelta(days=1, minutes=n // 3)}
        for n in range(120)
    ]  # fmt: skip
    sample.put(console.almanac.engine, RUN_SUMMARY, *rows)
    seen: list[str] = []
    url: str | None = f"/almanac/runs/{EXPIRY}"
    while url:
        page = viewer.get(url).text
        seen += re.findall(r">(bulk \d+)<", page)
        assert len(seen) <= 120
        older = re.search(r'href="([^"]*)" rel="next"', page)
        url = unescape(older[1]) if older else None
    assert sorted(seen) == sorted(str(row["run_id"]) for row in rows)


def test_a_preview_is_a_readable_table(reader: TestClient) -> None:
    """Ruling 9: rows per table before and after, messages with recipient and subject, files; exact counts."""
    html = reader.get(f"/almanac/runs/{EXPIRY}/manual__2027-03-10T08:00:00+00:00").text
    shown = words(html)
    assert "test_sessions 0 inserted 731 updated 0 deleted" in shown
    assert "The first 200 of 731 changes" in shown
    assert "status active expired" in shown
    assert "expired_at NULL 2027-03-10T09:00:00+00:00" in shown
    assert "email_type no row day_30" in shown
    assert "Messages 2" in shown
    assert "Your radon test is a third of the way" in shown
    assert "certificates/ada.pdf" in shown
    assert "clearpath_email answers again" in shown
    # The column that stays the same is not listed among the changes.
    assert "address" not in shown


def test_a_run_shows_its_steps(reader: TestClient) -> None:
    """Where a run failed is the first question at night."""
    shown = words(reader.get(f"/almanac/runs/{DISPATCH}/scheduled__2027-03-10T09:00:00+00:00").text)
    assert "settle 1 success 3 processed" in shown
    assert "send 1 failed 14 processed no answer for" in shown


def test_alerts_say_whether_they_reached_anybody(
    console: Console, reader: TestClient, viewer: TestClient
) -> None:
    """Ruling 11: an alert that nobody got is worse than the thing it tells of."""
    shown = words(reader.get("/almanac/alerts").text)
    assert "logged only: ADMIN_ALERT_EMAIL is not set" in shown
    assert "2 tries failed: connection refused" in shown
    assert "clearpath_email out of reach HTTP 429 daily quota" in shown
    told = {"cause": "task:2", "kind": "task", "subject": "of an outage", "body": "b", "delivered_at": console.now,
            "created_at": console.now, "last_error": "told by the alert of the outage"}  # fmt: skip
    sample.put(console.almanac.engine, ALERT, told)
    shown = words(viewer.get("/almanac/alerts").text)
    assert re.search("of an outage.* not mailed told by the alert of the outage", shown), shown
    waiting = words(reader.get("/almanac/alerts", params={"show": "undelivered"}).text)
    assert "connection refused" in waiting
    assert "send failed for good" not in waiting


def test_a_database_out_of_reach_is_said_in_words(console: Console) -> None:
    """At night the console is opened because something is down; it must not be a stack trace then."""
    nowhere = console.clearpath.engine.url.set(query={"host": "/nowhere"})
    console.opened.close()
    console.opened._look_up = lambda _: nowhere  # noqa: SLF001 - what Airflow's connection says from now on
    answer = console.as_user("vera").get("/almanac/clearpath/mail")
    assert answer.status_code == 503
    assert "database:" in answer.text


def test_a_page_changes_nothing_and_takes_no_longer_than_its_limit(console: Console) -> None:
    """A page's mistake must not become the database's: read-only, and stopped after five seconds."""
    opened = console.opened
    with pytest.raises(DBAPIError, match="read-only"), opened.read("clearpath_db") as tx:
        tx.execute(text("DELETE FROM email_log"))
    with opened.read("clearpath_db") as tx:
        assert tx.value(text("SHOW statement_timeout")) == "5s"
    with opened.read("clearpath_db") as tx:
        tx.execute(text("SELECT set_config('statement_timeout', '50ms', true)"))
        with pytest.raises(DBAPIError, match="statement timeout"):
            tx.execute(text("SELECT pg_sleep(2)"))


def test_a_page_that_takes_too_long_is_stopped_and_says_so(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader who waits on a locked table must not hold a connection for ever."""
    monkeypatch.setattr("console.databases.STATEMENT_TIMEOUT_SECONDS", 0.2)
    with console.clearpath.engine.begin() as held:
        held.execute(text("LOCK TABLE email_log IN ACCESS EXCLUSIVE MODE"))
        answer = console.as_user("vera").get(MAIL)
    assert answer.status_code == 503
    assert "was stopped. Narrow it down." in answer.text


def test_a_connection_that_was_changed_is_picked_up(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case R3's other half: a password that was changed in Airflow must not need a restart of the server."""
    urls = [console.clearpath.engine.url, console.almanac.engine.url]
    monkeypatch.setattr("console.databases._LOOK_UP_AGAIN_SECONDS", 0)
    opened = Databases(lambda _: urls[0])
    with opened.read("x") as tx:
        assert tx.value(text("SELECT current_database()")) == urls[0].database
    urls.reverse()
    with opened.read("x") as tx:
        assert tx.value(text("SELECT current_database()")) == urls[0].database
    opened.close()


def test_programs_get_json_where_people_get_pages(console: Console) -> None:
    """A service account that does something wrong must be able to read why."""
    answer = console.as_user("vera").get(f"{MAIL}/{number('nobody')}", headers={"accept": "application/json"})
    assert answer.status_code == 404
    assert answer.json() == {"detail": f"The mail log has no mail {number('nobody')}."}


@pytest.mark.parametrize(
    ("table", "columns", "path"),
    [
        ("email_log", ("scheduled_at", "sent_at", "next_attempt_at"), MAIL),
        ("certificates", ("issued_on", "valid_until", "expired_at"), "/almanac/clearpath/certificates"),
        ("lab_set_aside", ("first_seen_at", "last_tried_at"), "/almanac/clearpath/lab"),
    ],
)
@pytest.mark.parametrize("value", ["infinity", "-infinity", "0044-03-15 BC", "12044-03-15", "0001-01-01"])
def test_a_date_beyond_the_calendar_is_shown_as_text(
    console: Console, viewer: TestClient, table: str, columns: tuple[str, ...], path: str, value: str
) -> None:
    """One such row took the list away from everybody; who looks for it must find it there."""
    with console.clearpath.engine.begin() as connection:
        for column in columns:
            connection.exec_driver_sql(f"UPDATE {table} SET {column} = '{value}'")
    answer = viewer.get(f"{path}?q=")
    assert answer.status_code == 200
    shown = words(answer.text)
    assert value.removesuffix(" BC") in shown or (value == "0001-01-01" and "1 January 1 " in shown)
