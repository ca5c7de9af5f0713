"""What operators are told, each thing once: a job names the cause, the ledger sees to the rest."""

from __future__ import annotations

from typing import Protocol

from include.effects import Effects


def alert_text(
    error: str, then: str, *, dag_id: str | None, run_id: str | None, task: str | None, link: str | None
) -> str:
    """Return the text of an alert's mail: the run that it is about, the error, where to look, and what `then`."""
    named = (("DAG:   ", dag_id), ("Run:   ", run_id), ("Task:  ", task), ("Error: ", error))
    lines = "".join(f"{name}{value}\n" for name, value in named if value)
    return "\n".join([lines, *([f"{link}\n"] if link else []), f"{then}\n"])


class Alerts(Protocol):
    """The operators' ledger. A cause that was told before is not told again."""

    def tell(self, cause: str, kind: str, subject: str, text: str) -> bool:
        """Put a message to the operators on the ledger; say whether the cause is new."""
        ...

    def known(self, cause: str) -> bool:
        """Say whether a cause is on the ledger."""
        ...

    def outage(self, service: str, reason: str) -> None:
        """Say that a service is out of reach: one alert from the first failure to the next success."""
        ...

    def recovered(self, service: str) -> None:
        """Say that a service answers again."""
        ...

    def in_outage(self, service: str) -> bool:
        """Say whether an outage of the service is open."""
        ...


class RecordedAlerts:
    """A preview's ledger: reads the real one, tells nobody."""

    def __init__(self, real: Alerts, effects: Effects, to: str | None) -> None:
        self._real = real
        self._effects = effects
        self._to = to or "(no address: logged)"

    def tell(self, cause: str, kind: str, subject: str, text: str) -> bool:  # noqa: ARG002 - the protocol's form
        if self.known(cause):
            return False
        self._effects.message(self._to, subject)
        return True

    def known(self, cause: str) -> bool:
        return self._real.known(cause)

    def outage(self, service: str, reason: str) -> None:
        if not self._real.in_outage(service):
            self._effects.message(self._to, f"{service} is out of reach: {reason}")

    def recovered(self, service: str) -> None:
        if self._real.in_outage(service):
            self._effects.call("outage ledger", f"{service} answers again")

    def in_outage(self, service: str) -> bool:
        return self._real.in_outage(service)
