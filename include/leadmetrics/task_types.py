"""What each type of task asks for: whom to notify, with which template, once per which key."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any
from urllib.parse import quote

import msgspec

from include.errors import BadInput
from include.leadmetrics.configuration import Configuration, address
from include.leadmetrics.notifications import Notification
from include.plain_text import plain

EARLY = "signup.reminder.early"
LATE = "signup.reminder.late"
REMINDERS = {EARLY: "signup-reminder-early", LATE: "signup-reminder-late"}
"""Task types that remind, each with its own template: one slug for both would swallow the late one."""

OVERTAKEN_AFTER = timedelta(hours=23)
"""So much later than the early reminder the late one is due, and takes its place: two at once is one too many."""

ALERT = "signup.alert.internal"
ALERT_SLUG = "signup-alert-internal"

FINISHED_STAGES = ("step_4", "complete")
"""Whoever has come this far needs no reminder."""

_LONGEST_NAME = 200

# It becomes part of a key, of a link and of a BullMQ job's id, which takes no colon.
_SessionId = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{1,100}$(?!\n)")]


class ReminderPayload(msgspec.Struct, rename="camel"):
    """What a reminder's task holds; an application may put more beside it."""

    session_id: _SessionId
    name: str | None = None


class AlertPayload(msgspec.Struct, rename="camel"):
    """What an internal alert's task holds; an application may put more beside it."""

    session_id: _SessionId
    email: str
    name: str | None = None
    company_name: str | None = None


Payload = ReminderPayload | AlertPayload


def payload_of(task_type: str, payload: Any) -> Payload:
    """Return a task's payload. Raises BadInput, which says what is wrong, for an unknown type or a bad payload."""
    if task_type not in REMINDERS and task_type != ALERT:
        known = ", ".join([*REMINDERS, ALERT])
        raise BadInput(f"unknown task type {task_type[:80]!r}; known are {known}")
    kind = ReminderPayload if task_type in REMINDERS else AlertPayload
    try:
        return msgspec.convert(payload, kind)
    except msgspec.ValidationError as error:
        raise BadInput(f"payload of {task_type}: {error}") from None


def reminder(
    task_type: str, payload: ReminderPayload, email: str | None, settings: Configuration
) -> Notification:
    """Return the reminder of a registration that was broken off. Raises BadInput for an address that is none."""
    slug = REMINDERS[task_type]
    return Notification(
        dedupe_key=f"{slug}__{payload.session_id}",
        tenant_id=payload.session_id,
        template_slug=slug,
        recipient=_address("the session's email", email),
        data={
            "resumeUrl": f"{settings.dashboard_url}/signup?session={quote(payload.session_id)}",
            **_named(name=payload.name),
        },
        reminder=True,
    )


def alert(payload: AlertPayload, settings: Configuration) -> Notification:
    """Return the internal alert of a registration. Raises BadInput for an address that is none."""
    email = _address("payload of signup.alert.internal: email", payload.email)
    return Notification(
        # One alert per person, however they write their address.
        dedupe_key=f"{ALERT_SLUG}__{email.lower()}",
        tenant_id=payload.session_id,
        template_slug=ALERT_SLUG,
        recipient=settings.signup_alert_email,
        data={"email": email, **_named(name=payload.name, companyName=payload.company_name)},
    )


def _address(what: str, text: str | None) -> str:
    if not text:
        raise BadInput(f"{what} is missing")
    try:
        return address(text)
    except BadInput as error:
        raise BadInput(f"{what} {error}") from None


def _named(**values: str | None) -> Mapping[str, str]:
    found = {name: plain(value, _LONGEST_NAME) for name, value in values.items() if value}
    return {name: value for name, value in found.items() if value}
