"""The fake outside world of one test: what it was asked to do, and when it is to fail.

`tick` is called before and after everything that takes effect; a test counts the calls, or dies in one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from include.clearpath.certificate_pdf import CertificateText
from include.clearpath.lab import LabPage
from include.errors import Refused
from include.mail import Accepted, Answer, Batch, Deferred, Message, Outcome, Rejected, Unknown
from include.platform.tables import ALERT_KINDS
from include.storage import StoredFile

Tick = Callable[[str], None]


def no_tick(event: str) -> None:
    """Let every event pass."""


@dataclass
class FakeMail:
    """A provider with idempotency keys: the same key with the same messages is delivered once.

    `refuse` names addresses whose message is rejected; `down` defers everything; a key that comes again with
    other messages is answered as Resend does.
    """

    tick: Tick = no_tick
    batch_size: int = 2
    key_lifetime: timedelta = timedelta(hours=24)
    default_sender: str | None = "ClearPath RD <hello@clearpath.test>"
    refuse: set[str] = field(default_factory=set)
    down: Deferred | None = None
    delivered: list[Message] = field(default_factory=list)
    keys: dict[str, tuple[Message, ...]] = field(default_factory=dict)
    requests: int = 0

    def send(self, batches: Iterable[Batch]) -> Iterator[Answer]:
        for batch in batches:
            self.tick("mail before")
            self.requests += 1
            outcomes = tuple(self._take(batch))
            self.tick("mail after")
            yield Answer(batch, outcomes)

    def _take(self, batch: Batch) -> Sequence[Outcome]:
        if self.down is not None:
            return [self.down] * len(batch.messages)
        known = self.keys.get(batch.key) if self.key_lifetime else None
        if known is not None and known != batch.messages:
            return [Unknown("the key was used for other messages")] * len(batch.messages)
        if known is None:
            self.keys[batch.key] = batch.messages
            self.delivered += [m for m in batch.messages if m.to not in self.refuse]
        return [
            Rejected("invalid address") if m.to in self.refuse else Accepted(f"id of {m.to} {m.subject}")
            for m in batch.messages
        ]


@dataclass
class FakeAlerts:
    """The operators' ledger in memory."""

    tick: Tick = no_tick
    told: dict[str, str] = field(default_factory=dict)
    outages: dict[str, str] = field(default_factory=dict)

    def tell(self, cause: str, kind: str, subject: str, text: str) -> bool:
        assert kind in ALERT_KINDS, f"the ledger knows no {kind!r}"
        self.tick("alert before")
        new = cause not in self.told
        self.told.setdefault(cause, f"{kind}: {subject}")
        self.tick("alert after")
        return new

    def known(self, cause: str) -> bool:
        return cause in self.told

    def outage(self, service: str, reason: str) -> None:
        self.tick("outage before")
        self.outages.setdefault(service, reason)
        self.tick("outage after")

    def recovered(self, service: str) -> None:
        self.tick("recovered before")
        self.outages.pop(service, None)
        self.tick("recovered after")

    def in_outage(self, service: str) -> bool:
        return service in self.outages


@dataclass
class FakeLab:
    """A lab that serves its records in pages, oldest first."""

    records: Sequence[Any]
    tick: Tick = no_tick
    page_size: int = 5

    def results_since(self, since: datetime | None, cursor: str | None = None) -> LabPage:
        self.tick("lab before")
        place = int(cursor or 0)
        page = tuple(self.records[place : place + self.page_size])
        self.tick("lab after")
        more = place + self.page_size < len(self.records)
        return LabPage(page, str(place + self.page_size) if more else None)


@dataclass
class FakeStorage:
    """A store in memory."""

    tick: Tick = no_tick
    files: dict[str, bytes] = field(default_factory=dict)

    def put(self, name: str, content: bytes, content_type: str) -> StoredFile:
        self.tick("file before")
        self.files[name] = content
        self.tick("file after")
        return StoredFile(name, len(content), "", content_type)

    def get(self, name: str) -> bytes:
        if name not in self.files:
            raise Refused(f"storage: there is no file {name}")
        return self.files[name]

    def stat(self, name: str) -> StoredFile | None:
        return StoredFile(name, len(self.files[name]), "", "") if name in self.files else None

    def signed_url(self, name: str, expires_in: timedelta, display_name: str) -> str:
        return f"https://files.test/{name}"


class FakePrinter:
    """Prints a certificate's words as bytes; the look of the real one has tests of its own."""

    def render(self, certificate: CertificateText) -> bytes:
        return json.dumps({k: str(getattr(certificate, k)) for k in certificate.__slots__}).encode()

    def mark_expired(self, pdf: bytes) -> bytes:
        return b"EXPIRED " + pdf


@dataclass
class World:
    """All of it, with one state to compare."""

    mail: FakeMail
    alerts: FakeAlerts
    lab: FakeLab
    storage: FakeStorage
    printer: FakePrinter = field(default_factory=FakePrinter)

    def die_by(self, tick: Tick) -> None:
        """Call `tick` before and after everything from now on."""
        for part in (self.mail, self.alerts, self.lab, self.storage):
            part.tick = tick

    def state(self) -> Mapping[str, Any]:
        """Return what the world has seen, in a form that two runs share if they did the same."""
        return {
            "mail": sorted((m.to, m.subject, m.text, m.html or "") for m in self.mail.delivered),
            "alerts": dict(self.alerts.told),
            "outages": dict(self.alerts.outages),
            "files": dict(self.storage.files),
        }
