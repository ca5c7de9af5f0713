"""A digest as one mail, grouped by type with counts, that mail programs show whole however much there is."""

from __future__ import annotations

import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from include.ecocomply.notice_words import counted
from include.ecocomply.notification_mail import template
from include.errors import BadInput
from include.mail import Message
from include.plain_text import plain, shown_url, web_address

LARGEST = 92_000
"""Bytes of a whole message on its way; beyond some 100,000 mail programs cut it off."""

MOST_ENTRIES = 300
"""More than ever fit."""

_LONGEST_SUBJECT = 160
_LONGEST_NAME = 80
_HEADERS_ABOUT = 2_000

_HEADINGS = {
    "DEADLINE_WARNING_7D": "Due within a week",
    "DEADLINE_WARNING_3D": "Due within three days",
    "DEADLINE_WARNING_1D": "Due within a day",
    "DEADLINE_ALERT": "Due today",
    "SYSTEM_ALERT": "Your documents, imports and reports",
    "BREACH": "Run hours",
    "MODULE_ACTIVATION": "Modules for you",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """What one digest tells: `counts` by type of all of it, `entries` the newest, each with type, subject and url.

    `all_url` is the page that shows the rest; both addresses are absolute http(s) ones.
    """

    frequency: str
    name: str | None
    counts: Mapping[str, int]
    entries: Sequence[Mapping[str, Any]]
    all_url: str
    unsubscribe_url: str


class _Entry(NamedTuple):
    type: str
    subject: str
    url: str | None


class _Group(NamedTuple):
    heading: str
    count: str
    entries: list[_Entry]


def digest_message(digest: Digest, *, sender: str, to: str) -> Message:
    """Return the mail; the same digest gives the same bytes, fewer than LARGEST on their way.

    Raises BadInput if there is nothing to tell, or if an address, a setting, is no web address.
    """
    for setting, address in (("APP_URL", digest.all_url), ("PUBLIC_URL", digest.unsubscribe_url)):
        if web_address(address) is None:
            # Without its last part, which is a token.
            shown = shown_url(address.rpartition("/")[0])[:80]
            raise BadInput(f"EcoComply digest: {setting} makes {shown!r}, which is no http(s) address")
    if not digest.entries:
        raise BadInput("EcoComply digest: there is nothing to tell")
    entries = [
        _Entry(one["type"], plain(one["subject"], _LONGEST_SUBJECT), web_address(one.get("url") or ""))
        for one in digest.entries[:MOST_ENTRIES]
    ]
    shown = len(entries)
    while True:
        message = _message(digest, entries[:shown], sender, to)
        size = _size(message)
        if size <= LARGEST or shown == 1:
            return message
        shown = max(1, min(shown - 1, shown * LARGEST // size))


def _message(digest: Digest, entries: Sequence[_Entry], sender: str, to: str) -> Message:
    total = sum(digest.counts.values())
    subject = f"Your {digest.frequency.lower()} digest: {counted(total, 'notification')}"
    name = plain(digest.name or "", _LONGEST_NAME)
    given = {
        "subject": subject,
        "greeting": f"Hello {name}," if name else "Hello,",
        "summary": f"{counted(total, 'notification')} of {counted(len(digest.counts), 'type')}, newest first:",
        "groups": _groups(digest.counts, entries),
        "left_out": f"{total - len(entries):,}" if total > len(entries) else "",
        "all_url": digest.all_url,
        "unsubscribe_url": digest.unsubscribe_url,
    }
    return Message(
        sender=sender,
        to=to,
        subject=subject,
        text=template("digest.txt.j2").render(given),
        html=template("digest.html.j2").render(given),
        headers={
            "List-Unsubscribe": f"<{digest.unsubscribe_url}>",
            "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
        },
    )


def _groups(counts: Mapping[str, int], entries: Sequence[_Entry]) -> list[_Group]:
    # The largest first, and each with its count, also where none of its entries fits.
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return [
        _Group(_heading(kind), f"{count:,}", [one for one in entries if one.type == kind])
        for kind, count in ordered
    ]


def _heading(kind: str) -> str:
    return _HEADINGS.get(kind) or plain(kind.replace("_", " "), _LONGEST_NAME).capitalize()


def _size(message: Message) -> int:
    parts = (message.text, message.html or "")
    return _HEADERS_ABOUT + sum(len(binascii.b2a_qp(part.encode(), istext=True)) for part in parts)
