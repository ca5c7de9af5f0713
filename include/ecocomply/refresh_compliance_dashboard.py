"""The dashboard of the clocks is a materialised view: refreshed beside its readers, and seen to hold something."""

from __future__ import annotations

from typing import Any

from sqlalchemy.exc import DBAPIError

from include.errors import Permanent, Transient
from include.job import NothingOutside
from include.run import Run, sqlstate
from include.statements import statement

PACKAGE = "include.ecocomply"
NAME = "refreshComplianceDashboard"
SETTINGS: dict[str, str | None] = {}
QUEUES: tuple[str, ...] = ()
Outside = NothingOutside

CONCURRENT, FULL = "CONCURRENT", "FULL"

LIMITS = {"lock": "10s", "statement": "50s"}
"""Below the 60 seconds of an attempt: a view that is locked is tried again, one that is too large is said to be."""

_QUERY_CANCELED = "57014"


def refresh_dashboard(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Refresh the view. Raises Transient while it is locked, and Permanent if it takes too long."""
    # In full, readers wait; a preview keeps nobody waiting, and the rows are the same.
    beside_readers = run.params["refresh_mode"] == CONCURRENT or run.preview
    try:
        with run.transaction() as tx:
            if run.preview and not tx.value(statement(PACKAGE, "dashboard_populated")):
                run.note("the dashboard has never been filled; a real run fills it")
                return
            if not run.preview:
                tx.value(statement(PACKAGE, "refresh_limits"), **LIMITS)
            tx.value(statement(PACKAGE, "refresh_dashboard"), beside_readers=beside_readers)
    except Transient as error:
        if _state(error.__cause__) == _QUERY_CANCELED and not run.preview:
            raise Permanent(
                f"EcoComply: the dashboard took longer than {LIMITS['statement']} to refresh"
            ) from error
        raise


def verify_dashboard(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Count what the dashboard shows. Raises Permanent if it shows nothing though there are clocks."""
    with run.transaction() as tx:
        if not tx.value(statement(PACKAGE, "dashboard_populated")):
            return
        counted = tx.row(statement(PACKAGE, "dashboard_counted"))
    if counted is None:
        return
    if counted.has_clocks and not counted.shown:
        raise Permanent(
            "EcoComply: compliance_clock_dashboard is empty though there are clocks; its owner sees no rows, "
            "and needs the role ecocomply_service"
        )
    run.count("processed", counted.shown)
    run.count("clocks", int(counted.clocks))


def _state(cause: Any) -> str | None:
    return sqlstate(cause) if isinstance(cause, DBAPIError) else None


STEPS = (refresh_dashboard, verify_dashboard)
