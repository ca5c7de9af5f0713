"""Errors are decisions: a permanent one ends the work, a transient one asks for another try.

A message names the system, the thing and the value. It never holds a secret.
"""

from __future__ import annotations

from datetime import datetime


class AlmanacError(Exception):
    """Root of every error that a job raises on purpose."""


class Permanent(AlmanacError):
    """Trying again gives the same answer: bad data, a 4xx about this item, a missing file."""


class Transient(AlmanacError):
    """Trying again may work: connection, timeout, 408, 429, 5xx, deadlock."""


class BadInput(Permanent):
    """A param, a setting or a record that can't be read as what it claims to be."""


class Refused(Permanent):
    """An outside service answered that it won't do this one thing."""


class OutcomeUnknown(Permanent):
    """Nobody can tell any more whether the outside service did it; a person decides."""


class Outage(Transient):
    """An outside service as a whole is out of reach, or our key for it is wrong.

    `retry_at` is the earliest instant (aware) at which another try makes sense, where the service said so;
    `service` names it for the operators' ledger, which tells of an outage once.
    """

    def __init__(self, message: str, *, retry_at: datetime | None = None, service: str | None = None) -> None:
        super().__init__(message)
        self.retry_at = retry_at
        self.service = service


class QuotaExhausted(Outage):
    """The service's daily or monthly quota is used up; `retry_at` is its reset."""


class Busy(Transient):
    """Another run holds what this one needs alone."""
