"""One bad row stops nothing else; a lost transaction is tried again; a lost connection is not a bad row."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, text

from include.as_of import ZoneInfo
from include.errors import BadInput, Outage, Transient
from include.isolation import chunks, each_chunk
from include.run import EngineDatabase, Run, Transaction

UPDATE = text("UPDATE thing SET done = done + 1 WHERE id = ANY (CAST(:ids AS int[]))")
DELETE = text("DELETE FROM thing WHERE id = ANY (CAST(:ids AS int[]))")


@pytest.fixture
def things(empty_database: Engine) -> Engine:
    """Make a table of 300 things, of which the database refuses to change those that are bad."""
    with empty_database.begin() as connection:
        connection.exec_driver_sql(
            "CREATE TABLE thing (id int PRIMARY KEY, done int NOT NULL DEFAULT 0, bad boolean NOT NULL "
            "DEFAULT false, CHECK (NOT bad OR done = 0))"
        )
        connection.exec_driver_sql("INSERT INTO thing (id) SELECT generate_series(1, 300)")
    return empty_database


def run_on(engine: Engine) -> Run:
    """Return a run on a database."""
    return Run(
        job="test", run_id="1", as_of=datetime.now(UTC), zone=ZoneInfo("UTC"), db=EngineDatabase(engine)
    )


def spoil(engine: Engine, *ids: int) -> None:
    """Let these things be bad, and none be done."""
    with engine.begin() as connection:
        connection.execute(
            text("UPDATE thing SET done = 0, bad = id = ANY (CAST(:ids AS int[]))"), {"ids": list(ids)}
        )


def done(engine: Engine) -> list[int]:
    """Return what was changed once."""
    with engine.begin() as connection:
        return list(connection.execute(text("SELECT id FROM thing WHERE done = 1 ORDER BY id")).scalars())


def work(run: Run, count: str | None = None) -> Callable[[Transaction, Sequence[int]], None]:
    """Return a change that does its things, and counts them under a name."""

    def change(tx: Transaction, ids: Sequence[int]) -> None:
        changed = tx.execute(UPDATE, ids=list(ids))
        if count:
            run.count(count, changed)

    return change


@pytest.mark.parametrize(
    ("number", "size", "sizes"), [(0, 5, []), (4, 5, [4]), (5, 5, [5]), (11, 5, [5, 5, 1])]
)
def test_chunks(number: int, size: int, sizes: list[int]) -> None:
    """All of it, in order, nothing twice."""
    found = list(chunks(list(range(number)), size))
    assert [len(chunk) for chunk in found] == sizes
    assert [one for chunk in found for one in chunk] == list(range(number))


def test_a_purge_of_250_by_100(things: Engine) -> None:
    """R5: a batch size is a chunk, not a cap: all 250 go."""
    run = run_on(things)
    sizes: list[int] = []

    def purge(tx: Transaction, ids: Sequence[int]) -> None:
        sizes.append(tx.execute(DELETE, ids=list(ids)))

    assert each_chunk(run, list(range(1, 251)), purge, size=100) == []
    assert sizes == [100, 100, 50]
    with things.begin() as connection:
        assert connection.execute(text("SELECT count(*) FROM thing")).scalar() == 50


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(bad=st.sets(st.integers(1, 40), max_size=12), size=st.sampled_from([1, 7, 16, 1000]))
def test_the_bad_stand_alone(things: Engine, bad: set[int], size: int) -> None:
    """Whichever rows are bad: they are returned and counted, every other row is changed once."""
    spoil(things, *bad)
    run = run_on(things)
    assert set(each_chunk(run, list(range(1, 41)), work(run, "changed"), size=size)) == bad
    assert done(things) == sorted(set(range(1, 41)) - bad)
    assert (run.counts["failed"], run.counts["changed"]) == (len(bad), 40 - len(bad))


def test_few_statements_find_few_bad_rows(things: Engine) -> None:
    """Halving: one bad row among 256 costs a handful of statements, not 256."""
    spoil(things, 77)
    run = run_on(things)
    statements: list[int] = []

    def change(tx: Transaction, ids: Sequence[int]) -> None:
        statements.append(len(ids))
        work(run)(tx, ids)

    assert each_chunk(run, list(range(1, 257)), change) == [77]
    assert len(statements) <= 2 * 8 + 1


def test_a_permanent_error_of_ours_is_a_bad_row_too(things: Engine) -> None:
    """What Python finds wrong with a row is isolated as what the database finds."""
    run = run_on(things)

    def change(tx: Transaction, ids: Sequence[int]) -> None:
        if 13 in ids:
            raise BadInput("thing 13: unlucky")
        work(run)(tx, ids)

    assert each_chunk(run, list(range(1, 31)), change) == [13]
    assert len(done(things)) == 29


def test_a_value_that_the_driver_refuses_is_a_bad_row(things: Engine) -> None:
    """Text with a null character never reaches the server: it is the row's fault all the same."""
    run = run_on(things)

    def change(tx: Transaction, ids: Sequence[int]) -> None:
        if 5 in ids:
            tx.execute(text("SELECT CAST(:value AS text)"), value="a\x00b")
        work(run)(tx, ids)

    assert each_chunk(run, list(range(1, 11)), change) == [5]
    assert len(done(things)) == 9


