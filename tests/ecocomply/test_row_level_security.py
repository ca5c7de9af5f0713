"""No user reads or writes another company's rows, in any table; each policy is what holds that."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from include.ecocomply.access import SERVICE_ROLE, USER_ROLE, act_as_service, act_as_user
from include.ecocomply.tables import METADATA
from include.run import Transaction
from tests.ecocomply import catalog
from tests.ecocomply.catalog import INTERNAL, OWNERLESS, SHARED

# Of the tables as the code has them, so that there is a test each; the database's catalog is compared below.
TABLES = [
    "companies",
    *sorted(table.name for table in METADATA.sorted_tables if "company_id" in table.columns),
]

READ_ONLY = {
    "background_jobs", "companies", "consultant_client_assignments", "consultant_dashboard", "dead_letter_queue",
    "digests", "email_attempts", "module_activations", "user_roles", "user_site_assignments", "users",
}  # fmt: skip

DISABLED = "ALTER TABLE {table} DISABLE ROW LEVEL SECURITY"
DROPPED = "DROP POLICY company_rows ON {table}"
OPENED = "CREATE POLICY opened ON {table} TO ecocomply_user USING (true) WITH CHECK (true)"
UNCHECKED = "ALTER POLICY company_rows ON {table} WITH CHECK (true)"


@contextmanager
def nested(connection: Connection) -> Generator[None]:
    """Open a savepoint that is rolled back at the end."""
    point = connection.begin_nested()
    try:
        yield
    finally:
        point.rollback()


def one(connection: Connection, statement: str, **binds: Any) -> Any:
    """Return the only value of a statement."""
    return connection.execute(text(statement), binds).scalar_one()


def company(connection: Connection, number: int) -> UUID:
    """Return the generator's company of that number."""
    return one(connection, "SELECT md5('almanac/company/' || :n)::uuid", n=number)


def user(connection: Connection, number: int) -> UUID:
    """Return the generator's user of that number; nine make a company."""
    return one(connection, "SELECT md5('almanac/user/' || :n)::uuid", n=number)


def state_of(connection: Connection, statement: str, **binds: Any) -> tuple[str, int]:
    """Return the SQLSTATE by which a statement is refused, or '' and how many rows it touched; it is undone."""
    try:
        with nested(connection):
            return "", connection.execute(text(statement), binds).rowcount
    except DBAPIError as error:
        return str(getattr(error.orig, "sqlstate", None)), 0


def complaints(connection: Connection, table: str) -> list[str]:
    """Return how the owner of the third company gets at rows of the second, or not at the own ones."""
    column = "id" if table == "companies" else "company_id"
    mine, theirs = company(connection, 3), company(connection, 2)
    may = catalog.privileges(connection, USER_ROLE, table)
    count = f"SELECT count(*) FROM {table} WHERE {column} = :company"
    ours = one(connection, count, company=mine)
    assert ours, f"{table} holds nothing of the company"
    assert one(connection, count, company=theirs), f"{table} holds nothing of another company"
    foreign = one(
        connection, f"SELECT to_jsonb(t) FROM {table} AS t WHERE {column} = :company LIMIT 1", company=theirs
    )
    own = one(
        connection, f"SELECT to_jsonb(t) FROM {table} AS t WHERE {column} = :company LIMIT 1", company=mine
    )
    found = []
    with nested(connection):
        act_as_user(Transaction(connection), user(connection, 20))
        if one(connection, count, company=mine) != ours:
            found.append("own rows are hidden")
        if one(connection, f"SELECT count(*) FROM {table}") != one(connection, count, company=mine):
            found.append("foreign rows are read")
        insert = (
            f"INSERT INTO {table} SELECT * FROM jsonb_populate_record(NULL::{table}, CAST(:row AS jsonb))"
        )
        new = {"id": str(UUID(int=7))} if "id" in foreign else {"position": 99}
        state, _ = state_of(connection, insert, row=json.dumps(foreign | new))
        if state not in ({"42501", "23503"} if "INSERT" in may else {"42501"}):
            found.append(f"a foreign row is inserted: {state}")
        # Refused as a copy, where there can be one only, and not by the policy.
        state, _ = state_of(connection, insert, row=json.dumps(own | new))
        if state not in ({"", "23505"} if "INSERT" in may else {"42501"}):
            found.append(f"an own row is not inserted: {state}")
        for what, statement in (
            ("UPDATE", f"UPDATE {table} SET {column} = {column} WHERE {column} = :company"),
            ("DELETE", f"DELETE FROM {table} WHERE {column} = :company"),
        ):
            expected = ("", 0) if what in may else ("42501", 0)
            if state_of(connection, statement, company=theirs) != expected:
                found.append(f"{what} of foreign rows")
            if (
                what in may
                and what == "UPDATE"
                and state_of(connection, statement, company=mine) != ("", ours)
            ):
                found.append(f"no {what} of own rows")
        moved = f"UPDATE {table} SET {column} = :theirs WHERE {column} = :company"
        state, _ = state_of(connection, moved, company=mine, theirs=theirs)
        if state not in ({"42501", "23503"} if "UPDATE" in may else {"42501"}):
            found.append("own rows are given away")
    return found


