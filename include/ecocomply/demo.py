"""Demo data: a consultancy and its clients, with something due for every job on the day it is made."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, exists, select

from include.ecocomply.generator import generate
from include.ecocomply.tables.companies import COMPANIES

_COMPANIES = 4
_OBLIGATIONS = 240
_SEED = "demo"

PARAMS: Mapping[str, Mapping[str, Any]] = {
    "ecocomply_process_trigger_conditions": {
        "event_type": "waste_volume_threshold_exceeded",
        "event_data": {"waste_volume": 1300},
        # The generator's ids are hashes like this one.
        "company_id": str(
            uuid.UUID(hashlib.md5(f"{_SEED}/company/2".encode(), usedforsecurity=False).hexdigest())
        ),
    }
}
"""What the DAGs that want params are given in a demo."""


def seed(connection: Connection, now: datetime) -> None:
    """Fill an empty database; one that holds a company already stays as it is."""
    if not connection.execute(select(exists(select(COMPANIES.c.id)))).scalar_one():
        generate(connection, today=now.date(), companies=_COMPANIES, obligations=_OBLIGATIONS, seed=_SEED)
