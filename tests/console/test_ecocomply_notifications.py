"""EcoComply's log of notifications: each with its reason in words, narrowed, and the message as it was claimed."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from fastapi.testclient import TestClient

from tests.console.ecocomply_sample import CLOCKS, SECRET, Desk, pages, row_of, words
from tests.console.sample import HOSTILE, number

PAGE = "/almanac/ecocomply/notifications"
ROW = r'href="/almanac/ecocomply/notifications/([0-9a-f-]{36})"'


def listed(html: str) -> set[str]:
    """Return the notifications that a page lists."""
    return set(re.findall(ROW, html))


def ids(*names: str) -> set[str]:
    """Return the ids of the sample's notifications."""
    return {str(number(name)) for name in names}


@pytest.mark.parametrize(
    ("name", "status", "why"),
    [
        ("sent", "SENT", "sent on .*, taken by ecocomply_email"),
        ("off", "CANCELLED", "not sent: the user wants none of this type by EMAIL"),
        ("held", "PENDING", "waits for the daily digest"),
        ("no phone", "FAILED", "not sent: the user has no phone number"),
        (
            "refused",
            "FAILED",
            "given up: refused at the third attempt: no such box; shown in the application instead",
        ),
        ("copy", "DELIVERED", "shown in the application on .*, as a copy: the e-mail failed"),
        (
            "unknown",
            "outcome unknown",
            "outcome unknown: nobody knows whether it arrived: key expired; a person decides",
        ),
        ("again", "RETRYING", "next attempt at .*: refused at attempt 1 of 3: full"),
        ("digested", "DELIVERED", "in the daily digest of the day of .*, sent on"),
        ("paused", "PENDING", "waits: the provider of SMS is left alone until .*: quota is used up"),
        ("pushed", "SENT", "sent on"),
    ],
)
def test_each_says_why(eco_common: Desk, eco_reader: TestClient, name: str, status: str, why: str) -> None:
    """From the row, its digest, its claim, its channel's pause and its copy to one sentence, on both pages."""
    row = row_of(eco_reader.get(PAGE).text, str(number(name)))
    assert re.search(f"{status} .*{why}", row), row
    page = words(eco_reader.get(f"{PAGE}/{number(name)}").text)
    assert re.search(why, page)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"q": "STRANGER"}, set()),
        ({"q": "owner-14@", "status": "CANCELLED"}, {"evil"}),
        ({"q": "olive", "channel": "SMS"}, {"no phone", "paused"}),
        ({"q": str(number("sent"))}, {"sent"}),
        ({"q": str(number("digest"))}, {"digested"}),
        ({"company": HOSTILE, "status": "CANCELLED"}, {"evil"}),
        ({"type": HOSTILE}, {"evil"}),
        ({"status": "RETRYING"}, {"again"}),
        ({"status": "UNKNOWN"}, {"unknown"}),
        ({"channel": "PUSH"}, {"pushed"}),
        ({"company": "acme", "status": "CANCELLED"}, {"off"}),
        ({"q": "%"}, set()),
    ],
    ids=str,
)
def test_the_log_is_narrowed(
    eco_common: Desk, eco_reader: TestClient, query: dict[str, str], found: set[str]
) -> None:
    """Each filter alone and together, words never read as a pattern."""
    assert listed(eco_reader.get(PAGE, params=query).text) == ids(*found)


def test_a_person_or_an_entity_by_its_id(eco_common: Desk, eco_reader: TestClient) -> None:
    """From one notification to all that this person was told."""
    page = eco_reader.get(PAGE, params={"q": str(eco_common.records.stranger)}).text
    assert str(number("evil")) in listed(page)
    assert str(number("sent")) not in listed(page)


def test_the_message_as_it_was_claimed(eco_common: Desk, eco_reader: TestClient) -> None:
    """Byte for byte, in a frame that may do nothing; a notification of a digest has the digest's."""
    for name, batch in (("sent", "batch of sent"), ("digested", "batch of digest")):
        page = eco_reader.get(f"{PAGE}/{number(name)}").text
        source = re.search(r'<iframe class="mail" sandbox=""[^>]*src="([^"]*)"', page)
        assert source is not None
        assert str(number(batch)) in source[1]
        message = eco_reader.get(source[1])
        assert "<h1>Your test is half way</h1>" in message.text
        assert "sandbox; default-src 'none'" in message.headers["content-security-policy"]
    assert "accepted" in words(page)
    assert "of its digest" in words(page)


