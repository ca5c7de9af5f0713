"""A small world for the console's pages: one mail of every state, certificates, lab records, runs, alerts."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

from sqlalchemy import Engine, Table, insert

from include.clearpath.tables import (
    CERTIFICATES,
    EMAIL_ATTEMPTS,
    EMAIL_BATCHES,
    EMAIL_LOG,
    JOBS_STATE,
    LAB_SET_ASIDE,
    TEST_SESSIONS,
    USERS,
)
from include.mail import Message
from include.platform.tables import ALERT, OUTAGE, PREVIEW, RUN_STEP, RUN_SUMMARY
from include.stored_message import pack

HOSTILE = '<a href="https://evil.test">Reset</a> & Co'
"""Case E4's name."""

HOSTILE_HTML = (
    "<style>h1{color:#24508f}</style><h1>Your test is half way</h1><p>Thirty days have passed.</p>"
    '<p><a id="out" href="https://evil.test/">A link</a></p>'
    '<img src="https://evil.test/pixel.png" alt="pixel">'
    "<script>document.title='scripted'; parent.postMessage('escaped','*')</script>"
    '<form action="https://evil.test/"><button>Send</button></form>'
)

DISPATCH, RENDERING = "clearpath_email_queue_dispatch", "clearpath_certificate_rendering"
EXPIRY, LAB = "clearpath_session_expiry", "clearpath_lab_result_polling"


def number(text: str) -> uuid.UUID:
    """Return the same id for the same name, every time."""
    return uuid.uuid5(uuid.NAMESPACE_URL, f"https://almanac.test/{text}")


def put(engine: Engine, table: Table, *rows: Mapping[str, Any]) -> None:
    """Insert rows, which need not have the same columns."""
    with engine.begin() as connection:
        for row in rows:
            connection.execute(insert(table), dict(row))


def fill_clearpath(engine: Engine, now: datetime) -> None:
    """Put in people, sessions, mail, certificates and lab records, some days before and after `now`."""
    day = timedelta(days=1)
    put(
        engine,
        USERS,
        {"id": number("ada"), "email": "ada.byron@example.test", "full_name": "Ada Byron"},
        {"id": number("evil"), "email": "evil@example.test", "full_name": HOSTILE},
        {"id": number("zoe"), "email": "zoe.quint@example.test", "full_name": "Zoë Quint"},
    )
    for who, state in (("ada", "active"), ("evil", "cancelled"), ("zoe", "complete")):
        put(
            engine,
            TEST_SESSIONS,
            {
                "id": number(f"{who} session"),
                "user_id": number(who),
                "status": state,
                "clearpath_order_id": f"CP-{who}",
                "kit_serial_number": f"K-{who}",
                "address": f"{len(who)} {HOSTILE if who == 'evil' else 'Jasper Avenue'}, Edmonton",
                "activated_at": now - 40 * day,
                "expected_completion_date": (now + 50 * day).date(),
            },
        )
    _mail(engine, now)
    _certificates(engine, now.date())
    put(
        engine,
        LAB_SET_ASIDE,
        {
            "id": number("lab 1"),
            "lab_record_key": "LR-1001",
            "reason_code": "ambiguous",
            "reason": "order id CP-ada and kit K-zoe name two sessions",
            "excerpt": '{"id": "LR-1001", "order_id": "CP-ada", "kit_serial_number": "K-zoe", "value": 148}',
            "first_seen_at": now - 3 * day,
            "last_tried_at": now - day,
            "tries": 3,
        },
        {
            "id": number("lab 2"),
            "lab_record_key": "LR-1002",
            "reason_code": "no_unit",
            "reason": "the value 4.0 has no unit",
            "excerpt": '{"id": "LR-1002", "note": "<script>alert(1)</script>", "value": "4.0"}',
            "first_seen_at": now - 2 * day,
            "last_tried_at": now - day,
            "tries": 2,
        },
        {
            "id": number("lab 3"),
            "lab_record_key": "LR-0990",
            "reason_code": "unmatched",
            "reason": "was unmatched",
            "excerpt": "{}",
            "first_seen_at": now - 9 * day,
            "last_tried_at": now - day,
            "resolved_at": now - day,
        },
    )


