"""Mail as the jobs see it: messages, batches under an idempotency key, and what the provider said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

import msgspec

from include.effects import Effects


@dataclass(frozen=True, slots=True)
class Message:
    """One message, ready to go: nothing is rendered or looked up after this point."""

    sender: str
    to: str
    subject: str
    text: str
    html: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> bytes:
        """Return the message as one line of JSON; the same message gives the same bytes."""
        return msgspec.json.encode(self, order="deterministic")

    @classmethod
    def from_json(cls, json: bytes) -> Message:
        return msgspec.json.decode(json, type=cls)


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages that were claimed together, in their order, under one idempotency key.

    The same batch always gives the same request, byte for byte.
    """

    key: str
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Accepted:
    """The provider took the message."""

    provider_id: str


@dataclass(frozen=True, slots=True)
class Rejected:
    """The provider answered that it won't take this message."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nobody can tell whether the provider took the message; it must not go out again by itself."""

    reason: str


@dataclass(frozen=True, slots=True)
class Deferred:
    """The provider as a whole is not to be had and the message is not at fault: no answer, 401, 403, 429, 5xx.

    `certain` says that the provider took nothing, so that the message may go out later under another key;
    otherwise the batch must be sent again as it is, under its own key. `retry_at` is when the provider wants
    to be asked again, if it said so; `quota` says that the daily or monthly quota is used up, so that the
    whole queue waits. `in_progress` says that the provider is well and still at this very batch.
    """

    reason: str
    certain: bool
    retry_at: datetime | None = None
    quota: bool = False
    in_progress: bool = False


Outcome = Accepted | Rejected | Unknown | Deferred


@dataclass(frozen=True, slots=True)
class Answer:
    """What the provider said of one batch: one outcome a message, in the batch's order.

    `more` says that the next answer is here already, so that both may be recorded together.
    """

    batch: Batch
    outcomes: tuple[Outcome, ...]
    more: bool = False


class MailProvider(Protocol):
    """A way to send mail.

    `batch_size` is how many messages one batch may hold. `key_lifetime` is how long a batch whose answer was
    lost can be sent again under its key and be delivered once; zero for a provider without keys.
    `default_sender` is the address that mail comes from where nothing else is said.
    """

    batch_size: int
    key_lifetime: timedelta
    default_sender: str | None

    def send(self, batches: Iterable[Batch]) -> Iterator[Answer]:
        """Send batches, several at a time, and yield an answer for each as it comes, in any order.

        Never raises for what the provider or the network does: that is an outcome. After an outage the
        batches not yet begun are answered Deferred without being sent.
        """
        ...


class RecordedMail:
    """A preview's provider: forms the real one's batches, takes every message and sends none."""

    def __init__(self, real: MailProvider, effects: Effects) -> None:
        self._effects = effects
        self.batch_size = real.batch_size
        self.key_lifetime = real.key_lifetime
        self.default_sender = real.default_sender

    def send(self, batches: Iterable[Batch]) -> Iterator[Answer]:
        for batch in batches:
            for message in batch.messages:
                self._effects.message(message.to, message.subject)
            yield Answer(batch, tuple(Accepted("<provider id>") for _ in batch.messages))