def test_the_tests_are_of_every_company_table(connection: Connection) -> None:
    """A table that is added without a test here would be trusted unseen."""
    assert set(TABLES) == set(catalog.tables(connection))


@pytest.mark.parametrize("table", TABLES)
def test_a_user_gets_at_no_other_companys_rows(connection: Connection, table: str) -> None:
    """Ruling 14: reading, inserting, changing, deleting, giving away."""
    assert complaints(connection, table) == []


@pytest.mark.parametrize("mutation", [DISABLED, DROPPED, OPENED])
@pytest.mark.parametrize("table", TABLES)
def test_without_its_policy_that_test_fails(connection: Connection, table: str, mutation: str) -> None:
    """What holds each table is its own policy, and nothing that happens to be in the way."""
    connection.execute(text(mutation.format(table=table)))
    assert complaints(connection, table)


@pytest.mark.parametrize("table", sorted(set(TABLES) - READ_ONLY))
def test_without_its_check_that_test_fails(connection: Connection, table: str) -> None:
    """What a row names is looked at too; without that, the policy's check alone refuses rows for others."""
    connection.execute(text(UNCHECKED.format(table=table)))
    connection.execute(text(f"DROP TRIGGER IF EXISTS company_owner ON {table}"))
    assert complaints(connection, table)


def test_what_a_user_may_do_is_what_is_written_down(connection: Connection) -> None:
    """Who may do what, and the platform's books, are not for a user's job to change: it could widen its own view."""
    found = {table: catalog.privileges(connection, USER_ROLE, table) for table in TABLES}
    assert {table for table, may in found.items() if may == {"SELECT"}} == READ_ONLY
    assert {table for table, may in found.items() if may == {"SELECT", "INSERT"}} == {"audit_logs"}
    others = {table for table, may in found.items() if len(may) == 4}
    assert others == set(TABLES) - READ_ONLY - {"audit_logs"}
    for table in SHARED:
        assert catalog.privileges(connection, USER_ROLE, table) == {"SELECT"}
    for table in INTERNAL:
        assert catalog.privileges(connection, USER_ROLE, table) == set()


def test_the_roles_log_nobody_in_and_bypass_nothing(connection: Connection) -> None:
    """A role that is a superuser, or bypasses policies, would make them decoration."""
    found = connection.execute(
        text(
            "SELECT rolcanlogin, rolsuper, rolbypassrls, rolcreaterole FROM pg_roles WHERE rolname IN (:a, :b)"
        ),
        {"a": USER_ROLE, "b": SERVICE_ROLE},
    ).all()
    assert [tuple(row) for row in found] == [(False, False, False, False)] * 2
    assert not one(connection, "SELECT pg_has_role(:a, :b, 'MEMBER')", a=USER_ROLE, b=SERVICE_ROLE)


def test_the_service_sees_everything(connection: Connection) -> None:
    """System jobs work for all companies, and keep the books of jobs that have none."""
    tables = catalog.tables(connection)
    counts = {table: one(connection, f"SELECT count(*) FROM {table}") for table in tables}
    act_as_service(Transaction(connection))
    assert one(connection, "SELECT current_user") == SERVICE_ROLE
    assert {table: one(connection, f"SELECT count(*) FROM {table}") for table in tables} == counts
    assert (
        connection.execute(text("UPDATE deadlines SET updated_at = updated_at")).rowcount
        == counts["deadlines"]
    )


@pytest.mark.parametrize("table", sorted(OWNERLESS))
def test_rows_of_no_company_are_the_services_alone(connection: Connection, table: str) -> None:
    """A job that nobody asked for is no company's business."""
    if table == "dead_letter_queue":
        connection.execute(
            text("""
                INSERT INTO dead_letter_queue (job_id, error_message)
                SELECT id, 'x' FROM background_jobs WHERE company_id IS NULL
            """)
        )
    statement = f"SELECT count(*) FROM {table} WHERE company_id IS NULL"
    assert one(connection, statement)
    with nested(connection):
        act_as_user(Transaction(connection), user(connection, 1))
        assert one(connection, statement) == 0
    act_as_service(Transaction(connection))
    assert one(connection, statement)


def seen(connection: Connection, number: int, only: UUID | None = None) -> set[UUID]:
    """Return the companies that a user sees."""
    with nested(connection):
        act_as_user(Transaction(connection), user(connection, number), only)
        return set(connection.execute(text("SELECT id FROM companies")).scalars())


