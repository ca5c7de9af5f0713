"""SMS and push messages, sent as mail is.

An SMS is a message to a number, whose provider is a mail provider in all but name. A push message goes to all the
devices of a person, and what the services say of a device that is gone is kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from datetime import timedelta
from typing import NamedTuple, Protocol

import msgspec

from include.effects import Effects
from include.errors import BadInput
from include.mail import Accepted, Answer, Batch, Deferred, MailProvider, Message, Outcome


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
    """A way to send push messages, `in_flight` at a time. `key_lifetime` is as with mail."""

    key_lifetime: timedelta
    in_flight: int

    def in_time(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Pass batches on as fast as the services may be asked, and for as long as one sending may last."""
        ...

    def send(self, key: str, push: Push) -> Pushed:
        """Send one message to every subscription: Accepted if one of them took it. Never raises, as above."""
        ...


class PushesAsMail:
    """Push messages in that form; `forget` is told of endpoints that are gone before the answer is recorded."""

    batch_size = 1
    default_sender: str | None = None

    def __init__(self, pushes: PushMessages, forget: Callable[[Sequence[str]], None]) -> None:
        self._pushes = pushes
        self._forget = forget
        self.key_lifetime = pushes.key_lifetime

    def send(self, batches: Iterable[Batch]) -> Iterator[Answer]:
        outage: Deferred | None = None
        waiting: dict[Future[Pushed], Batch] = {}
        source = self._pushes.in_time(batches)
        with ThreadPoolExecutor(self._pushes.in_flight, thread_name_prefix="push") as threads:
            while (batch := next(source, None)) is not None or waiting:
                if batch is not None and outage is not None:
                    yield Answer(batch, (outage,))
                    continue
                if batch is not None:
                    waiting[threads.submit(self._push, batch)] = batch
                room = batch is not None and len(waiting) < self._pushes.in_flight
                for done in wait(waiting, 0 if room else None, FIRST_COMPLETED).done:
                    pushed = done.result()
                    if pushed.gone:
                        self._forget(pushed.gone)
                    outage = outage or _outage(pushed.outcome)
                    yield Answer(waiting.pop(done), (pushed.outcome,))

    def _push(self, batch: Batch) -> Pushed:
        (message,) = batch.messages
        return self._pushes.send(batch.key, msgspec.json.decode(message.text, type=Push))


def _outage(outcome: Outcome) -> Deferred | None:
    if not isinstance(outcome, Deferred) or outcome.in_progress:
        return None
    # What was not begun by then surely did not go out.
    return replace(outcome, certain=True)


class RecordedPushes:
    """A preview's push messages: takes every one and sends none."""

    def __init__(self, real: PushMessages, effects: Effects) -> None:
        self.key_lifetime = real.key_lifetime
        self.in_flight = 1
        self._effects = effects

    def in_time(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        return iter(batches)

    def send(self, key: str, push: Push) -> Pushed:  # noqa: ARG002 - the protocol's form
        self._effects.message(f"{len(push.subscriptions)} devices", push.title)
        return Pushed(Accepted("<provider id>"))


class TextsToOutbox:
    """SMS where no provider is set: each is put into the mail's outbox, addressed to its number."""

    batch_size = 1

    def __init__(self, outbox: MailProvider) -> None:
        self.key_lifetime = outbox.key_lifetime
        self.default_sender = outbox.default_sender
        self._outbox = outbox

    def send(self, batches: Iterable[Batch]) -> Iterator[Answer]:
        # The batch that was claimed is the one that is answered.
        for batch in batches:
            sent = Batch(batch.key, tuple(self._mail(message) for message in batch.messages))
            for answer in self._outbox.send([sent]):
                yield replace(answer, batch=batch)

    def _mail(self, message: Message) -> Message:
        number = re.sub(r"[^0-9]", "", message.to) or "unknown"
        return Message(self.default_sender or "", f"{number}@sms.invalid", "SMS", message.text)


class PushesToOutbox:
    """Push messages where no provider is set: one file for all devices of a person."""

    in_flight = 1

    def __init__(self, outbox: MailProvider) -> None:
        self.key_lifetime = outbox.key_lifetime
        self._outbox = outbox

    def in_time(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        return iter(batches)

    def send(self, key: str, push: Push) -> Pushed:
        text = "\n\n".join(part for part in (push.body, push.url) if part)
        return Pushed(_through(self._outbox, key, "device@push.invalid", push.title, text))


def _through(outbox: MailProvider, key: str, to: str, subject: str, text: str) -> Outcome:
    message = Message(outbox.default_sender or "", to, subject, text)
    for answer in outbox.send([Batch(key, (message,))]):
        return answer.outcomes[0]
    raise BadInput(f"the outbox gave no answer to {key}")