def _mail(engine: Engine, now: datetime) -> None:
    day, ada, session = timedelta(days=1), number("ada"), number("ada session")
    batches = {
        name: {
            "id": number(name),
            "provider": "clearpath_email",
            "run_id": run,
            "claimed_at": at,
            "closed_at": closed,
        }
        for name, run, at, closed in (
            ("claim sent", "scheduled__2027-03-01T09:00:00+00:00", now - 10 * day, now - 10 * day),
            ("claim open", "scheduled__2027-03-10T09:00:00+00:00", now - timedelta(minutes=4), None),
            ("claim rejected", "scheduled__2027-03-09T09:00:00+00:00", now - day, now - day),
        )
    }
    put(engine, EMAIL_BATCHES, *batches.values())
    mail = {"user_id": ada, "test_session_id": session}
    put(
        engine,
        EMAIL_LOG,
        {
            **mail,
            "id": number("sent"),
            "email_type": "day_30",
            "status": "sent",
            "scheduled_at": now - 10 * day,
            "sent_at": now - 10 * day,
            "provider_message_id": "re_7Hq2",
        },
        {
            **mail,
            "id": number("duplicate"),
            "email_type": "day_30",
            "status": "duplicate",
            "scheduled_at": now - 9 * day,
            "status_reason": "already sent",
        },
        {
            **mail,
            "id": number("claimed"),
            "email_type": "day_60",
            "status": "queued",
            "scheduled_at": now - timedelta(hours=1),
            "batch_id": number("claim open"),
        },
        {
            **mail,
            "id": number("coming"),
            "email_type": "day_80",
            "status": "queued",
            "scheduled_at": now + 40 * day,
        },
        {
            **mail,
            "id": number("retry"),
            "email_type": "day_88",
            "status": "failed",
            "scheduled_at": now - day,
            "retry_count": 1,
            "next_attempt_at": now + timedelta(minutes=10),
            "last_error": "mailbox is full",
        },
        {
            "id": number("cancelled"),
            "user_id": number("evil"),
            "test_session_id": number("evil session"),
            "email_type": "day_30",
            "status": "cancelled",
            "scheduled_at": now - 2 * day,
            "status_reason": "session cancelled on 2027-03-03",
        },
        {
            "id": number("hostile"),
            "user_id": number("evil"),
            "test_session_id": number("evil session"),
            "email_type": "day_60",
            "status": "sent",
            "scheduled_at": now - 3 * day,
            "sent_at": now - 3 * day,
        },
        {
            "id": number("unknown"),
            "user_id": number("zoe"),
            "test_session_id": number("zoe session"),
            "email_type": "day_30",
            "status": "failed",
            "permanent": True,
            "outcome_unknown": True,
            "scheduled_at": now - 4 * day,
            "last_error": "the key has expired, and nobody knows whether it went out",
        },
        {
            "id": number("abandoned"),
            "user_id": number("zoe"),
            "test_session_id": number("zoe session"),
            "email_type": "day_60",
            "status": "abandoned",
            "retry_count": 3,
            "scheduled_at": now - 5 * day,
            "last_error": "recipient refused",
        },
        {
            "id": number("due"),
            "user_id": number("zoe"),
            "test_session_id": None,
            "email_type": "welcome",
            "status": "queued",
            "scheduled_at": now - timedelta(minutes=2),
        },
    )
    plain: dict[str, Any] = {"sender": "ClearPath RD <radon@clearpath.test>", "to": "ada.byron@example.test"}
    first = Message(
        **plain,
        subject="Your radon test is a third of the way",
        text="Thirty days have passed.\n",
        html=HOSTILE_HTML,
        headers={"Reply-To": "help@clearpath.test"},
    )
    put(
        engine,
        EMAIL_ATTEMPTS,
        {
            "batch_id": number("claim sent"),
            "position": 0,
            "email_id": number("sent"),
            "message": pack(first),
            "outcome": "accepted",
            "provider_message_id": "re_7Hq2",
            "answered_at": now - 10 * day,
        },
        {
            "batch_id": number("claim sent"),
            "position": 1,
            "email_id": number("hostile"),
            "message": pack(Message(**plain, subject=f"To {HOSTILE}", text=f"Hello {HOSTILE}")),
            "outcome": "accepted",
            "answered_at": now - 10 * day,
        },
        {
            "batch_id": number("claim open"),
            "position": 0,
            "email_id": number("claimed"),
            "message": pack(first),
        },
        {
            "batch_id": number("claim rejected"),
            "position": 0,
            "email_id": number("retry"),
            "message": pack(first),
            "outcome": "rejected",
            "reason": "mailbox is full",
            "answered_at": now - day,
        },
    )


