"""Every state that a notification can be in has its sentence."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from include.ecocomply.notification_reasons import NOT_MADE, DigestState, NotificationState, reason
from include.ecocomply.tables.notifications import NOTIFICATION_STATUSES

NOW = datetime(2027, 3, 10, 14, 5, tzinfo=UTC)
AGO, LATER = NOW - timedelta(minutes=10), NOW + timedelta(minutes=10)
TODAY = date(2027, 3, 10)
OUT = DigestState("DAILY", TODAY, "sent", NOW)

CASES: dict[str, tuple[dict[str, Any], str]] = {
    "sent": (
        {"status": "SENT", "sent_at": NOW, "delivery_provider": "ecocomply_email"},
        "sent on 10 March 2027, 14:05, taken by ecocomply_email",
    ),
    "sent by an application": ({"status": "SENT"}, "sent; nobody wrote down when"),
    "bounced": (
        {"status": "SENT", "sent_at": NOW, "delivery_status": "BOUNCED"},
        "sent on 10 March 2027, 14:05; then it came back",
    ),
    "delivered by a provider": (
        {"status": "DELIVERED", "sent_at": AGO, "delivered_at": NOW},
        "delivered on 10 March 2027, 14:05, sent on 10 March 2027, 13:55",
    ),
    "shown": (
        {"channel": "IN_APP", "status": "DELIVERED", "delivered_at": NOW},
        "shown in the application on 10 March 2027, 14:05",
    ),
    "copy shown": (
        {"channel": "IN_APP", "status": "DELIVERED", "delivered_at": NOW, "copied_from": "EMAIL"},
        "shown in the application on 10 March 2027, 14:05, as a copy: the e-mail failed",
    ),
    "copy waits": (
        {"channel": "IN_APP", "status_reason": "shown here, since the SMS failed", "copied_from": "SMS"},
        "waits: the next run shows it, as a copy: the SMS failed",
    ),
    "in a digest that is out": (
        {"status": "DELIVERED", "digest": OUT},
        "in the daily digest of the day of 10 March 2027, sent on 10 March 2027, 14:05",
    ),
    "in a digest to come": (
        {"digest": DigestState("WEEKLY", TODAY, "queued")},
        "in the weekly digest of the week of 10 March 2027, which has not gone out yet",
    ),
    "in a claimed digest": (
        {"digest": DigestState("DAILY", TODAY, "queued", claimed_by="run 7")},
        "in the daily digest of the day of 10 March 2027, claimed by run run 7",
    ),
    "in a digest that nobody knows of": (
        {
            "digest": DigestState("DAILY", TODAY, "failed", outcome_unknown=True),
            "status_reason": "nobody knows whether the daily digest arrived: timed out",
        },
        "outcome unknown: nobody knows whether the daily digest arrived: timed out; a person decides",
    ),
    "waits for its digest": (
        {"status_reason": "waits for the weekly digest"}, "waits for the weekly digest",
    ),
    "its digest was refused": (
        {"status_reason": "the daily digest was refused: no such box."},
        "waits for the next digest: the daily digest was refused: no such box",
    ),
    "no digest": (
        {"status_reason": "no digest: the user has no e-mail address"},
        "waits for the next digest: no digest: the user has no e-mail address",
    ),
    "off by preference": (
        {"status": "CANCELLED", "status_reason": "the user wants none of this type by EMAIL"},
        "not sent: the user wants none of this type by EMAIL",
    ),
    "the user has left": (
        {"status": "CANCELLED", "status_reason": "the user is not active any more"},
        "not sent: the user is not active any more",
    ),
    "a client that is lost": (
        {"status": "CANCELLED", "status_reason": "the user no longer looks after this company"},
        "not sent: the user no longer looks after this company",
    ),
    "cancelled by an application": ({"status": "CANCELLED"}, "not sent: cancelled"),
    "no address": (
        {"status": "FAILED", "status_reason": "the user has no e-mail address", "has_copy": True},
        "not sent: the user has no e-mail address; shown in the application instead",
    ),
    "no phone": (
        {"channel": "SMS", "status": "FAILED", "status_reason": "the user has no phone number"},
        "not sent: the user has no phone number",
    ),
    "given up": (
        {"status": "FAILED", "status_reason": "refused at the third attempt: no such box", "has_copy": True},
        "given up: refused at the third attempt: no such box; shown in the application instead",
    ),
    "failed in an application": (
        {"status": "FAILED", "delivery_error": "hard bounce on 2027-03-09"}, "not sent: hard bounce on 9 March 2027",
    ),
    "unknown": (
        {"status": "FAILED", "outcome_unknown": True, "status_reason": "nobody knows whether it arrived: x"},
        "outcome unknown: nobody knows whether it arrived: x; a person decides",
    ),
    "unknown, and then taken": (
        {"status": "SENT", "outcome_unknown": True, "sent_at": NOW}, "sent on 10 March 2027, 14:05",
    ),
    "claimed": (
        {"status": "SENDING", "claimed_by": "run 7", "claimed_at": AGO},
        "claimed by run run 7 since 10 March 2027, 13:55",
    ),
    "on its way without a claim": ({"status": "SENDING"}, "on its way; no claim of it is kept"),
    "next attempt": (
        {"status": "RETRYING", "next_attempt_at": LATER, "status_reason": "refused at attempt 1 of 3: full"},
        "next attempt at 10 March 2027, 14:15: refused at attempt 1 of 3: full",
    ),
    "next attempt now": (
        {"status": "RETRYING", "next_attempt_at": AGO, "status_reason": "refused at attempt 2 of 3: full"},
        "next attempt by the next run: refused at attempt 2 of 3: full",
    ),
    "next attempt after the pause": (
        {
            "status": "RETRYING", "next_attempt_at": AGO, "status_reason": "ecocomply_email is out of reach: 503",
            "paused_until": LATER, "pause_reason": "503",
        },
        "next attempt after 10 March 2027, 14:15 (503): ecocomply_email is out of reach: 503",
    ),
    "paused": (
        {"channel": "SMS", "paused_until": LATER, "pause_reason": "quota is used up"},
        "waits: the provider of SMS is left alone until 10 March 2027, 14:15: quota is used up",
    ),
    "the pause is over": (
        {"paused_until": AGO, "pause_reason": "quota"}, "waits: due since 10 March 2027, 13:55, the next run takes it",
    ),
    "put off": (
        {"status_reason": "ecocomply_email is out of reach: 503"},
        "waits: the next run tries again: ecocomply_email is out of reach: 503",
    ),
    "due": ({}, "waits: due since 10 March 2027, 13:55, the next run takes it"),
    "not due yet": ({"scheduled_for": LATER}, "waits: due on 10 March 2027, 14:15"),
    "due after the pause": (
        {"scheduled_for": LATER, "paused_until": NOW + timedelta(minutes=1)}, "waits: due on 10 March 2027, 14:15",
    ),
    "to be shown": ({"channel": "IN_APP", "status": "QUEUED"}, "waits: the next run shows it"),
    "a word of the application's": ({"status": "PARKED"}, "in a status that this console does not know: PARKED"),
}  # fmt: skip


@pytest.mark.parametrize(("known", "sentence"), CASES.values(), ids=CASES)
def test_the_sentence(known: dict[str, Any], sentence: str) -> None:
    """A person reads it at night instead of the columns that it is made of."""
    given: dict[str, Any] = {"channel": "EMAIL", "status": "PENDING", "scheduled_for": AGO} | known
    assert reason(NotificationState(**given), NOW, ZoneInfo("UTC")) == sentence


def test_every_status_has_one() -> None:
    """A status without a sentence would say that the console does not know it."""
    assert {known.get("status", "PENDING") for known, _ in CASES.values()} - {"PARKED"} == set(
        NOTIFICATION_STATUSES
    )
    for status in NOTIFICATION_STATUSES:
        assert "does not know" not in reason(NotificationState("EMAIL", status), NOW, ZoneInfo("UTC"))


def test_what_leaves_no_row_has_its_words() -> None:
    """`tell` counts these; no row says why, so the page does."""
    assert set(NOT_MADE) == {
        "already_told",
        "without_phone",
        "without_email",
        "of_deleted",
        "without_recipient",
    }
