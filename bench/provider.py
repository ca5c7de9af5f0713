"""Resend on loopback, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

from include.errors import Transient
from stack.home import PROJECT

API_KEY = "re_bench"
_ENDS_WITHIN = 10


@contextmanager
def open_provider(latency_ms: float) -> Generator[str]:
    """Start the server and give its base URL; every answer takes so long, and longer by its own work."""
    command = [sys.executable, "-m", "stack.fakes.resend_server", "--api-key", API_KEY]
    command += ["--latency-ms", str(latency_ms)]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as server:
        try:
            url = server.stdout.readline().strip() if server.stdout else ""
            if not url:
                raise Transient("bench: the mail server on loopback did not start")
            yield url
        finally:
            server.terminate()
            server.wait(_ENDS_WITHIN)