def test_a_message_of_another_notification_is_not_given(eco_reader: TestClient) -> None:
    """The address says whose message it is: nobody reads one through another's."""
    for path in (
        f"{PAGE}/{number('off')}/message/{number('batch of sent')}/1",
        f"{PAGE}/{number('sent')}/message/{number('batch of sent')}/2",
        f"{PAGE}/{number('pushed')}/message/{number('batch of pushed')}/1",
    ):
        assert eco_reader.get(path).status_code == 404


def test_the_keys_of_devices_are_not_shown(eco_reader: TestClient) -> None:
    """A push message is stored with what opens a person's browser to everybody."""
    page = eco_reader.get(f"{PAGE}/{number('pushed')}").text
    assert "It is due." in words(page)
    assert "1 devices" in words(page)
    assert SECRET not in page
    assert "push.test" not in page


def test_a_copy_and_what_it_is_of_lead_to_each_other(eco_reader: TestClient) -> None:
    """Who reads of a failure sees that the person was told all the same."""
    assert f"{PAGE}/{number('copy')}" in eco_reader.get(f"{PAGE}/{number('refused')}").text
    assert f"{PAGE}/{number('refused')}" in eco_reader.get(f"{PAGE}/{number('copy')}").text


def test_what_was_made_along_with_it_is_no_copy(eco_desk: Desk) -> None:
    """By mail and in the application at once, as most kinds are: the mail that fails later makes no copy."""
    eco_desk.told(
        "mail", dedupe_key="k/2/EMAIL", status="FAILED", status_reason="refused at the third attempt: x"
    )
    eco_desk.told(
        "shown", dedupe_key="k/2/IN_APP", channel="IN_APP", status="DELIVERED", delivered_at=eco_desk.now
    )
    row = row_of(eco_desk.as_user("vera").get(PAGE).text, str(number("shown")))
    assert "shown in the application" in row
    assert "copy" not in row


def test_an_application_that_knows_no_keys_has_copies_too(eco_desk: Desk) -> None:
    """The database's trigger makes the copy, and the page finds it."""
    eco_desk.told("keyless", created_at=eco_desk.now - timedelta(days=1))
    eco_desk.records.execute(
        "UPDATE notifications SET status = 'FAILED', status_reason = 'bounced' WHERE id = :id",
        id=number("keyless"),
    )
    reader = eco_desk.as_user("vera")
    page = reader.get(PAGE).text
    assert "not sent: bounced; shown in the application instead" in row_of(page, str(number("keyless")))
    assert words(page).count("waits: the next run shows it, as a copy: the e-mail failed") == 1


def test_what_was_not_made_is_said(eco_reader: TestClient) -> None:
    """Told before, or nobody in the role: no row says so, the runs' counts do."""
    page = eco_reader.get(PAGE).text
    assert f"{CLOCKS} 3 already told: the same person, channel and date or window had one" in words(page)
    assert f"{CLOCKS} 1 nobody in the role, nor in the roles it falls to" in words(page)
    assert f"{CLOCKS} 9" not in words(page)


def test_hostile_text_stays_text(eco_reader: TestClient) -> None:
    """Case E4: names, subjects, bodies, reasons, types and links are other people's words."""
    for address in (
        PAGE,
        f"{PAGE}?q={HOSTILE.replace('&', '%26')}&type={HOSTILE}",
        f"{PAGE}/{number('evil')}",
    ):
        page = eco_reader.get(address).text
        assert "evil.test" in page
        assert '<a href="https://evil.test">' not in page


def test_long_lists_come_in_pages(eco_desk: Desk) -> None:
    """Each notification once, though all were made at one instant; the filter stays on every page."""
    for n in range(101):
        eco_desk.told(f"bulk {n}", notification_type="BULK", created_at=eco_desk.now)
    found, count = pages(eco_desk.as_user("vera"), f"{PAGE}?type=BULK", ROW)
    assert (count, len(found), set(found)) == (3, 101, ids(*(f"bulk {n}" for n in range(101))))


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"{PAGE}/{number('nobody')}", 404),
        (f"{PAGE}/nonsense", 422),
        (f"{PAGE}?channel=PIGEON", 422),
        (f"{PAGE}?status=LOST", 422),
        (f"{PAGE}?after=x&after_id={number('nobody')}", 422),
        (f"{PAGE}?q={'x' * 201}", 422),
        (f"{PAGE}?q=%00", 422),
    ],
)
def test_what_is_not_there(eco_reader: TestClient, path: str, status: int) -> None:
    """A made-up address gets a sentence, never a stack."""
    assert eco_reader.get(path).status_code == status
