"""An operators' ledger for benchmarks, in which an outage is an error."""

from __future__ import annotations

from include.errors import Permanent


class Quiet:
    """An operators' ledger to which nothing is told here."""

    def tell(self, cause: str, kind: str, subject: str, text: str) -> bool:  # noqa: ARG002 - the protocol's form
        return True

    def known(self, cause: str) -> bool:  # noqa: ARG002 - the protocol's form
        return False

    def outage(self, service: str, reason: str) -> None:
        raise Permanent(f"bench: {service} is out of reach: {reason}")

    def recovered(self, service: str) -> None:
        pass

    def in_outage(self, service: str) -> bool:  # noqa: ARG002 - the protocol's form
        return False
