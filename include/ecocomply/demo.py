"""Demo data: a consultancy and its clients, with something due for every job on the day it is made."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, exists, select

from include.ecocomply.generator import generate
from include.ecocomply.tables.companies import COMPANIES

_COMPANIES = 4
_OBLIGATIONS = 240


def seed(connection: Connection, now: datetime) -> None:
    """Fill an empty database; one that holds a company already stays as it is."""
    if not connection.execute(select(exists(select(COMPANIES.c.id)))).scalar_one():
        generate(connection, today=now.date(), companies=_COMPANIES, obligations=_OBLIGATIONS, seed="demo")
