"""The link in a digest that stops the digests: a random token of that one mail, for a year, for nothing else."""

from __future__ import annotations

import uuid

from include.run import Transaction
from include.statements import statement

PACKAGE = "include.nifya"
LIVES_DAYS = 365


def is_stopped(tx: Transaction, token: str) -> bool | None:
    """Say whether the user of a token gets no more digests; None for a token that is not valid."""
    known = _uuid(token)
    if known is None:
        return None
    found = tx.row(statement(PACKAGE, "digest_of_token"), token=known, days=LIVES_DAYS)
    return None if found is None else bool(found.is_stopped)


def stop(tx: Transaction, token: str) -> bool:
    """Stop the digests of the user of a token, and say whether the token is valid. Twice is the same as once."""
    known = _uuid(token)
    return (
        known is not None and tx.execute(statement(PACKAGE, "stop_digests"), token=known, days=LIVES_DAYS) > 0
    )


def _uuid(token: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(token)
    except ValueError:
        return None
