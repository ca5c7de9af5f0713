"""The providers of SMS and push messages in memory, and what signs links."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta

from include.ecocomply.channels import Push, Pushed
from include.ecocomply.unsubscribe_links import UnsubscribeLinks
from include.mail import Accepted, Answer, Batch, Deferred, Outcome, Rejected

LINKS = UnsubscribeLinks(b"k" * 32)


@dataclass
class FakeTexts:
    """A provider of SMS with keys, unless `key_lifetime` says none; `refuse` names numbers."""

    batch_size: int = 1
    default_sender: str | None = None
    key_lifetime: timedelta = timedelta(hours=24)
    down: Deferred | None = None
    refuse: set[str] = field(default_factory=set)
    sent: list[tuple[str, str]] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    tick: Callable[[str], None] = lambda what: None

    def send(self, batches: Iterable[Batch]) -> Iterator[Answer]:
        for batch in batches:
            (message,) = batch.messages
            yield Answer(batch, (self._take(batch.key, message.to, message.text),))

    def _take(self, key: str, to: str, text: str) -> Outcome:
        self.tick("sms before")
        if self.down is not None:
            return self.down
        if to in self.refuse:
            return Rejected("not a mobile number")
        if not self.key_lifetime or key not in self.keys:
            self.sent.append((to, text))
        self.keys.add(key)
        self.tick("sms after")
        return Accepted(f"id of {key}")


@dataclass
class FakePushes:
    """A push service; `gone` are endpoints that it knows no more."""

    key_lifetime: timedelta = timedelta(hours=24)
    gone: set[str] = field(default_factory=set)
    sent: dict[str, Push] = field(default_factory=dict)
    tick: Callable[[str], None] = lambda what: None
    in_flight: int = 1

    def in_time(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        return iter(batches)

    def send(self, key: str, push: Push) -> Pushed:
        self.tick("push before")
        gone = [one.endpoint for one in push.subscriptions if one.endpoint in self.gone]
        if len(gone) == len(push.subscriptions):
            return Pushed(Rejected("no device is left"), gone)
        self.sent[key] = push
        self.tick("push after")
        return Pushed(Accepted(key), gone)
