"""Mail over a provider's HTTP API: many requests in flight, paced and put off together."""

from __future__ import annotations

import asyncio
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Self

from hooks.connections import Access
from hooks.email_mime import fault
from hooks.email_resend_api import Reply, request, session
from hooks.email_sender import sender_of
from include.errors import Transient
from include.mail import Accepted, Answer, Batch, Deferred, Message, Outcome, Rejected, Unknown

if TYPE_CHECKING:
    import aiohttp

_LEAST_WAIT = 0.2
# A batch waits this many times the longest single wait for its turn, then it is left for a later run.
_WAITS = 4
_LONGEST_WINDOW = 60

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ask:
    """One POST, ready to go."""

    path: str
    body: bytes
    headers: Mapping[str, str]


class HttpMail(ABC):
    """A mail provider with an HTTP API; what it speaks, a class of its own says.

    Of the connection: the password is the API key; the host or the extra `base_url` is where the API is, a
    path included. Extras: `from` (the sender of messages that name none), `in_flight` (requests at a time),
    `timeout` (seconds for one answer), `longest_wait` (seconds that a rate limit is waited for; what asks for
    longer ends as Deferred with its `retry_at`).

    What the answers say is of this sending alone: a batch that was in doubt before stays so until it is
    accepted, rejected or unknown. Without keys (`key_lifetime` zero) a lost answer is Unknown.
    """

    key_lifetime: timedelta
    most_together: int
    """The most messages that one request may carry."""

    api: str
    """The provider's own base URL."""

    def __init__(self, access: Access, *, batch_size: int, in_flight: int) -> None:
        self.batch_size = batch_size
        self.default_sender = self.sender(access)
        self.in_flight = int(access.number("in_flight", in_flight, 1, 200))
        self.timeout = access.number("timeout", 30, 0.1, 600)
        self.longest_wait = access.number("longest_wait", 30, 0, 300)
        self.base_url = access.base_url(self.api)
        self.access = access
        if not access.password:
            raise access.bad("password", "is missing: it is the API key")
        if not (access.password.isascii() and access.password.isprintable()) or " " in access.password:
            raise access.bad("password", "can't be an API key: it holds a space or an unprintable character")

    def sender(self, access: Access) -> str | None:
        """Return whom messages come from that name nobody. Raises BadInput for one that can't be."""
        return sender_of(access)

    def fault(self, message: Message, sender: str) -> str | None:
        """Return why the message can't be sent by anybody, or None."""
        return fault(message, sender)

    def for_log(self, text: str) -> str:
        """Return `text` as one line without the connection's secrets."""
        return self.access.for_log(text)

    @abstractmethod
    def payload(self, message: Message, sender: str) -> dict[str, Any]:
        """Return a message as the API takes it, always alike. Raises ValueError for one that it can't take."""

    @abstractmethod
    def ask(self, key: str, payloads: Sequence[Mapping[str, Any]]) -> Ask:
        """Return the request that sends messages under a key."""

    @abstractmethod
    def outcomes(self, reply: Reply, number: int) -> Sequence[Outcome] | None:
        """Return what a reply says of `number` messages; None if a fault of one kept all from being taken."""

    @abstractmethod
    def again_at(self, reply: Reply, now: datetime) -> datetime:
        """Return the earliest instant at which a request that got a 429 may be made again."""

    @abstractmethod
    async def check(self, over: aiohttp.ClientSession) -> str:
        """Ask the API about the key, sending nothing; return what works. Raises Transient if it does not."""

    def send(self, batches: Iterable[Batch]) -> Generator[Answer, None, None]:
        """Send batches and yield their answers as they come; see MailProvider.

        No more batches are taken than may be in flight. They are taken in the caller's thread; requests are
        made in another one, which is gone when the iterator ends or is closed.
        """
        source = iter(batches)
        failure: Exception | None = None
        waiting = 0
        with _Sender(self) as sender:
            while True:
                try:
                    batch = next(source, None)
                except Exception as error:  # noqa: BLE001 - raised again once the answers under way are in
                    failure = error
                    break
                if batch is None:
                    break
                if sender.outage:
                    yield Answer(batch, (sender.outage,) * len(batch.messages))
                    continue
                sender.begin(batch)
                waiting += 1
                while waiting and (waiting >= self.in_flight or sender.has_answer()):
                    yield sender.next_answer()
                    waiting -= 1
            for _ in range(waiting):
                yield sender.next_answer()
        if failure:
            raise failure

    def test(self) -> str:
        """Ask the API whether it knows the key, sending nothing; return what works.

        Raises Transient with the reason if it does not.
        """
        # A thread of its own: the caller's may have an event loop already.
        with ThreadPoolExecutor(max_workers=1) as thread:
            return thread.submit(lambda: asyncio.run(self._check())).result()

    def session(self) -> aiohttp.ClientSession:
        return session(f"Bearer {self.access.password}", self.in_flight, self.timeout)

    def failure(self, reply: Reply) -> Transient:
        """Return the error of a reply that does not say yes."""
        reason = reply.failure.reason if reply.failure else f"{self.base_url}: {reply.said}"
        return Transient(self.for_log(reason))

    async def _check(self) -> str:
        async with self.session() as over:
            return await self.check(over)