def pause_queue(engine: Engine, until: datetime, reason: str) -> None:
    """Pause the mail queue."""
    put(engine, JOBS_STATE, {"job_name": "emailQueue", "paused_until": until, "pause_reason": reason})


def _certificates(engine: Engine, today: date) -> None:
    year = timedelta(days=365)
    for who, more in (
        ("ada", {"status": "valid", "issued_on": today, "valid_until": today + 2 * year}),
        (
            "evil",
            {
                "status": "expired",
                "issued_on": today - 2 * year,
                "valid_until": today - timedelta(days=1),
                "pdf_needs_regeneration": True,
                "pdf_path": "certificates/evil/original.pdf",
            },
        ),
        (
            "zoe",
            {
                "status": "valid",
                "issued_on": today - year,
                "valid_until": today + year,
                "render_error": "certificate: it has no result, or no dates",
                "render_failed_at": datetime(2027, 3, 9, 9, tzinfo=UTC),
            },
        ),
    ):
        put(
            engine,
            CERTIFICATES,
            {
                "id": number(f"{who} certificate"),
                "test_session_id": number(f"{who} session"),
                "certificate_number": f"CP-2027-{who.upper()}",
                **more,
            },
        )


def preview_result() -> dict[str, Any]:
    """Return what a preview stores: a table with more changes than are listed, messages, files, a call."""
    changes: list[dict[str, Any]] = [
        {
            "key": {"id": str(number(f"changed {n}"))},
            "kind": "update",
            "before": {"status": "active", "expired_at": None, "address": HOSTILE},
            "after": {"status": "expired", "expired_at": "2027-03-10T09:00:00+00:00", "address": HOSTILE},
        }
        for n in range(200)
    ]
    inserted = {"id": str(number("new")), "email_type": "day_30", "status": "queued"}
    return {
        "tables": [
            {
                "table": "email_log",
                "inserted": 1,
                "updated": 0,
                "deleted": 1,
                "changes": [
                    {"key": {"id": inserted["id"]}, "kind": "insert", "before": None, "after": inserted},
                    {
                        "key": {"id": "gone"},
                        "kind": "delete",
                        "before": {"id": "gone", "status": "queued"},
                        "after": None,
                    },
                ],
            },
            {"table": "test_sessions", "inserted": 0, "updated": 731, "deleted": 0, "changes": changes},
        ],
        "messages": {
            "count": 2,
            "shown": [
                {"to": "ada.byron@example.test", "subject": "Your radon test is a third of the way"},
                {"to": "evil@example.test", "subject": f"To {HOSTILE}"},
            ],
        },
        "files": {"count": 1, "shown": [{"name": "certificates/ada.pdf", "note": "application/pdf"}]},
        "calls": {
            "count": 1,
            "shown": [{"service": "outage ledger", "what": "clearpath_email answers again"}],
        },
        "counts": {"processed": 731, "expired": 731},
        "notes": ["one session has no expected completion date"],
        "state": "success",
    }


