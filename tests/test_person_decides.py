"""What a person may decide of messages beside ClearPath's: the statements that operations.md has, run as they stand."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from include.run import EngineDatabase

PAGE = Path(__file__).resolve().parents[1] / "docs" / "operations.md"
HEADING = "## Messages of the other systems that a person decides about"
KEY = uuid.UUID(int=7)
OTHER = uuid.UUID(int=8)


def statements() -> list[str]:
    """Return the section's statements, in its order."""
    section = PAGE.read_text(encoding="utf-8").partition(HEADING)[2].partition("\n## ")[0]
    return re.findall(r"```sql\n(.*?)```", section, re.DOTALL)


ECOCOMPLY = """
INSERT INTO companies (id, name) VALUES ('{0}', 'Acme');
INSERT INTO users (id, company_id, email) VALUES ('{0}', '{0}', 'a@b.test');
INSERT INTO digests (id, user_id, company_id, frequency, period_start, status, permanent, outcome_unknown)
SELECT one.id, '{0}', '{0}', 'DAILY', one.day, 'failed', true, true
FROM (VALUES (uuid '{0}', date '2027-03-03'), (uuid '{1}', date '2027-03-04')) AS one (id, day);
INSERT INTO notifications (
    id, user_id, company_id, notification_type, channel, priority, subject, body_text, status, outcome_unknown,
    digest_id
)
SELECT one.id, '{0}', '{0}', 'X', 'EMAIL', 'NORMAL', 's', 'b', one.status, one.digest_id IS NULL, one.digest_id
FROM (VALUES
    (uuid '{0}', 'FAILED', NULL), (uuid '{1}', 'FAILED', NULL),
    (gen_random_uuid(), 'PENDING', uuid '{0}'), (gen_random_uuid(), 'PENDING', uuid '{1}')
) AS one (id, status, digest_id);
"""
NIFYA = """
INSERT INTO users (id, email) VALUES ('ana', 'a@b.test');
INSERT INTO digests (id, user_id, due_at, due_on, status, permanent, outcome_unknown)
SELECT one.id, 'ana', one.day, one.day, 'failed', true, true
FROM (VALUES (uuid '{0}', date '2027-03-03'), (uuid '{1}', date '2027-03-04')) AS one (id, day);
"""
LEADMETRICS = """
INSERT INTO notification_outbox (id, dedupe_key, tenant_id, template_slug, recipient, data, status, sink, begun_at)
SELECT one.id, one.id, 's', 't', 'a@b.test', '{{}}', 'unknown', 'redis', now()
FROM (VALUES (uuid '{0}'), (uuid '{1}')) AS one (id);
"""
ARCVEST = """
INSERT INTO sync_slots (job, slot, attempts, outcome_unknown)
VALUES ('ads-optimize', '2027-03-03 12:00Z', 1, true), ('analytics-sync', '2027-03-03 12:00Z', 1, true);
"""
CASES = (
    ("ecocomply", ECOCOMPLY, "notifications", "SENT"),
    ("ecocomply", ECOCOMPLY, "notifications", "PENDING"),
    ("ecocomply", ECOCOMPLY, "digests", "sent"),
    ("ecocomply", ECOCOMPLY, "digests", "abandoned"),
    ("nifya", NIFYA, "digests", "sent"),
    ("nifya", NIFYA, "digests", "queued"),
    ("leadmetrics", LEADMETRICS, "notification_outbox", "sent"),
    ("leadmetrics", LEADMETRICS, "notification_outbox", "pending"),
    ("arcvest", ARCVEST, "sync_slots", None),
    ("arcvest", ARCVEST, "sync_slots", None),
)


def test_every_statement_is_tried() -> None:
    """One that is added to the page is added here."""
    assert len(statements()) == len(CASES)


@pytest.mark.parametrize(
    "number", range(len(CASES)), ids=lambda number: "-".join(map(str, CASES[number][::2]))
)
def test_a_statement_does_what_it_says(database_of: Callable[..., EngineDatabase], number: int) -> None:
    """It is pasted at night: one row changes, the one beside it stays, and pasted again it finds nothing."""
    system, seed, table, status = CASES[number]
    database = database_of(system)
    sql = re.sub(r"'(NOTIFICATION|DIGEST)-ID'", f"'{KEY}'", statements()[number])
    with database.engine.begin() as connection:
        connection.exec_driver_sql(seed.format(KEY, OTHER))
        before = rows(connection, table)
        assert len(connection.exec_driver_sql(sql).all()) == 1
        (meant, beside), after = before, rows(connection, table)
        assert before[meant] != after[meant]
        assert before[beside] == after[beside]
        assert after[meant].get("status") == status
        assert not after[meant].get("outcome_unknown")
        if (system, table) == ("ecocomply", "digests"):
            told = {"DELIVERED"} if status == "sent" else {"PENDING"}
            assert stood_in_digests(connection) == (told, {"PENDING"})
        if sql.lstrip().startswith("UPDATE notifications") and status == "PENDING":
            assert after[meant]["retry_count"] == 0
        assert connection.exec_driver_sql(sql).all() == []


def rows(connection: Connection, table: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the table's rows that the statements may touch, the one that is meant first."""
    key = "job" if table == "sync_slots" else "id"
    wanted = "" if table == "sync_slots" else f"WHERE id::text IN ('{KEY}', '{OTHER}')"
    found = connection.exec_driver_sql(f"SELECT to_jsonb(t) AS row FROM {table} AS t {wanted} ORDER BY {key}")
    return {row[key]: row for row in found.scalars()}


def stood_in_digests(connection: Connection) -> tuple[set[str], set[str]]:
    """Return the statuses of what stood in the digest that is meant, and of what stands in the other."""
    found = connection.exec_driver_sql(
        f"SELECT status, digest_id::text AS digest FROM notifications WHERE id NOT IN ('{KEY}', '{OTHER}')"
    ).all()
    other = {row.status for row in found if row.digest == str(OTHER)}
    return {row.status for row in found if row.digest != str(OTHER)}, other
