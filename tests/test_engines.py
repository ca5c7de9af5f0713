"""What an engine's errors tell: the statement and what was wrong with it, never the values."""

from __future__ import annotations

import traceback
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime

import pytest
from sqlalchemy import func, select, text
from sqlalchemy.exc import DataError, IntegrityError

from include.odd_dates import OddDate
from include.run import EngineDatabase

SECRET = "ana@secret.test"


@pytest.fixture
def mails(database_of: Callable[..., EngineDatabase]) -> EngineDatabase:
    """Make a table of whole mails."""
    database = database_of("clearpath")
    with database.engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE mail (address text PRIMARY KEY, hour int CHECK (hour < 24))")
        connection.execute(text("INSERT INTO mail VALUES (:address, 7)"), {"address": SECRET})
    return database


@pytest.mark.parametrize(
    ("statement", "binds", "error", "says"),
    [
        ("INSERT INTO mail VALUES (:address, 99)", {"address": SECRET}, IntegrityError, "mail_hour_check"),
        ("INSERT INTO mail VALUES (:address, 1)", {"address": SECRET}, IntegrityError, "mail_pkey"),
        ("UPDATE mail SET hour = 99 WHERE hour = :hour", {"hour": 7}, IntegrityError, "mail_hour_check"),
        ("SELECT * FROM mail WHERE hour / 0 = 1 AND address = :address", {"address": SECRET}, DataError, "by zero"),
    ],
)  # fmt: skip
def test_an_error_holds_no_value(
    mails: EngineDatabase, statement: str, binds: dict[str, object], error: type[Exception], says: str
) -> None:
    """A traceback goes to the log with all that it chains: the bound values, and the row that Postgres shows."""
    with pytest.raises(error) as raised, mails.engine.begin() as connection:
        connection.execute(text(statement), binds)
    logged = "".join(traceback.format_exception(raised.value))
    assert SECRET not in logged
    assert says in logged
    assert statement.partition(":")[0] in logged


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("text", ['"a" {b}, \\c\n', "", "NULL", None, "ñ"]),
        ("text", []),
        ("text", [None]),
        ("integer", [1, -70_000, None]),
        ("uuid", [uuid.UUID(int=1), uuid.UUID(int=2)]),
        ("date", [date(2026, 11, 29), None]),
        ("date", [OddDate("infinity"), OddDate("0044-03-15 BC")]),
        ("timestamptz", [datetime(2026, 11, 29, 1, 2, 3, 4, tzinfo=UTC)]),
        ("boolean", [True, False, None]),
    ],
)
def test_a_list_arrives_as_it_is(mails: EngineDatabase, kind: str, values: list[object]) -> None:
    """Rows by the thousand are sent as lists, which go as binary."""
    with mails.engine.connect() as connection:
        sent = select(func.unnest(text(f"CAST(:values AS {kind}[])").bindparams(values=values)))
        assert list(connection.scalars(sent)) == values
