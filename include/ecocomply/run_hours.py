"""How much of a limit of hours has been run, and how that is told."""

from __future__ import annotations

from decimal import Decimal

from include.errors import BadInput

MOST = Decimal("999.9")
"""The highest percentage that is told, also where any hour at all is too many."""


def percentage(hours: Decimal, limit: Decimal) -> Decimal:
    """Return how much of a limit `hours` are, in percent, at most MOST. Raises BadInput for a limit that is none."""
    if limit.is_nan() or limit < 0:
        raise BadInput(f"a limit of {limit} hours is none")
    if not limit:
        return MOST if hours else Decimal(0)
    return min(100 * hours / limit, MOST)


def shown(number: Decimal) -> str:
    """Return a number of hours as people write it: `500`, not `500.00` or `5E+2`."""
    return f"{number.normalize():f}"
