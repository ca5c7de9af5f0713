"""How fast a provider is asked, and for how long: a cap on messages a second, and an end to one sending."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from hooks.connections import Access
from include.mail import Answer, Batch, MailProvider

PER_SECOND = 50
"""What EcoComply's specification allows at most: notifications a second."""

_FASTEST = 10_000


def cap_of(access: Access, default: float = 0) -> float:
    """Return the connection's extra `per_second`, messages a second; 0 is no cap."""
    return access.number("per_second", default, 0, _FASTEST)


def in_time(batches: Iterable[Batch], per_second: float, seconds: float | None) -> Iterator[Batch]:
    """Pass batches on, each when the cap allows it, and take none after so many seconds.

    What was not taken has not begun: it waits for the next sending as it is.
    """
    began = free = time.monotonic()
    source = iter(batches)
    while True:
        wait = free - time.monotonic()
        if seconds is not None and time.monotonic() + max(wait, 0) - began > seconds:
            return
        if wait > 0:
            time.sleep(wait)
        # Asked for after the wait: whoever hands it out marks it as begun.
        batch = next(source, None)
        if batch is None:
            return
        if per_second:
            free = max(free, time.monotonic()) + len(batch.messages) / per_second
        yield batch


class PacedMail:
    """A provider that is asked no faster than the cap, and for no longer than `seconds` at a time."""

    def __init__(self, mail: MailProvider, per_second: float, seconds: float | None) -> None:
        self.batch_size = mail.batch_size
        self.key_lifetime = mail.key_lifetime
        self.default_sender = mail.default_sender
        self._mail = mail
        self._per_second = per_second
        self._seconds = seconds

    def send(self, batches: Iterable[Batch]) -> Iterator[Answer]:
        return self._mail.send(in_time(batches, self._per_second, self._seconds))


def paced(mail: MailProvider, per_second: float, seconds: float | None) -> MailProvider:
    """Return the provider itself where nothing bounds it."""
    return PacedMail(mail, per_second, seconds) if per_second or seconds is not None else mail
