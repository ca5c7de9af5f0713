"""The trail is written into the one table alone, whatever a session has made beside it; a key stays as it is."""

from __future__ import annotations

from alembic import op

from include.ecocomply.migrations.r0001_tables.queue import JOBS
from include.queues.schema import guard_statements

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Replace functions and triggers."""
    for statement in guard_statements(JOBS):
        op.execute(statement)