def test_a_consultant_sees_the_active_clients(connection: Connection) -> None:
    """The client's row decides, and the person's role: either taken away, the client is gone at once."""
    own, second, third = (company(connection, n) for n in (1, 2, 3))
    # The generator gives company 2 to user 3, company 3 to user 4; each is of company 1.
    assert seen(connection, 3) == {own, second}
    assert seen(connection, 4) == {own, third}
    assert seen(connection, 4, third) == {third}
    assert seen(connection, 4, second) == set()
    with nested(connection):
        connection.execute(text("UPDATE consultant_client_assignments SET status = 'INACTIVE'"))
        assert seen(connection, 4) == {own}
    with nested(connection):
        connection.execute(text("DELETE FROM user_roles WHERE role = 'CONSULTANT'"))
        assert seen(connection, 4) == {own}
    with nested(connection):
        connection.execute(text("UPDATE companies SET deleted_at = now() WHERE id = :id"), {"id": third})
        assert seen(connection, 4) == {own}


@pytest.mark.parametrize("change", ["is_active = false", "deleted_at = now()"])
def test_who_has_left_sees_nothing(connection: Connection, change: str) -> None:
    """A job that was asked for by somebody who has left since must not go on in that name."""
    connection.execute(text(f"UPDATE users SET {change} WHERE id = :id"), {"id": user(connection, 20)})
    assert seen(connection, 20) == set()


def test_nobody_sees_nothing(connection: Connection) -> None:
    """The role without a user: a transaction that forgot to say for whom shows no rows, instead of all."""
    connection.execute(text("SELECT set_config('role', :role, true)"), {"role": USER_ROLE})
    assert one(connection, "SELECT count(*) FROM companies") == 0
    assert one(connection, "SELECT count(*) FROM obligations") == 0


def test_who_one_is_ends_with_the_transaction(filled: Any) -> None:
    """The pooler hands the session to somebody else."""
    with filled.connect() as connection:
        with connection.begin():
            act_as_user(Transaction(connection), user(connection, 20))
            assert one(connection, "SELECT current_user") == USER_ROLE
        with connection.begin():
            assert one(connection, "SELECT current_user = session_user")
            assert not one(connection, "SELECT current_setting('almanac.user_id', true)")


def test_a_login_that_is_neither_role_sees_nothing(connection: Connection) -> None:
    """Forced: also where somebody has granted it the tables."""
    connection.execute(text("CREATE ROLE ecocomply_stranger NOLOGIN"))
    connection.execute(text("GRANT ecocomply_stranger TO CURRENT_USER"))
    connection.execute(text("GRANT SELECT ON ALL TABLES IN SCHEMA public TO ecocomply_stranger"))
    tables = catalog.tables(connection)
    connection.execute(text("SET LOCAL ROLE ecocomply_stranger"))
    assert {table: one(connection, f"SELECT count(*) FROM {table}") for table in tables} == dict.fromkeys(
        tables, 0
    )


def test_the_dashboard_is_read_through_its_view(connection: Connection) -> None:
    """A materialised view knows no policies."""
    mine = company(connection, 3)
    act_as_user(Transaction(connection), user(connection, 20))
    assert state_of(connection, "SELECT * FROM compliance_clock_dashboard")[0] == "42501"
    assert set(connection.execute(text("SELECT company_id FROM company_compliance_dashboard")).scalars()) == {
        mine
    }
    assert set(connection.execute(text("SELECT DISTINCT company_id FROM generator_hours")).scalars()) == {
        mine
    }


def test_a_users_child_row_takes_its_company_too(connection: Connection) -> None:
    """The trigger works as the user: what it can't see it can't take."""
    theirs = one(
        connection, "SELECT id FROM obligations WHERE company_id = :id LIMIT 1", id=company(connection, 2)
    )
    mine = one(
        connection, "SELECT id FROM obligations WHERE company_id = :id LIMIT 1", id=company(connection, 3)
    )
    act_as_user(Transaction(connection), user(connection, 20))
    statement = "INSERT INTO deadlines (obligation_id, due_date) VALUES (:id, '2031-01-01')"
    assert state_of(connection, statement, id=mine) == ("", 1)
    assert state_of(connection, statement, id=theirs)[0] in ("23502", "23503", "42501")


def test_a_policy_asks_once_a_statement(connection: Connection) -> None:
    """Asked for every row, a list of a million would take minutes."""
    act_as_user(Transaction(connection), user(connection, 20))
    plan = "\n".join(connection.execute(text("EXPLAIN SELECT * FROM deadlines")).scalars())
    assert "InitPlan" in plan
    assert plan.count("ecocomply_companies") <= 1
