"""The sender that a mail connection names: checked before a message goes out under it."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import getaddresses

from hooks.connections import Access
from hooks.email_mime import fault, mime_bytes
from include.mail import Message

_FORM = "must be one address, as in noreply@clearpath.test or ClearPath <noreply@clearpath.test>"


def sender_of(said: Access) -> str | None:
    """Return the connection's extra `from`, or None if it names no sender.

    Raises BadInput for one under which no message could go out: a setting's slip must cost no message an
    attempt.
    """
    given = said.text("from")
    if given is None:
        return None
    found = getaddresses([given])
    # The parser drops a space within an address.
    if len(found) != 1 or found[0][1] not in given:
        raise said.bad("extra 'from'", f"{_FORM}; a name with a comma stands in quotes: {given[:80]!r}")
    probe = Message(sender=given, to="somebody@clearpath.test", subject="", text="")
    try:
        why = fault(probe, given)
        mime_bytes(probe, given, "probe", datetime(2026, 1, 1, tzinfo=UTC))
    except ValueError as error:
        why = str(error)
    if why:
        raise said.bad("extra 'from'", f"{_FORM}: {why}")
    return given
