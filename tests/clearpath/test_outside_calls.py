"""While a job waits for the world, it keeps no transaction open (R5)."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from include.clearpath import (
    certificate_rendering,
    cnrpp_expiry_alert,
    email_queue_dispatch,
    lab_result_polling,
)
from include.clearpath.tables import CERTIFICATES, CNRPP_ALERTS, EMAIL_LOG, RESULTS
from include.preview import preview
from include.run import EngineDatabase
from tests.clearpath.rows import Rows
from tests.clearpath.world import outside, seed, world

JOBS = [certificate_rendering, cnrpp_expiry_alert, email_queue_dispatch, lab_result_polling]


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.NAME)
def test_no_transaction_is_open_at_any_call(clearpath: EngineDatabase, job: Any) -> None:
    """R5: at every call to the outside, none of the database's sessions stands in a transaction."""
    rows, now = Rows(clearpath), datetime.now(UTC)
    with clearpath.engine.begin() as connection:
        seed(connection, now)
    around = world(now)
    watcher = create_engine(clearpath.engine.url)
    open_ones: list[tuple[str, int]] = []

    def watch(event: str) -> None:
        with watcher.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            number = connection.execute(
                text(
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                    "AND pid <> pg_backend_pid() AND (state LIKE 'idle in transaction%' OR state = 'active')"
                )
            ).scalar_one()
        open_ones.append((event, number))

    around.die_by(watch)
    rows.perform(job, outside(job, around), now)
    around.die_by(lambda _: None)
    watcher.dispose()
    assert len(open_ones) > 2
    assert [event for event, number in open_ones if number] == []


SECONDS = {
    "emailQueue": (3.0, 1_000),
    "cnrpp": (1.2, 500),
    "labPoll": (1.2, 500),
    "certificateRendering": (1.2, 500),
}
"""How long one call takes, and after how many milliseconds the database ends a transaction that idles."""


def set_up(job: Any, rows: Rows) -> Callable[[], bool]:
    """Give a job one thing to do, and return what says that it is done."""
    if job is email_queue_dispatch:
        rows.mail(rows.session())
        return lambda: rows.all(EMAIL_LOG)[0].status == "sent"
    if job is cnrpp_expiry_alert:
        rows.contractor(datetime.now(UTC).date())
        return lambda: rows.all(CNRPP_ALERTS)[0].sent_at is not None
    if job is lab_result_polling:
        rows.session("mailed", kit_serial_number="KIT-8")
        return lambda: len(rows.all(RESULTS)) == 1
    rows.certificate()
    return lambda: rows.all(CERTIFICATES)[0].pdf_path is not None


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.NAME)
def test_a_slow_provider_beside_a_strict_database(
    database_of: Callable[..., EngineDatabase], job: Any
) -> None:
    """R5: a call of 3 s where a transaction may idle for 1 s: the job comes to its end all the same."""
    seconds, limit = SECONDS[job.NAME]
    url = database_of("clearpath").engine.url
    engine = create_engine(
        url, connect_args={"options": f"-c idle_in_transaction_session_timeout={limit} -c timezone=UTC"}
    )
    rows, now = Rows(EngineDatabase(engine)), datetime.now(UTC)
    done = set_up(job, rows)
    around = world(now)
    around.mail.refuse.clear()
    called: list[str] = []

    def slow(event: str) -> None:
        # Of a call's two ticks and of many calls, one is slow: that tells as much.
        if event.endswith("before") and not event.startswith("recovered") and not called:
            called.append(event)
            time.sleep(seconds)

    around.die_by(slow)
    rows.perform(job, outside(job, around), now)
    assert called
    assert done()
    engine.dispose()


def test_a_preview_reads_the_lab_before_its_transaction(clearpath: EngineDatabase) -> None:
    """Ruling 9: a preview reads from outside for real, before the transaction opens."""
    rows, now = Rows(clearpath), datetime.now(UTC)
    session = rows.session("mailed", kit_serial_number="KIT-8")
    around = world(now)
    sessions: list[int] = []

    def watch(event: str) -> None:
        if event.startswith("lab"):
            with clearpath.engine.connect() as connection:
                sessions.append(
                    connection.execute(
                        text("SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'")
                    ).scalar_one()
                )

    around.die_by(watch)
    shown = preview(
        clearpath.engine,
        lab_result_polling,
        lambda db: _on(rows.run(lab_result_polling, now), db),
        outside(lab_result_polling, around),
    )
    assert sessions
    assert set(sessions) == {0}
    assert shown["counts"]["ingested"] == 1
    assert rows.all(RESULTS) == []
    assert session is not None


def _on(run: Any, db: Any) -> Any:
    run.db = db
    return run
