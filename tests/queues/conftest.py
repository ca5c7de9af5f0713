"""Queue tables that use all, or the least, of what the engine offers, in databases of their own."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import (
    Column,
    Engine,
    Integer,
    MetaData,
    Row,
    Table,
    Text,
    Uuid,
    func,
    insert,
    select,
    text,
)

from include.columns import identity, instant
from include.queues.engine import Queue
from include.queues.schema import audit_table, claim_columns, guard_statements, queue_indexes
from include.queues.table import QueueTable, Words, doubling
from include.run import EngineDatabase, Run

WORDS = Words(due="pending", claimed="processing", done="completed", failed="failed", cancelled="cancelled")

FULL = QueueTable(
    name="full_queue",
    words=WORDS,
    due="next_run_at",
    error="last_error",
    channel="full_queue",
    max_attempts="max_attempts",
    priority="priority",
    stage="batch",
    kind="kind",
    started="started_at",
    finished="completed_at",
    dedupe="dedupe_key",
    delays=doubling(30, 3600, 5),
    attempt_limit=5,
    lost_after=timedelta(minutes=10),
    moves=frozenset({("processing", "cancelled")}),
    people_may=frozenset({"cancel", "retry", "requeue"}),
)
"""Everything but tenants."""

FAIR = QueueTable(
    name="fair_queue",
    words=WORDS,
    due="next_run_at",
    again="retry_at",
    error="last_error",
    channel="fair_queue",
    priority="priority",
    tenant="tenant",
    delays=(60, 300),
    attempt_limit=3,
)
"""Tenants that take turns, and a due time that later tries leave alone."""

PLAIN = QueueTable(
    name="plainQueue",
    words=Words(due="pending", claimed="running", done="completed", failed="failed"),
    due="scheduledAt",
    again="dueAgainAt",
    error="errorMessage",
    channel="plain_queue",
    key_type="text",
    lost_after=timedelta(seconds=60),
    lost_delays=(0,),
    attempt_limit=3,
)
"""The least: a failure is final, and names that must be quoted."""


def tables(metadata: MetaData) -> dict[str, Table]:
    """Return the tables, with what the engine adds."""
    made = [
        Table(
            "full_queue", metadata, identity(), Column("kind", Text), Column("batch", Uuid),
            Column("status", Text, nullable=False, server_default="pending"),
            Column("priority", Integer, server_default="0"),
            Column("attempts", Integer, server_default="0"), Column("max_attempts", Integer),
            Column("last_error", Text), instant("next_run_at"), instant("started_at"), instant("completed_at"),
            Column("dedupe_key", Text, unique=True), Column("payload", Text), *claim_columns(),
            *queue_indexes(FULL),
        ),
        Table(
            "fair_queue", metadata, identity(), Column("tenant", Text),
            Column("status", Text, nullable=False, server_default="pending"),
            Column("priority", Integer), Column("attempts", Integer, server_default="0"),
            Column("last_error", Text), instant("next_run_at"), instant("retry_at"), *claim_columns(),
            *queue_indexes(FAIR),
        ),
        Table(
            "plainQueue", metadata, Column("id", Text, primary_key=True),
            Column("status", Text, nullable=False, server_default="pending"),
            Column("attempts", Integer, nullable=False, server_default="0"), Column("errorMessage", Text),
            instant("scheduledAt"), instant("dueAgainAt"), *claim_columns(), *queue_indexes(PLAIN),
        ),
    ]  # fmt: skip
    audit_table(metadata)
    return {table.name: table for table in made}


METADATA = MetaData()
TABLES = tables(METADATA)


def install(engine: Engine) -> None:
    """Make the tables and all that guards them."""
    METADATA.create_all(engine)
    with engine.begin() as connection:
        for queue in (FULL, FAIR, PLAIN):
            for statement in guard_statements(queue):
                connection.execute(statement)
        # What an effect of the work is written to, in the transaction that ends the claim.
        connection.exec_driver_sql("CREATE TABLE effects (id serial PRIMARY KEY, row_key text NOT NULL)")


@dataclass
class Bench:
    """A database with the queues, and what tests do to it."""

    engine: Engine

    @property
    def database(self) -> EngineDatabase:
        return EngineDatabase(self.engine)

    def run(self, run_id: str = "run") -> Run:
        return Run(
            job="queue", run_id=run_id, as_of=datetime.now(UTC), zone=ZoneInfo("UTC"), db=self.database
        )

    def add(self, queue: QueueTable, count: int = 1, **values: Any) -> list[Any]:
        """Insert rows that are due since a minute, each a second after the one before; return their keys."""
        table = TABLES[queue.name]
        first = datetime.now(UTC) - timedelta(minutes=1)
        rows = [
            {"id": uuid.uuid4() if queue.key_type == "uuid" else f"row {n}"}
            | {queue.due: first + timedelta(milliseconds=n)}
            | values
            for n in range(count)
        ]
        with self.engine.begin() as connection:
            connection.execute(insert(table), rows)
        return [row["id"] for row in rows]

    def row(self, queue: QueueTable, key: Any) -> Row[Any]:
        table = TABLES[queue.name]
        with self.engine.connect() as connection:
            return connection.execute(select(table).where(table.c.id == key)).one()

    def statuses(self, queue: QueueTable) -> dict[str, int]:
        table = TABLES[queue.name]
        counted = select(table.c.status, func.count()).group_by(table.c.status)
        with self.engine.connect() as connection:
            return {row[0]: row[1] for row in connection.execute(counted)}

    def audit(self, key: Any) -> list[tuple[str, str, int]]:
        """Return a row's changes of status, oldest first: from, to, attempt."""
        table = METADATA.tables["queue_audit"]
        wanted = select(table).where(table.c.row_key == str(key)).order_by(table.c.id)
        with self.engine.connect() as connection:
            return [(row.from_status, row.to_status, row.attempt) for row in connection.execute(wanted)]

    def age(self, queue: QueueTable, **columns: timedelta) -> None:
        """Move instants of every row back."""
        table = TABLES[queue.name]
        with self.engine.begin() as connection:
            connection.execute(
                table.update().values({name: table.c[name] - by for name, by in columns.items()})
            )

    def execute(self, statement: str) -> None:
        with self.engine.begin() as connection:
            connection.execute(text(statement))

    def effects(self) -> list[str]:
        with self.engine.connect() as connection:
            return list(connection.execute(text("SELECT row_key FROM effects ORDER BY row_key")).scalars())


@pytest.fixture
def bench(empty_database: Engine) -> Bench:
    """Return a database with the queues, empty."""
    install(empty_database)
    return Bench(empty_database)


@pytest.fixture(params=[FULL, FAIR, PLAIN], ids=lambda table: table.name)
def any_queue(request: pytest.FixtureRequest) -> Queue:
    """Return each of the queues in turn."""
    return Queue(request.param)