def put_off(reply: Reply, said: str, *, own_words: bool) -> Deferred:
    """Return what an error that is not the message's fault means where there are no keys.

    The service's own words, or 503, mean that nothing was taken; a gateway's 502 or 504 may mean anything.
    """
    if reply.failure is None:
        return Deferred(said, certain=True)
    taken_by_nobody = own_words or reply.status == HTTPStatus.SERVICE_UNAVAILABLE
    return Deferred(said, certain=taken_by_nobody, retry_at=reply.failure.retry_at)


class _Sender:
    """One `send`: a thread with an event loop, its requests, and what they have in common."""

    def __init__(self, mail: HttpMail) -> None:
        self._mail = mail
        self._answers: SimpleQueue[Answer | BaseException] = SimpleQueue()
        self._pace = _Pace()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self._over: aiohttp.ClientSession
        self.outage: Deferred | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread is not None:
            self._in_loop(lambda: self._stop.set())  # noqa: PLW0108 - there is no _stop if the loop never began
            self._thread.join()

    def begin(self, batch: Batch) -> None:
        if self._thread is None:
            ready = threading.Event()
            self._thread = threading.Thread(target=self._run, args=(ready,), name="mail", daemon=True)
            self._thread.start()
            ready.wait()
        self._in_loop(lambda: self._start(batch))

    def has_answer(self) -> bool:
        return not self._answers.empty()

    def next_answer(self) -> Answer:
        answer = self._answers.get()
        if isinstance(answer, BaseException):
            raise answer
        return replace(answer, more=self.has_answer())

    def _in_loop(self, what: Any) -> None:
        # A loop that has ended has put its reason among the answers.
        with suppress(RuntimeError, AttributeError):
            self._loop.call_soon_threadsafe(what)

    def _run(self, ready: threading.Event) -> None:
        try:
            asyncio.run(self._serve(ready))
        except BaseException as error:  # noqa: BLE001 - whoever waits for an answer raises it
            self._answers.put(error)
        finally:
            self._answers.put(Transient("mail: the thread that sends has ended"))
            ready.set()

    async def _serve(self, ready: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._over = self._mail.session()
        async with self._over:
            ready.set()
            await self._stop.wait()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, batch: Batch) -> None:
        task = self._loop.create_task(self._answer(batch))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, batch: Batch) -> None:
        try:
            self._answers.put(Answer(batch, await self._outcomes(batch)))
        except Exception as error:  # noqa: BLE001 - a fault of ours: whoever waits for the answer raises it
            self._answers.put(error)

    async def _outcomes(self, batch: Batch) -> tuple[Outcome, ...]:
        known: dict[int, Outcome] = {}
        parts: list[tuple[int, dict[str, Any]]] = []
        for position, message in enumerate(batch.messages):
            sender = message.sender or self._mail.default_sender
            if not sender:
                reason = f"connection {self._mail.access.conn_id}: no sender: set the extra 'from'"
                known[position] = Deferred(reason, certain=True)
            elif reason := self._mail.fault(message, sender):
                known[position] = Rejected(reason)
            else:
                try:
                    parts.append((position, self._mail.payload(message, sender)))
                except ValueError as error:
                    known[position] = Rejected(str(error))
        most = self._mail.most_together
        for start in range(0, len(parts), most):
            some = parts[start : start + most]
            key = batch.key if len(parts) <= most else _key_of_part(batch.key, some)
            known |= await self._deliver(key, batch.key, some)
        return _consistent([known[position] for position in range(len(batch.messages))])

    async def _deliver(
        self, key: str, batch_key: str, some: Sequence[tuple[int, dict[str, Any]]]
    ) -> dict[int, Outcome]:
        """Send messages of a batch in one request under `key`; halve them where one spoils the others."""
        ask = self._mail.ask(key, [fields for _, fields in some])
        said = await self._in_turn(ask, len(some))
        if said is not None:
            return {position: outcome for (position, _), outcome in zip(some, said, strict=True)}
        middle = len(some) // 2
        known: dict[int, Outcome] = {}
        for half in (some[:middle], some[middle:]):
            known |= await self._deliver(_key_of_part(batch_key, half), batch_key, half)
        return known

    async def _in_turn(self, ask: Ask, number: int) -> Sequence[Outcome] | None:
        """Make a request when the rate limit allows; a short 429 is waited for, a long one is an outage."""
        give_up = self._loop.time() + _WAITS * self._mail.longest_wait
        while True:
            await self._pace.turn()
            if self.outage:
                return [self.outage] * number
            reply = await request(self._over, "POST", self._mail.base_url + ask.path, ask.body, ask.headers)
            self._pace.heard(reply.headers)
            if not reply.wants_a_wait:
                said = self._mail.outcomes(reply, number)
                return said and [self._noted(outcome, reply) for outcome in said]
            now = datetime.now(UTC)
            when = self._mail.again_at(reply, now)
            wait = max((when - now).total_seconds(), _LEAST_WAIT)
            too_long = wait > self._mail.longest_wait or self._loop.time() + wait > give_up
            if reply.about_quota or too_long:
                put_off = Deferred(reply.said, certain=True, retry_at=when, quota=reply.about_quota)
                return [self._noted(put_off, reply)] * number
            self._pace.wait(wait)

    def _noted(self, outcome: Outcome, reply: Reply) -> Outcome:
        """Return an outcome fit for a log; an outage is kept, and what has not begun is put off under it."""
        if isinstance(outcome, Accepted):
            return outcome
        outcome = replace(outcome, reason=self._mail.for_log(outcome.reason))
        of_service = isinstance(outcome, Deferred) and reply.status != HTTPStatus.CONFLICT
        if of_service and self.outage is None:
            # Of what has not begun the provider has taken nothing.
            self.outage = replace(outcome, certain=True)
            log.warning("mail: %s is out: %s", self._mail.base_url, outcome.reason)
        if isinstance(outcome, Deferred) and not outcome.certain and not self._mail.key_lifetime:
            # Sent again it could arrive twice.
            return Unknown(outcome.reason)
        return outcome


