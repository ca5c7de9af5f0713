"""Resend on loopback: the API that `hooks.email_resend` speaks, with what the real one refuses.

`POST {base}/emails` and `POST {base}/emails/batch` deliver into memory. Keys stop a second delivery for 24
hours and are refused with 409 while in use or with another payload; rate limits, quotas, wrong keys and
faulty messages are answered as Resend answers them. For a server in a process of its own,
`GET /fake/delivered` lists what was delivered, and `POST /fake/faults` takes a list of faults.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self

from aiohttp import web

from stack.fakes.http_fake import command_line

KEY_SECONDS = 24 * 3600.0
MOST_PER_BATCH = 100
_ADDRESS = re.compile(r"(?:[^<>\r\n]*<)?[^\s@<>,;]+@[^\s@<>,;]+\.[^\s@<>,;]+>?")
_HEADER = re.compile(r"[A-Za-z0-9-]+")


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with one request.

    Of the kinds, `status` answers an error instead of working, `cut_before` hangs up without working, `cut`
    and `half` work and then hang up before or within the answer, `malformed` works and answers `body`,
    `silent` never answers, `slow` merely takes its time. `delay` is in seconds, before anything happens.
    """

    kind: Literal["status", "cut_before", "cut", "half", "malformed", "silent", "slow"] = "status"
    status: int = 500
    name: str = "internal_server_error"
    message: str = "An unexpected error occurred."
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = "<html>It works!</html>"
    delay: float = 0


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message that went out: under which key, and as it came."""

    id: str
    key: str | None
    message: Mapping[str, Any]

    @property
    def to(self) -> str:
        return self.message["to"][0]


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it came; `at` is the server's clock in seconds."""

    at: float
    path: str
    key: str | None
    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True)
class _Used:
    at: float
    path: str
    body: bytes
    answer: Mapping[str, Any] | None = None


