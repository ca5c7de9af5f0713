"""ArcVest's own application as the syncs see it: a call that it does once per key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from include.effects import Effects
from include.errors import Outage

SERVICE = "arcvest application"


class NoAnswer(Outage):
    """The call went out and no answer came in time: nobody knows whether the application did it."""


class Application(Protocol):
    """What the application's scheduled endpoints are called through."""

    def call(self, endpoint: str, key: str) -> Mapping[str, Any] | None:
        """Call an endpoint under an idempotency key and return the object that it answers; None if it is none.

        Raises NoAnswer if it may have begun and said nothing, or a page came; Outage if it can't be reached, is
        overloaded, fails, or our secret for it is wrong; Refused for any other 4xx.
        """
        ...


class RecordedApplication:
    """A preview's application: it is not called, and taken to have done what was asked."""

    def __init__(self, effects: Effects) -> None:
        self._effects = effects

    def call(self, endpoint: str, key: str) -> Mapping[str, Any]:
        self._effects.call(SERVICE, f"{endpoint} under the key {key}")
        return {}
