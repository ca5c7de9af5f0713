"""SMS and push messages: how they are sent, and how the delivery sends them as it does mail."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import NamedTuple, Protocol

import msgspec

from include.effects import Effects
from include.errors import BadInput
from include.mail import Accepted, Answer, Batch, Deferred, MailProvider, Message, Outcome


class TextMessages(Protocol):
    """A way to send SMS. `key_lifetime` is as with mail: zero for a provider that knows no keys."""

    key_lifetime: timedelta

    def send(self, key: str, to: str, text: str) -> Outcome:
        """Send one message; never raises for what the provider or the network does."""
        ...


class Subscription(msgspec.Struct, frozen=True):
    """A browser that takes push messages, as it told the application."""

    endpoint: str
    p256dh: str
    auth: str


class Push(msgspec.Struct, frozen=True):
    """What a device shows; it opens `url`."""

    title: str
    body: str
    url: str | None
    subscriptions: tuple[Subscription, ...]

    def to_json(self) -> str:
        return msgspec.json.encode(self).decode()


class Pushed(NamedTuple):
    """What became of a push message, and the endpoints of subscriptions that are none any more."""

    outcome: Outcome
    gone: Sequence[str] = ()


class PushMessages(Protocol):
    """A way to send push messages. `key_lifetime` is as with mail."""

    key_lifetime: timedelta

    def send(self, key: str, push: Push) -> Pushed:
        """Send one message to every subscription: Accepted if one of them took it. Never raises, as above."""
        ...


class TextsAsMail:
    """SMS in the form that the delivery sends: a message a batch, whose key is the batch's."""

    batch_size = 1
    default_sender: str | None = None

    def __init__(self, texts: TextMessages) -> None:
        self._texts = texts
        self.key_lifetime = texts.key_lifetime

    def send(self, batches: Iterable[Batch]) -> Iterator[Answer]:
        return _one_by_one(batches, lambda key, message: self._texts.send(key, message.to, message.text))


class PushesAsMail:
    """Push messages in that form; `forget` is told of endpoints that are gone before the answer is recorded."""

    batch_size = 1
    default_sender: str | None = None

    def __init__(self, pushes: PushMessages, forget: Callable[[Sequence[str]], None]) -> None:
        self._pushes = pushes
        self._forget = forget
        self.key_lifetime = pushes.key_lifetime

    def send(self, batches: Iterable[Batch]) -> Iterator[Answer]:
        return _one_by_one(batches, self._send)

    def _send(self, key: str, message: Message) -> Outcome:
        pushed = self._pushes.send(key, msgspec.json.decode(message.text, type=Push))
        if pushed.gone:
            self._forget(pushed.gone)
        return pushed.outcome


def _one_by_one(batches: Iterable[Batch], send: Callable[[str, Message], Outcome]) -> Iterator[Answer]:
    outage: Deferred | None = None
    for batch in batches:
        (message,) = batch.messages
        # After an outage what was not begun surely did not go out.
        outcome = outage or send(batch.key, message)
        if outage is None and isinstance(outcome, Deferred) and not outcome.in_progress:
            outage = Deferred(outcome.reason, certain=True, retry_at=outcome.retry_at, quota=outcome.quota)
        yield Answer(batch, (outcome,))


class RecordedTexts:
    """A preview's SMS: takes every message and sends none."""

    def __init__(self, real: TextMessages, effects: Effects) -> None:
        self.key_lifetime = real.key_lifetime
        self._effects = effects

    def send(self, key: str, to: str, text: str) -> Outcome:  # noqa: ARG002 - the protocol's form
        self._effects.message(to, text)
        return Accepted("<provider id>")


class RecordedPushes:
    """A preview's push messages, likewise."""

    def __init__(self, real: PushMessages, effects: Effects) -> None:
        self.key_lifetime = real.key_lifetime
        self._effects = effects

    def send(self, key: str, push: Push) -> Pushed:  # noqa: ARG002 - the protocol's form
        self._effects.message(f"{len(push.subscriptions)} devices", push.title)
        return Pushed(Accepted("<provider id>"))


class TextsToOutbox:
    """SMS where no provider is set: each is put into the mail's outbox, addressed to its number."""

    def __init__(self, outbox: MailProvider) -> None:
        self.key_lifetime = outbox.key_lifetime
        self._outbox = outbox

    def send(self, key: str, to: str, text: str) -> Outcome:
        number = re.sub(r"[^0-9]", "", to) or "unknown"
        return _through(self._outbox, key, f"{number}@sms.invalid", "SMS", text)


class PushesToOutbox:
    """Push messages where no provider is set: one file for all devices of a person."""

    def __init__(self, outbox: MailProvider) -> None:
        self.key_lifetime = outbox.key_lifetime
        self._outbox = outbox

    def send(self, key: str, push: Push) -> Pushed:
        text = "\n\n".join(part for part in (push.body, push.url) if part)
        return Pushed(_through(self._outbox, key, "device@push.invalid", push.title, text))


def _through(outbox: MailProvider, key: str, to: str, subject: str, text: str) -> Outcome:
    message = Message(outbox.default_sender or "", to, subject, text)
    for answer in outbox.send([Batch(key, (message,))]):
        return answer.outcomes[0]
    raise BadInput(f"the outbox gave no answer to {key}")