class _Problem(Exception):
    def __init__(
        self, status: int, name: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(name)
        self.status = status
        self.body = {"statusCode": status, "name": name, "message": message}
        self.headers = dict(headers or {})


class ResendServer:
    """Resend, in a thread of this process; use it as a context manager.

    `latency` is seconds before each answer. `rate_limit` is requests a second (None: no limit), `daily_quota`
    messages (None: no quota) until `quota_resets_in` seconds from the start. With `permissive` off the server
    does not know `x-batch-validation` and refuses a whole batch for one faulty message. `blocked` are
    addresses that validation refuses.
    """

    def __init__(  # noqa: PLR0913 - each is a thing that a case turns
        self,
        *,
        api_key: str = "re_fake",
        base_path: str = "",
        port: int = 0,
        latency: float = 0,
        rate_limit: int | None = None,
        daily_quota: int | None = None,
        quota_resets_in: float = 3600,
        permissive: bool = True,
        blocked: Sequence[str] = (),
    ) -> None:
        self.api_key = api_key
        self.base_path = base_path.rstrip("/")
        self.latency = latency
        self.rate_limit = rate_limit
        self.daily_quota = daily_quota
        self.permissive = permissive
        self.blocked = frozenset(blocked)
        self.delivered: list[Delivery] = []
        self.requests: list[Request] = []
        self.early: list[Request] = []
        self.most_at_once = 0
        self.port = port
        self._skipped = 0.0
        self._quota_resets = self.now() + quota_resets_in
        self._quota_used = 0
        self._faults: list[Fault] = []
        self._lasting: Fault | None = None
        self._keys: dict[str, _Used] = {}
        self._window = (0.0, 0)
        self._told_to_wait_until = 0.0
        self._at_once = 0
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self.serve()), daemon=True)

    @property
    def url(self) -> str:
        """The base URL, its path included."""
        return f"http://127.0.0.1:{self.port}{self.base_path}"

    def now(self) -> float:
        return time.monotonic() + self._skipped

    def skip(self, seconds: float) -> None:
        """Let the server's clock jump ahead."""
        self._skipped += seconds

    def fail(self, *faults: Fault) -> None:
        """Let the next requests go wrong, one fault each."""
        self._faults.extend(faults)

    def fail_always(self, fault: Fault | None) -> None:
        """Let every request go wrong that has no fault of its own; None mends it."""
        self._lasting = fault

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(10):
            raise TimeoutError("the mail server did not start")
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def serve(self) -> None:
        """Serve until stopped; `port` is known once `_ready` is set."""
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.add_routes(
            [
                web.get("/fake/delivered", self._list_delivered),
                web.post("/fake/faults", self._take_faults),
                web.get(f"{self.base_path}/domains", self._domains),
                web.post(f"{self.base_path}/emails", self._mail),
                web.post(f"{self.base_path}/emails/batch", self._mail),
            ]
        )
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", self.port)
        await site.start()
        self.port = runner.addresses[0][1]
        self._ready.set()
        await self._stop.wait()
        await runner.cleanup()

    async def _list_delivered(self, _: web.Request) -> web.Response:
        return web.json_response([asdict(delivery) for delivery in self.delivered])

    async def _take_faults(self, request: web.Request) -> web.Response:
        self.fail(*(Fault(**fault) for fault in await request.json()))
        return web.Response(status=204)

    async def _domains(self, request: web.Request) -> web.StreamResponse:
        try:
            self._check_key(request)
        except _Problem as problem:
            return _answer(problem.status, problem.body, problem.headers)
        return _answer(200, {"object": "list", "data": []}, {})

    async def _mail(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            return await self._work(request, body)
        finally:
            self._at_once -= 1

    async def _work(self, request: web.Request, body: bytes) -> web.StreamResponse:
        path = request.path.removeprefix(self.base_path)
        key = request.headers.get("Idempotency-Key")
        came = Request(self.now(), path, key, dict(request.headers), body)
        self.requests.append(came)
        if came.at < self._told_to_wait_until:
            self.early.append(came)
        fault = self._faults.pop(0) if self._faults else self._lasting
        if fault and fault.delay:
            await asyncio.sleep(fault.delay)
        if fault and fault.kind == "silent":
            await self._stop.wait()
        if fault and fault.kind == "cut_before":
            return _hang_up(request)
        try:
            if fault and fault.kind == "status":
                raise _Problem(fault.status, fault.name, fault.message, fault.headers)  # noqa: TRY301
            answer = await self._take(request, path, key, body)
        except _Problem as problem:
            headers = self._rate_headers() | problem.headers
            self._remember_wait(problem.headers)
            return _answer(problem.status, problem.body, headers)
        if fault and fault.kind == "cut":
            return _hang_up(request)
        if fault and fault.kind == "half":
            return await _half(request, answer)
        if fault and fault.kind == "malformed":
            return web.Response(text=fault.body, content_type="application/json")
        return _answer(200, answer, self._rate_headers() | dict(fault.headers if fault else {}))

    async def _take(self, request: web.Request, path: str, key: str | None, body: bytes) -> Mapping[str, Any]:
        self._check_key(request)
        self._check_rate()
        if key is None:
            await asyncio.sleep(self.latency)
            return self._deliver(request, path, None, body)
        if not 1 <= len(key) <= 256:  # noqa: PLR2004 - Resend's own number
            message = "Idempotency keys, if present, must have between 1 and 256 characters."
            raise _Problem(400, "invalid_idempotency_key", message)
        used = self._keys.get(key)
        if used and self.now() - used.at < KEY_SECONDS:
            if (used.path, used.body) != (path, body):
                message = "Same idempotency key used with a different request payload."
                raise _Problem(409, "invalid_idempotent_request", message)
            if used.answer is None:
                message = "Same idempotency key used while original request is still in progress."
                raise _Problem(409, "concurrent_idempotent_requests", message)
            await asyncio.sleep(self.latency)
            return used.answer
        mine = self._keys[key] = _Used(self.now(), path, body)
        try:
            await asyncio.sleep(self.latency)
            mine.answer = self._deliver(request, path, key, body)
        finally:
            if mine.answer is None:
                del self._keys[key]
        return mine.answer

    def _deliver(self, request: web.Request, path: str, key: str | None, body: bytes) -> Mapping[str, Any]:
        try:
            content = json.loads(body)
        except ValueError:
            raise _Problem(400, "validation_error", "The request body is not JSON.") from None
        batch = path == "/emails/batch"
        messages = content if batch else [content]
        if not isinstance(messages, list) or not 1 <= len(messages) <= MOST_PER_BATCH:
            message = f"A batch holds between 1 and {MOST_PER_BATCH} emails."
            raise _Problem(422, "validation_error", message)
        faults = {index: why for index, item in enumerate(messages) if (why := self._fault(item))}
        permissive = batch and self.permissive and request.headers.get("x-batch-validation") == "permissive"
        if faults and not permissive:
            raise _Problem(422, "validation_error", next(iter(faults.values())))
        good = [item for index, item in enumerate(messages) if index not in faults]
        self._check_quota(len(good))
        new = [Delivery(str(uuid.uuid4()), key, item) for item in good]
        self.delivered.extend(new)
        if not batch:
            return {"id": new[0].id}
        data = [{"id": delivery.id} for delivery in new]
        errors = [{"index": index, "message": why} for index, why in faults.items()]
        return {"data": data, "errors": errors} if permissive else {"data": data}

    def _fault(self, item: Any) -> str | None:  # noqa: PLR0911 - one return a rule
        if not isinstance(item, dict):
            return "Each email must be an object."
        for name in ("from", "to", "subject"):
            if not item.get(name):
                return f"Missing `{name}` field."
        if not item.get("html") and not item.get("text"):
            return "Missing `html` or `text` field."
        recipients = [item["to"]] if isinstance(item["to"], str) else item["to"]
        for name, values in (("from", [item["from"]]), ("to", recipients)):
            for value in values:
                if not isinstance(value, str) or not _ADDRESS.fullmatch(value) or value in self.blocked:
                    return (
                        f"Invalid `{name}` field. The email address needs to follow the "
                        "`email@example.com` or `Name <email@example.com>` format."
                    )
        if "\n" in item["subject"] or "\r" in item["subject"]:
            return "The `\\n` is not allowed in the `subject` field."
        headers = item.get("headers", {})
        if not isinstance(headers, dict) or not all(_HEADER.fullmatch(name) for name in headers):
            return "Invalid `headers` field."
        return None

    def _check_key(self, request: web.Request) -> None:
        given = request.headers.get("Authorization")
        if given is None:
            raise _Problem(401, "missing_api_key", "Missing API Key")
        if given != f"Bearer {self.api_key}":
            raise _Problem(401, "validation_error", "API key is invalid")

    def _check_rate(self) -> None:
        if self.rate_limit is None:
            return
        start, used = self._window
        if self.now() - start >= 1:
            start, used = self.now(), 0
        if used >= self.rate_limit:
            message = f"Too many requests. You can only make {self.rate_limit} requests per second."
            raise _Problem(429, "rate_limit_exceeded", message, {"retry-after": "1"})
        self._window = start, used + 1

    def _rate_headers(self) -> dict[str, str]:
        if self.rate_limit is None:
            return {}
        return {
            "ratelimit-limit": str(self.rate_limit),
            "ratelimit-remaining": str(max(self.rate_limit - self._window[1], 0)),
            "ratelimit-reset": "1",
        }

    def _check_quota(self, number: int) -> None:
        if self.now() >= self._quota_resets:
            self._quota_resets, self._quota_used = self.now() + KEY_SECONDS, 0
        used = self._quota_used
        if self.daily_quota is not None and used + number > self.daily_quota:
            seconds = str(max(1, round(self._quota_resets - self.now())))
            message = "You have reached your daily email sending quota."
            headers = {"retry-after": seconds, "x-resend-daily-quota": str(used)}
            raise _Problem(429, "daily_quota_exceeded", message, headers)
        self._quota_used += number

    def _remember_wait(self, headers: Mapping[str, str]) -> None:
        seconds = headers.get("retry-after", headers.get("Retry-After", ""))
        if seconds.isdigit():
            self._told_to_wait_until = max(self._told_to_wait_until, self.now() + int(seconds))


def _answer(status: int, body: Mapping[str, Any], headers: Mapping[str, str]) -> web.Response:
    return web.json_response(body, status=status, headers=headers)


def _hang_up(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)


async def _half(request: web.Request, answer: Mapping[str, Any]) -> web.StreamResponse:
    content = json.dumps(answer).encode()
    response = web.StreamResponse(headers={"Content-Length": str(len(content))})
    response.content_type = "application/json"
    await response.prepare(request)
    await response.write(content[: len(content) // 2])
    if request.transport is not None:
        request.transport.close()
    return response


def main() -> None:
    """Serve until the process is ended; the first line of output is the base URL."""
    parser = command_line("resend_server", main.__doc__)
    parser.add_argument("--latency-ms", type=float, default=0)
    parser.add_argument("--api-key", default="re_fake")
    parser.add_argument("--base-path", default="")
    parser.add_argument("--rate-limit", type=int)
    parser.add_argument("--daily-quota", type=int)
    given = parser.parse_args()
    server = ResendServer(
        api_key=given.api_key,
        base_path=given.base_path,
        port=given.port,
        latency=given.latency_ms / 1000,
        rate_limit=given.rate_limit,
        daily_quota=given.daily_quota,
    )
    with server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
