"""Believable data of any size, by set-based statements: companies with everything that EcoComply's tables hold.

The same seed, day and sizes give the same rows, ids included.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from sqlalchemy import Connection

from include.ecocomply.generator.order import FUNCTIONS, ROWS
from include.errors import BadInput
from include.statements import statement

_SETTINGS = "settings"


def generate(
    connection: Connection,
    *,
    today: date,
    companies: int = 5,
    obligations: int = 500,
    seed: str = "almanac",
    statements: Sequence[str] = ROWS,
) -> dict[str, int]:
    """Fill tables in the connection's transaction; return how many rows each statement made or changed.

    `obligations` are shared out evenly over all sites; each company has three. What is due, overdue or expiring
    is so on `today`. Of two or more companies the first is a consultancy that the others are clients of. It is
    meant for a database that holds nothing else. Raises BadInput for fewer than one company.
    """
    if companies < 1 or obligations < 0:
        raise BadInput(f"generator: {companies} companies with {obligations} obligations can't be")
    sizes = {"companies": str(companies), "obligations": str(obligations)}
    connection.execute(
        statement(__name__, _SETTINGS).clause, {"seed": seed, "today": today.isoformat(), **sizes}
    )
    for name in FUNCTIONS:
        connection.execute(statement(__name__, name).clause)
    return {name: connection.execute(statement(__name__, name).clause).rowcount for name in statements}
