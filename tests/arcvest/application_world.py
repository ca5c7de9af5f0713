"""ArcVest's application in memory: it does the work of a key once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.world import Tick, no_tick


@dataclass
class FakeApplication:
    """The application; `fail` holds what the next calls raise, `calls` every call, `done` each key's work once."""

    tick: Tick = no_tick
    answer: Mapping[str, Any] = field(default_factory=lambda: {"success": True})
    fail: list[Exception] = field(default_factory=list)
    calls: list[tuple[str, str]] = field(default_factory=list)
    done: dict[str, str] = field(default_factory=dict)

    def call(self, endpoint: str, key: str) -> Mapping[str, Any]:
        self.tick("application before")
        self.calls.append((endpoint, key))
        if self.fail:
            raise self.fail.pop(0)
        self.done[key] = endpoint
        self.tick("application after")
        return self.answer