def test_a_mistake_of_ours_is_no_bad_row(things: Engine) -> None:
    """A KeyError in a job is not the data's fault: it must be seen, not counted."""
    run = run_on(things)

    def change(tx: Transaction, ids: Sequence[int]) -> None:
        raise KeyError(ids[0])

    with pytest.raises(KeyError):
        each_chunk(run, [1, 2], change)


def test_a_lost_connection_is_no_bad_row(things: Engine) -> None:
    """It fails the task, so that Airflow tries again; what was committed stays."""
    run = run_on(things)

    def change(tx: Transaction, ids: Sequence[int]) -> None:
        work(run)(tx, ids)
        if 15 in ids:
            tx.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))

    with pytest.raises(Outage, match="database"):
        each_chunk(run, list(range(1, 21)), change, size=10)
    assert done(things) == list(range(1, 11))
    assert run.counts["failed"] == 0


def test_a_chunk_is_one_transaction(things: Engine) -> None:
    """A change that fails for a reason of another kind leaves nothing of its chunk behind."""
    run = run_on(things)

    def change(tx: Transaction, ids: Sequence[int]) -> None:
        work(run)(tx, ids)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        each_chunk(run, [1, 2, 3], change)
    assert done(things) == []


def test_two_updates_in_opposite_order(things: Engine) -> None:
    """R5: a deadlock makes one of two transactions a victim; it is tried again and does not escape."""
    first_locks = threading.Barrier(2)
    outcomes: list[Any] = []

    def worker(order: list[int]) -> None:
        run = run_on(things)
        tries: list[int] = []

        def change(tx: Transaction, ids: Sequence[int]) -> None:
            tries.append(1)
            tx.execute(UPDATE, ids=[order[0]])
            if len(tries) == 1:
                first_locks.wait(10)
            tx.execute(UPDATE, ids=[order[1]])
            run.count("changed", 2)

        try:
            each_chunk(run, [0], change)
        except Transient as error:
            outcomes.append(error)
        else:
            outcomes.append((run.counts["changed"], len(tries)))

    workers = [threading.Thread(target=worker, args=(order,)) for order in ([1, 2], [2, 1])]
    for thread in workers:
        thread.start()
    for thread in workers:
        thread.join(60)
    # One came through at once, the other at its second try; neither is counted twice.
    assert sorted(outcomes) == [(2, 1), (2, 2)]
    with things.begin() as connection:
        assert connection.execute(text("SELECT sum(done) FROM thing")).scalar() == 4


def test_counts_of_a_lost_transaction_are_taken_back(things: Engine) -> None:
    """What was rolled back did not happen, so it is not counted."""
    run = run_on(things)
    tries: list[int] = []

    def change(tx: Transaction, ids: Sequence[int]) -> None:
        tries.append(1)
        run.count("changed", tx.execute(UPDATE, ids=list(ids)))
        if len(tries) < 3:
            tx.execute(text("DO $$ BEGIN RAISE EXCEPTION 'lost' USING ERRCODE = '40001'; END $$"))

    assert each_chunk(run, [1, 2, 3], change) == []
    assert (run.counts["changed"], len(tries), len(done(things))) == (3, 3, 3)


def test_a_transaction_that_always_loses_fails_the_task(things: Engine) -> None:
    """Ten tries, then Airflow's turn."""
    run = run_on(things)
    tries: list[int] = []

    def change(tx: Transaction, ids: Sequence[int]) -> None:
        tries.append(1)
        tx.execute(text("DO $$ BEGIN RAISE EXCEPTION 'lost' USING ERRCODE = '40P01'; END $$"))

    with pytest.raises(Transient, match="lost"):
        each_chunk(run, [1], change)
    assert len(tries) == 10


def test_the_log_has_no_values(things: Engine, caplog: pytest.LogCaptureFixture) -> None:
    """A row's error is logged with its id, without the statement and what was bound to it."""
    run = run_on(things)

    def change(tx: Transaction, ids: Sequence[int]) -> None:
        tx.execute(text("SELECT CAST(:secret AS text), 1 / CAST(:zero AS int)"), secret="s3cret", zero=0)

    each_chunk(run, [7], change)
    assert "recordId=7" in caplog.text
    assert "division by zero" in caplog.text
    assert "s3cret" not in caplog.text
    assert "SELECT" not in caplog.text
