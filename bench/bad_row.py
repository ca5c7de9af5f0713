"""One bad row among many: what it costs to find it, against the same run without it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection

from bench.databases import Databases
from bench.measure import Comparison, Goal, by_turns, seconds_of
from bench.session_expiry import expire, fill, last_day
from include.statements import statement


@dataclass(frozen=True, slots=True)
class Size:
    """How many sessions are to expire, and how often it is timed."""

    rows: int
    rounds: int


FULL = Size(rows=10_000, rounds=7)
TINY = Size(rows=1_200, rounds=2)


def measure(databases: Databases, size: Size) -> list[Comparison]:
    """Time session expiry with a row that the database refuses, and without one."""
    now = datetime.now(UTC)

    def clean(connection: Connection) -> None:
        fill(connection, now, size.rows * 2, size.rows)
        connection.execute(statement("bench", "refuse_session").clause)
        connection.execute(statement("bench", "refuse_bad_sessions").clause)

    def bad(connection: Connection) -> None:
        fill(connection, now, size.rows * 2, size.rows)
        binds = {"last_day": last_day(now), "overdue": size.rows}
        connection.execute(statement("bench", "make_session_bad").clause, binds)
        connection.execute(statement("bench", "refuse_session").clause)
        connection.execute(statement("bench", "refuse_bad_sessions").clause)

    templates = {clean: databases.template(clean), bad: databases.template(bad)}
    compared = Comparison(
        f"a bad row among {size.rows:,}",
        job="session expiry in chunks of 1,000, of which one is bisected down to the row that is refused",
        limit="the same without a bad row",
        goal=Goal.AT_MOST,
        goal_ratio=2,
    )

    def with_bad_row() -> float:
        with databases.copy(templates[bad]) as engine:
            return seconds_of(lambda: expire(engine, now, size.rows - 1))

    def without() -> float:
        with databases.copy(templates[clean]) as engine:
            return seconds_of(lambda: expire(engine, now, size.rows))

    by_turns(compared, with_bad_row, without, size.rounds)
    for template in templates.values():
        databases.drop(template)
    return [compared]