class _Pace:
    """When the next request may start, as the provider's rate-limit headers say; of one event loop."""

    def __init__(self) -> None:
        self._not_before = 0.0
        self._limit: int | None = None
        self._left: int | None = None
        self._resets = 0.0
        self._out = 0

    async def turn(self) -> None:
        """Wait until a request may start, and count it as started."""
        while (seconds := self._seconds()) > 0:  # noqa: ASYNC110 - what is waited for is a time
            await asyncio.sleep(seconds)
        if self._left is not None:
            self._left -= 1
        self._out += 1

    def heard(self, headers: Mapping[str, str]) -> None:
        """Learn from the answer to a request that was started."""
        self._out -= 1
        limit, left, seconds = (
            _whole(headers.get(f"ratelimit-{name}")) for name in ("limit", "remaining", "reset")
        )
        if limit and left is not None and seconds is not None:
            self._limit = limit
            # Those still under way are not in the provider's number yet.
            self._left = left - self._out
            self._resets = asyncio.get_running_loop().time() + min(seconds, _LONGEST_WINDOW)

    def wait(self, seconds: float) -> None:
        """Let nothing start for so many seconds."""
        self._not_before = max(self._not_before, asyncio.get_running_loop().time() + seconds)

    def _seconds(self) -> float:
        now = asyncio.get_running_loop().time()
        if now < self._not_before:
            return self._not_before - now
        if self._left is not None and self._left <= 0:
            if now < self._resets:
                return self._resets - now
            self._left, self._resets = self._limit, now + 1
        return 0.0


def _key_of_part(batch_key: str, some: Sequence[tuple[int, Any]]) -> str:
    return f"{batch_key}#{some[0][0]}-{some[-1][0]}"


def _consistent(found: Sequence[Outcome]) -> tuple[Outcome, ...]:
    """Return outcomes of which none lets a message leave a batch that goes out again as a whole."""
    if not any(isinstance(outcome, Deferred) and not outcome.certain for outcome in found):
        return tuple(found)
    return tuple(
        replace(outcome, certain=False) if isinstance(outcome, Deferred) else outcome for outcome in found
    )


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else None  # noqa: PLR2004
