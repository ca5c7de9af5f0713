"""What a migration puts into a system's database for a queue table.

Migrations that have run called these functions: what one of them makes only grows by a function beside it.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Identity,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    TextClause,
    func,
    text,
)

from include.columns import instant
from include.queues.table import QueueTable
from include.queues.wording import ddl, due_terms, where_status


def claim_columns() -> list[Column[Any]]:
    """Return the columns that a claim needs, for the table's own definition: who holds it, and until when."""
    return [Column("claimed_by", Text), instant("heartbeat_at")]


def audit_table(metadata: MetaData) -> Table:
    """Return `queue_audit`, one a database: every change of status of every row of its queues."""
    return Table(
        "queue_audit",
        metadata,
        Column("id", BigInteger, Identity(always=True), primary_key=True),
        Column("queue", Text, nullable=False),
        Column("row_key", Text, nullable=False),
        Column("moved_at", instant("moved_at").type, nullable=False, server_default=func.clock_timestamp()),
        Column("from_status", Text),
        Column("to_status", Text),
        Column("attempt", Integer),
        Column("claimed_by", Text),
        # The person, or the role of the database's session.
        Column("actor", Text),
        Column("reason", Text),
        Index("ix_queue_audit_row", "queue", "row_key", "id"),
    )


def queue_indexes(table: QueueTable) -> list[Index]:
    """Return the indexes of due and of claimed rows, and of a stage's,, for the table's own definition."""
    words = table.words
    found = [
        Index(
            f"ix_{table.name}_due",
            *map(text, due_terms(table)),
            postgresql_where=text(where_status(table, words.due)),
        ),
        Index(
            f"ix_{table.name}_claimed",
            table.key,
            postgresql_where=text(where_status(table, words.claimed)),
        ),
    ]
    if table.stage:
        open_rows = where_status(table, words.due, words.claimed)
        found.append(Index(f"ix_{table.name}_stage", table.stage, postgresql_where=text(open_rows)))
    return found


def guard_statements(table: QueueTable) -> list[TextClause]:
    """Return the definitions that guard a table's status and key, keep its trail and tell who listens, in order."""
    names = (
        "guard", "guard_updates", "guard_inserts", "moved", "moved_nobody", "moved_trigger", "filled",
        "filled_trigger", "storage",
    )  # fmt: skip
    return [ddl(table, name) for name in names]