def fill_platform(engine: Engine, now: datetime) -> None:
    """Put in runs of three DAGs, one of them a preview, and alerts of every way to end."""
    hour = timedelta(hours=1)
    runs = [
        {
            "dag_id": DISPATCH,
            "run_id": "scheduled__2027-03-10T09:00:00+00:00",
            "as_of": now,
            "started_at": now - hour,
            "ended_at": now - hour + timedelta(seconds=3.2),
            "state": "deferred",
            "counts": {"processed": 14, "sent": 9, "skipped": 3, "failed": 2, "deferred": 4},
            "notes": ["clearpath_email is out of reach: HTTP 429 daily quota"],
        },
        {
            "dag_id": DISPATCH,
            "run_id": "scheduled__2027-03-10T08:45:00+00:00",
            "as_of": now - hour / 4,
            "started_at": now - hour * 1.25,
            "ended_at": now - hour * 1.25 + timedelta(seconds=1),
            "state": "success",
            "counts": {"processed": 0, "sent": 0, "skipped": 0, "failed": 0},
            "notes": [],
        },
        {
            "dag_id": EXPIRY,
            "run_id": "manual__2027-03-10T08:00:00+00:00",
            "as_of": now,
            "started_at": now - 2 * hour,
            "ended_at": now - 2 * hour + timedelta(seconds=75),
            "state": "success",
            "preview": True,
            "counts": {"processed": 731, "expired": 731},
            "notes": [],
        },
        {
            "dag_id": LAB,
            "run_id": "scheduled__2027-03-10T12:00:00+00:00",
            "as_of": now,
            "started_at": now - hour,
            "state": "running",
            "counts": {},
            "notes": [],
        },
    ]
    put(engine, RUN_SUMMARY, *runs)
    put(
        engine,
        PREVIEW,
        {
            "dag_id": EXPIRY,
            "run_id": runs[2]["run_id"],
            "made_at": now - 2 * hour,
            "as_of": now,
            "result": preview_result(),
        },
    )
    for place, (task, state, error) in enumerate(
        (
            ("settle", "success", None),
            ("claim", "success", None),
            ("send", "failed", f"no answer for {HOSTILE}"),
        )
    ):
        started = now - hour + timedelta(seconds=place)
        put(
            engine,
            RUN_STEP,
            {
                "dag_id": DISPATCH,
                "run_id": runs[0]["run_id"],
                "task_id": task,
                "try_number": 1,
                "started_at": started,
                "ended_at": started + timedelta(seconds=0.8),
                "state": state,
                "counts": {"processed": 14 if place else 3},
                "error": error,
            },
        )
    put(
        engine,
        ALERT,
        {
            "cause": "task:1",
            "kind": "task",
            "dag_id": DISPATCH,
            "run_id": runs[0]["run_id"],
            "task_id": "send",
            "subject": "send failed for good",
            "body": f"It said: {HOSTILE}",
            "created_at": now - hour,
            "delivered_at": now - hour,
            "delivery_attempts": 1,
        },
        {
            "cause": "outage:clearpath_email:1",
            "kind": "outage",
            "subject": "clearpath_email is out of reach",
            "body": "HTTP 429",
            "created_at": now - hour / 2,
            "delivery_attempts": 2,
            "last_error": "connection refused",
        },
        {
            "cause": "stuck:1",
            "kind": "stuck",
            "dag_id": DISPATCH,
            "subject": "The mail queue is stuck",
            "body": "The oldest due mail is 75 minutes late.",
            "created_at": now - hour / 3,
            "severity": "WARNING",
            "no_address": True,
        },
    )
    put(
        engine,
        OUTAGE,
        {"service": "clearpath_email", "opened_at": now - hour, "reason": "HTTP 429 daily quota"},
        {
            "service": "clearpath_lab",
            "opened_at": now - 50 * hour,
            "closed_at": now - 47 * hour,
            "reason": "HTTP 503",
        },
    )


def numbers_in(html: str, prefix: str) -> list[str]:
    """Return the row headings of a page that begin with a prefix."""
    return re.findall(rf'<span class="code">({re.escape(prefix)}[^<]*)</span>', html)


def next_page(html: str) -> dict[str, str]:
    """Return the query of a page's link to the next one; empty on the last."""
    found = re.search(r'href="([^"]*)" rel="next"', html)
    return (
        {name: values[0] for name, values in parse_qs(urlsplit(unescape(found[1])).query).items()}
        if found
        else {}
    )
