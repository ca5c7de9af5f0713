"""A mailbox that is read and left as it is: what came in since last time, in a form that is safe to keep."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import NamedTuple, Protocol

MOST_MESSAGES = 200
"""Messages of one read, the oldest of what is new; the next read goes on after them."""

LARGEST_MESSAGE = 5 * 1024 * 1024
"""Bytes; a larger message is counted and not read."""

LONGEST_SUBJECT = 300
LONGEST_TEXT = 2_000
LONGEST_NAME = 120


class Letter(NamedTuple):
    """One message. `key` is its Message-ID, or a digest of it; texts are plain; `sent_at` is aware, in UTC."""

    key: str
    sender: str
    sender_name: str
    subject: str
    text: str
    sent_at: datetime | None


class MailboxAnswer(NamedTuple):
    """What one read brought, and the position to go on from.

    `left_out` says in words why messages were not read. `more` says that the next read will bring more.
    """

    letters: Sequence[Letter]
    position: str | None
    left_out: Sequence[str] = ()
    more: bool = False


class Mailbox(Protocol):
    """A folder of a mail account."""

    @property
    def name(self) -> str:
        """What it is known by, as the source of what it brings."""
        ...

    @property
    def is_set(self) -> bool:
        """Whether there is a server to ask at all."""
        ...

    def letters_since(self, position: str | None, day: date, seconds: float) -> MailboxAnswer:
        """Read what is new since `position`, or without a usable one since `day`, within `seconds`.

        Nothing is marked, moved or deleted. Where time or room runs out on the way, what is whole by then comes
        with `more`. Raises Outage if the server is out of reach or answers nonsense before anything is whole.
        """
        ...
