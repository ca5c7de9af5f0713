"""People who want weekly digests, and what waits for them."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection

from tests.ecocomply.worlds import digests

world, outside, unit = digests.world, digests.outside, digests.unit


def seed(connection: Connection, now: datetime) -> None:
    """Insert them; what others want, or by another frequency, is left."""
    digests.seed(connection, now, "WEEKLY_DIGEST")
