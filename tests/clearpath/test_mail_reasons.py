"""Every state that a mail can be in has a sentence, and the sentence says why."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from include.clearpath import ZONE
from include.clearpath.mail_reasons import MailState, reason
from include.clearpath.tables import EMAIL_STATUSES

# 14:00 in Edmonton, on UTC-6 all year.
NOW = datetime(2027, 3, 10, 20, tzinfo=UTC)
HOUR = timedelta(hours=1)
DUE, COMING = NOW - HOUR, NOW + 48 * HOUR

CASES: list[tuple[str, dict[str, Any], str]] = [
    ("sent", {"sent_at": NOW}, "sent on 10 March 2027, 14:00"),
    ("sent", {}, "sent; nobody wrote down when"),
    ("sent", {"sent_at": NOW, "outcome_unknown": True}, "sent on 10 March 2027, 14:00"),
    (
        "failed",
        {"outcome_unknown": True, "permanent": True, "last_error": "begun and never answered"},
        "outcome unknown: begun and never answered; a person decides",
    ),
    ("queued", {"outcome_unknown": True}, "outcome unknown: no reason was given; a person decides"),
    (
        "cancelled",
        {"status_reason": "session cancelled on 2027-03-03"},
        "not sent: session cancelled on 3 March 2027",
    ),
    ("cancelled", {"status_reason": "tidied up on 2027-02-30"}, "not sent: tidied up on 2027-02-30"),
    ("cancelled", {}, "not sent: cancelled"),
    ("duplicate", {"twin_sent_at": DUE}, "duplicate of the mail sent on 10 March 2027, 13:00"),
    ("duplicate", {"status_reason": "twice among the due"}, "duplicate: twice among the due"),
    ("duplicate", {}, "duplicate: another mail of its kind goes out in its place"),
    (
        "abandoned",
        {"retry_count": 3, "last_error": "mailbox is full."},
        "given up after three tries: mailbox is full",
    ),
    ("abandoned", {"retry_count": 1}, "given up after one try: no reason was given"),
    ("abandoned", {"retry_count": 12, "last_error": "no"}, "given up after 12 tries: no"),
    (
        "queued",
        {"claimed_by": "scheduled__2027", "claimed_at": DUE, "last_error": "HTTP 500"},
        "claimed by run scheduled__2027 since 10 March 2027, 13:00",
    ),
    (
        "failed",
        {"permanent": True, "last_error": "template day_30: no name"},
        "not sent, and not tried again: template day_30: no name",
    ),
    ("failed", {"retry_count": 3, "last_error": "full"}, "given up after three tries: full"),
    (
        "failed",
        {"retry_count": 1, "next_attempt_at": NOW + HOUR / 4, "last_error": "full"},
        "will be tried again after 10 March 2027, 14:15: provider said full",
    ),
    (
        "failed",
        {"retry_count": 1, "next_attempt_at": DUE, "last_error": "full"},
        "will be tried again by the next run: provider said full",
    ),
    (
        "failed",
        {"retry_count": 1, "next_attempt_at": NOW + HOUR, "last_error": "full", "paused_until": COMING},
        "will be tried again after 12 March 2027, 14:00 (the queue is paused): provider said full",
    ),
    (
        "failed",
        {"retry_count": 1, "next_attempt_at": COMING, "last_error": "full", "paused_until": NOW + HOUR},
        "will be tried again after 12 March 2027, 14:00: provider said full",
    ),
    ("queued", {"scheduled_at": COMING}, "waits: due on 12 March 2027, 14:00"),
    ("queued", {"scheduled_at": None}, "waits: has no date on which it is due, so no run takes it"),
    ("queued", {}, "waits: due since 10 March 2027, 13:00, the next run takes it"),
    ("queued", {"last_error": "HTTP 503"}, "waits: the next run tries again: HTTP 503"),
    (
        "queued",
        {"paused_until": NOW + 4 * HOUR, "pause_reason": "provider quota"},
        "waits: provider quota until 10 March 2027, 18:00",
    ),
    (
        "queued",
        {"scheduled_at": COMING, "paused_until": NOW + 4 * HOUR, "pause_reason": "provider quota"},
        "waits: due on 12 March 2027, 14:00",
    ),
    (
        "queued",
        {"scheduled_at": NOW + HOUR, "paused_until": COMING, "pause_reason": "provider quota"},
        "waits: provider quota until 12 March 2027, 14:00",
    ),
    (
        "queued",
        {"paused_until": NOW, "pause_reason": "over"},
        "waits: due since 10 March 2027, 13:00, the next run takes it",
    ),
    ("bounced", {}, "in a status that this console does not know: bounced"),
]


@pytest.mark.parametrize(("status", "known", "sentence"), CASES)
def test_the_reason_in_words(status: str, known: dict[str, Any], sentence: str) -> None:
    """A person who looks up a mail must not have to know what a flag or a column means."""
    said: dict[str, Any] = {"status": status, "scheduled_at": DUE} | known
    assert reason(MailState(**said), NOW, ZONE) == sentence


def test_every_status_has_a_case() -> None:
    """A status that is added later must get its sentence."""
    assert {status for status, _, _ in CASES} >= set(EMAIL_STATUSES)


def test_days_are_local() -> None:
    """Case T4: what happened at 02:00Z on 10 March happened on 9 March in Edmonton."""
    mail = MailState(status="sent", scheduled_at=DUE, sent_at=datetime(2027, 3, 10, 2, tzinfo=UTC))
    assert reason(mail, NOW, ZONE) == "sent on 9 March 2027, 20:00"
