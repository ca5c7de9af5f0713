"""A browser's push service on loopback: it checks the VAPID signature, and devices decrypt what it took."""

from __future__ import annotations

import base64
import json
import re
import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import http_ece
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from py_vapid import Vapid02

from stack.fakes.http_fake import HttpFake, Request, Sent, command_line

LARGEST = 4_096


def base64url(content: bytes) -> str:
    """Return bytes as a browser writes them."""
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


@dataclass
class Device:
    """A browser with its keys; `shown` is what it could decrypt."""

    endpoint: str
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    auth: bytes = field(default_factory=lambda: uuid.uuid4().bytes)
    shown: list[dict[str, Any]] = field(default_factory=list)

    @property
    def p256dh(self) -> str:
        point = self.key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        return base64url(point)

    def take(self, body: bytes) -> None:
        """Decrypt a message as the browser does (RFC 8291)."""
        content = http_ece.decrypt(body, private_key=self.key, auth_secret=self.auth, version="aes128gcm")
        self.shown.append(json.loads(content))


class PushServer(HttpFake):
    """A push service that was told `public_key`, the one that its devices subscribed under.

    A fault of `fail` goes out in place of taking the message, or after it if `after` says so.
    """

    def __init__(self, *, public_key: str = "", base_path: str = "", port: int = 0) -> None:
        super().__init__(base_path=base_path, port=port)
        self.public_key = public_key
        self.devices: dict[str, Device] = {}
        self.asked: list[Request] = []
        self.claims: list[dict[str, Any]] = []
        self._faults: list[tuple[Sent, bool]] = []
        self._lock = threading.Lock()

    def fail(self, fault: Sent, *, after: bool = False) -> None:
        """Let the next message go wrong."""
        self._faults.append((fault, after))

    def device(self) -> Device:
        """Return a new device that is subscribed here."""
        path = f"{self.base_path}/push/{uuid.uuid4()}"
        device = Device(f"http://{self.host}{path}")
        self.devices[path] = device
        return device

    def answer(self, request: Request) -> Sent:
        with self._lock:
            self.asked.append(request)
            fault, after = self._faults.pop(0) if self._faults else (None, False)
        if fault is not None and not after:
            return fault
        refused = self._fault(request)
        if refused is not None:
            return Sent(*refused, content_type="text/plain")
        self.devices[request.path].take(request.body)
        location = f"{self.url}/message/{uuid.uuid4()}"
        return fault or Sent(201, b"", {"Location": location}, content_type="text/plain")

    def _fault(self, request: Request) -> tuple[int, bytes] | None:  # noqa: PLR0911 - one return a rule
        said = re.fullmatch(r"vapid t=([^,]+),\s*k=(.+)", request.headers.get("Authorization", ""))
        if said is None:
            return 401, b"missing VAPID"
        if not Vapid02.verify(request.headers["Authorization"]):
            return 401, b"bad signature"
        claims = json.loads(base64.urlsafe_b64decode(said[1].split(".")[1] + "=="))
        self.claims.append(claims)
        if claims["aud"] != f"http://{self.host}" or not 0 < claims["exp"] - time.time() <= 24 * 3_600:
            return 403, b"bad claims"
        if self.public_key and said[2] != self.public_key:
            return 403, b"the key is not the one that the device subscribed under"
        if request.path not in self.devices:
            return 410, b"gone"
        if not request.headers.get("TTL", "").isdigit():
            return 400, b"missing TTL"
        if request.headers.get("Content-Encoding") != "aes128gcm":
            return 400, b"bad encoding"
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,32}", request.headers.get("Topic", "x")):
            return 400, b"bad topic"
        if len(request.body) > LARGEST:
            return 413, b"too large"
        return None


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve a push service without devices, and say on the first line of standard output where."""
    parser = command_line("push_server", main.__doc__)
    given = parser.parse_args(arguments)
    PushServer(port=given.port).serve("push")


if __name__ == "__main__":
    main()
