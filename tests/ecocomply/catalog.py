"""What Postgres's own catalog says of EcoComply's tables."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection, text

OWNERLESS = {"background_jobs", "dead_letter_queue", "audit_logs"}
"""Their rows may belong to no company."""

SHARED = {"modules", "extraction_rules"}
"""The same for every company."""

INTERNAL = {
    "adoption_findings", "alembic_version_ecocomply", "baseline", "delivery_pauses", "email_batches", "queue_audit"
}  # fmt: skip
"""What no user has anything to look for in."""


class Reference(NamedTuple):
    """A column that names a row of another table."""

    table: str
    column: str
    parent: str
    on_delete: str


def tables(connection: Connection) -> dict[str, str]:
    """Return the tables that hold rows of companies, each with the column that says whose."""
    found = connection.execute(
        text("""
            SELECT c.relname, CASE WHEN c.relname = 'companies' THEN 'id' ELSE a.attname END
            FROM pg_class AS c
            LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'company_id'
            WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
              AND (a.attname IS NOT NULL OR c.relname = 'companies')
            ORDER BY c.relname
        """)
    )
    return {row[0]: row[1] for row in found}


def references(connection: Connection) -> list[Reference]:
    """Return every foreign key; each is of one column."""
    found = connection.execute(
        text("""
            SELECT f.conrelid::regclass::text, a.attname, f.confrelid::regclass::text, f.confdeltype::text
            FROM pg_constraint AS f
            JOIN pg_attribute AS a ON a.attrelid = f.conrelid AND a.attnum = f.conkey[1]
            WHERE f.contype = 'f' AND f.connamespace = 'public'::regnamespace
            ORDER BY 1, 2
        """)
    )
    return [Reference(*row) for row in found]


def privileges(connection: Connection, role: str, table: str) -> set[str]:
    """Return what a role may do with a table."""
    found = connection.execute(
        text("""
            SELECT what FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS what
            WHERE has_table_privilege(:role, :table, what)
        """),
        {"role": role, "table": table},
    )
    return set(found.scalars())
