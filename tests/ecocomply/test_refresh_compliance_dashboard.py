"""The dashboard shows the clocks: refreshed by the jobs' role, beside readers, with an end to its patience."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import date
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from include.ecocomply import refresh_compliance_dashboard
from include.ecocomply.access import act_as_user
from include.errors import Permanent, Transient
from include.job import NothingOutside
from include.preview import preview
from include.run import EngineDatabase, Run
from tests.ecocomply.rows import Rows


@pytest.fixture
def rows(database_of: Callable[..., EngineDatabase]) -> Rows:
    """Make a company with one site."""
    return Rows(database_of("ecocomply"))


def clock(rows: Rows, **values: Any) -> UUID:
    """Add an active clock of the site."""
    given = {
        "company_id": rows.company, "site_id": rows.site, "entity_type": "PERMIT", "entity_id": uuid4(),
        "clock_type": "PERMIT_RENEWAL", "target_date": date(2027, 1, 31),
    }  # fmt: skip
    return rows.add("compliance_clocks_universal", **(given | values))


def perform(rows: Rows, mode: str = "CONCURRENT") -> Run:
    """Run the job."""
    return rows.perform(refresh_compliance_dashboard, NothingOutside(), refresh_mode=mode)


def shown(rows: Rows) -> list[Any]:
    """Return the dashboard's rows."""
    return rows.run_sql("SELECT * FROM compliance_clock_dashboard ORDER BY dashboard_key").all()


@contextmanager
def locked(rows: Rows) -> Generator[None]:
    """Hold the view as a refresh by somebody else does."""
    with rows.database.engine.begin() as connection:
        connection.execute(text("REFRESH MATERIALIZED VIEW CONCURRENTLY compliance_clock_dashboard"))
        yield


@pytest.mark.parametrize("mode", ["CONCURRENT", "FULL"])
def test_what_it_shows(rows: Rows, mode: str) -> None:
    """The four aggregates, for each company, site and module; without a site is a group of its own."""
    module = rows.add("modules", module_code="M9", module_name="Nine")
    company = rows.add("companies", name="Other")
    clock(rows, criticality="RED", status="OVERDUE", target_date=date(2026, 1, 1))
    clock(rows, criticality="AMBER")
    clock(rows, criticality="GREEN", target_date=date(2027, 1, 30))
    clock(rows, criticality="GREEN", status="COMPLETED", target_date=date(2025, 1, 1))
    clock(rows, module_id=module)
    clock(rows, company_id=company, site_id=None)
    run = perform(rows, mode)
    assert (run.counts["processed"], run.counts["clocks"]) == (3, 6)
    found = {(row.company_id, row.site_id, row.module_id): row for row in shown(rows)}
    assert set(found) == {
        (rows.company, rows.site, None),
        (rows.company, rows.site, module),
        (company, None, None),
    }
    mine = found[rows.company, rows.site, None]
    assert (mine.total_clocks, mine.red_count, mine.amber_count, mine.green_count) == (4, 1, 1, 2)
    assert (mine.active_count, mine.overdue_count, mine.completed_count) == (2, 1, 1)
    assert mine.next_target_date == date(2027, 1, 30)
    assert mine.upcoming_target_dates == [date(2027, 1, 30), date(2027, 1, 31)]


def test_what_is_gone_is_no_longer_shown(rows: Rows) -> None:
    """A group whose last clock was deleted leaves the dashboard."""
    key = clock(rows)
    perform(rows)
    rows.run_sql("DELETE FROM compliance_clocks_universal WHERE id = :key", key=key)
    assert perform(rows).counts["processed"] == 0
    assert not shown(rows)


def test_a_view_that_was_never_filled(rows: Rows) -> None:
    """After a restore without data nothing can be read beside, and the default mode must not fail for ever."""
    clock(rows)
    rows.run_sql("REFRESH MATERIALIZED VIEW compliance_clock_dashboard WITH NO DATA")

    def make_run(database: Any) -> Run:
        run = rows.run(job=refresh_compliance_dashboard.NAME, refresh_mode="CONCURRENT")
        run.db = database
        return run

    looked = preview(rows.database.engine, refresh_compliance_dashboard, make_run, NothingOutside())
    assert (looked["tables"], looked["notes"]) == (
        [],
        ["the dashboard has never been filled; a real run fills it"],
    )
    assert perform(rows).counts["processed"] == 1


def test_a_preview_in_full_mode_shows_the_rows(rows: Rows) -> None:
    """A full refresh keeps readers out; the preview shows the same rows without that."""
    clock(rows)

    def make_run(database: Any) -> Run:
        run = rows.run(job=refresh_compliance_dashboard.NAME, refresh_mode="FULL")
        run.db = database
        return run

    looked = preview(rows.database.engine, refresh_compliance_dashboard, make_run, NothingOutside())
    ((table),) = looked["tables"]
    assert (table["table"], table["inserted"]) == ("compliance_clock_dashboard", 1)
    assert not shown(rows)


def test_a_locked_view_is_tried_again(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else's refresh ends by itself: transient, so that Airflow comes back."""
    monkeypatch.setitem(refresh_compliance_dashboard.LIMITS, "lock", "100ms")
    clock(rows)
    with locked(rows), pytest.raises(Transient):
        perform(rows)


def test_a_refresh_that_takes_too_long_is_not_tried_again(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """7.2: the operators are told and this refresh is left out; the next try would take as long."""
    monkeypatch.setitem(refresh_compliance_dashboard.LIMITS, "statement", "100ms")
    clock(rows)
    with locked(rows), pytest.raises(Permanent, match="took longer than 100ms"):
        perform(rows)
    assert perform(rows).counts["processed"] == 1


def test_only_the_service_may(rows: Rows) -> None:
    """The function works with its owner's rights, so a user must not be let near it."""
    ana = rows.user("ana", "OWNER")
    with rows.database.transaction() as tx:
        act_as_user(tx, ana)
        with pytest.raises(DBAPIError, match="permission denied"), tx.savepoint():
            tx.value(text("SELECT refresh_compliance_dashboard(true)"))


def test_an_owner_that_sees_nothing_is_found_out(rows: Rows) -> None:
    """Row-level security is forced: an owner who lacks the role would empty the dashboard without a word."""
    role = f"plain_{uuid4().hex}"
    for statement in (
        f"CREATE ROLE {role} NOLOGIN",
        f"GRANT {role} TO CURRENT_USER",
        f"GRANT USAGE, CREATE ON SCHEMA public TO {role}",
        f"GRANT SELECT ON compliance_clocks_universal TO {role}",
        f"ALTER MATERIALIZED VIEW compliance_clock_dashboard OWNER TO {role}",
        f"ALTER FUNCTION refresh_compliance_dashboard(boolean) OWNER TO {role}",
    ):
        rows.run_sql(statement)
    clock(rows)
    with pytest.raises(Permanent, match="needs the role ecocomply_service"):
        perform(rows)
    rows.run_sql(f"GRANT ecocomply_service TO {role}")
    assert perform(rows).counts["processed"] == 1
