"""A worker's whole way: claim, work, finish, whatever happens on it."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, event, text

from include.errors import Transient
from include.queues.claiming import take_back_lost
from include.queues.drain import UNWRITABLE, Done, Limits, Outcome, drain
from include.queues.engine import Claim, Ended, Failure, Queue
from include.queues.heartbeat import beating
from include.queues.table import LOST
from include.run import Run, Transaction
from tests.queues.conftest import FAIR, FULL, PLAIN, Bench

HOUR = timedelta(hours=1)


def work(run: Run, claims: Sequence[Claim]) -> Sequence[Outcome]:
    """Do what each row asks for; every outcome carries the row's key to be written."""
    return [Done(claim, str(claim.key)) for claim in claims]


def write(tx: Transaction, outcomes: Sequence[Outcome]) -> None:
    """Write an effect for each row that is done."""
    keys = [one.result for one in outcomes if isinstance(one, Done)]
    tx.execute(text("INSERT INTO effects (row_key) SELECT unnest(CAST(:keys AS text[]))"), keys=keys)


def test_everything_due_is_done_once(bench: Bench, any_queue: Queue) -> None:
    """A run drains: chunk by chunk, until nothing is due."""
    keys = bench.add(any_queue.table, 230)
    run = bench.run()
    assert drain(run, any_queue, work, write, Limits(chunk=50)) == 230
    assert bench.effects() == sorted(map(str, keys))
    assert run.counts == Counter(completed=230)


def test_nothing_due(bench: Bench, any_queue: Queue) -> None:
    """R1: a run with nothing to do ends well."""
    run = bench.run()
    assert drain(run, any_queue, work, write) == 0
    assert run.counts == Counter()


def test_rows_that_come_in_meanwhile(bench: Bench) -> None:
    """A row that falls due during the run, even before the place that was reached, is found by the same run."""
    bench.add(FULL, 3)
    late: list[Any] = []

    def adds(run: Run, claims: Sequence[Claim]) -> Sequence[Outcome]:
        if not late:
            late.extend(bench.add(FULL, 2, next_run_at=datetime.now(UTC) - HOUR))
        return work(run, claims)

    assert drain(bench.run(), Queue(FULL), adds, write, Limits(chunk=2)) == 5
    assert {str(key) for key in late} <= set(bench.effects())


def test_a_failure_writes_nothing(bench: Bench) -> None:
    """What failed is due again after its delay, and the others are done."""
    bench.add(FULL, 4)

    def some(run: Run, claims: Sequence[Claim]) -> Sequence[Outcome]:
        return [
            Failure(claim, "overloaded") if place % 2 else Done(claim, str(claim.key))
            for place, claim in enumerate(claims)
        ]

    run = bench.run()
    drain(run, Queue(FULL), some, write)
    assert run.counts == Counter(completed=2, retried=2, failed=0)
    assert bench.statuses(FULL) == {"completed": 2, "pending": 2}
    assert len(bench.effects()) == 2


def test_one_bad_row(bench: Bench) -> None:
    """Ruling 6: a row whose result can't be written fails alone, with its reason; the chunk's others are done."""
    keys = bench.add(FULL, 8)
    bench.execute(f"ALTER TABLE effects ADD CHECK (row_key <> '{keys[3]}')")
    run = bench.run()
    drain(run, Queue(FULL), work, write)
    assert bench.effects() == sorted(str(key) for key in keys if key != keys[3])
    row = bench.row(FULL, keys[3])
    assert (row.status, row.last_error) == ("failed", UNWRITABLE)
    assert run.counts == Counter(completed=7, failed=1)


def test_a_claim_that_was_taken_away(bench: Bench) -> None:
    """R6: of a chunk in which one row was given to another worker, the others are done and that one is untouched."""
    keys = bench.add(FULL, 5)
    queue = Queue(replace(FULL, people_may=frozenset({"requeue"})))

    def loses_one(run: Run, claims: Sequence[Claim]) -> Sequence[Outcome]:
        if len(claims) == 5:
            with run.transaction() as tx:
                queue.requeue(tx, [keys[2]], "ana")
                bench_hold(tx)
        return work(run, claims)

    def bench_hold(tx: Transaction) -> None:
        tx.execute(
            text("UPDATE full_queue SET next_run_at = now() + interval '1 day' WHERE status = 'pending'")
        )

    run = bench.run()
    drain(run, queue, loses_one, write)
    assert bench.effects() == sorted(str(key) for key in keys if key != keys[2])
    assert bench.row(FULL, keys[2]).status == "pending"
    assert run.counts == Counter(completed=4, stale=1)


def test_the_table_breaks_in_mid_job(bench: Bench) -> None:
    """The acknowledgement fails with the table; the claim is taken back later and the row is done, once."""
    (key,) = bench.add(FULL)

    def breaks(run: Run, claims: Sequence[Claim]) -> Sequence[Outcome]:
        bench.execute("ALTER TABLE full_queue RENAME TO away")
        return work(run, claims)

    run = bench.run()
    with pytest.raises(Exception, match="full_queue"):
        drain(run, Queue(FULL), breaks, write)
    bench.execute("ALTER TABLE away RENAME TO full_queue")
    assert bench.row(FULL, key).status == "processing"
    assert bench.effects() == []
    bench.age(FULL, heartbeat_at=HOUR, started_at=HOUR)
    take_back_lost(run, Queue(FULL))
    bench.age(FULL, next_run_at=HOUR)
    assert drain(bench.run(), Queue(FULL), work, write) == 1
    assert bench.effects() == [str(key)]


class Killed(BaseException):
    """The process is gone."""


@contextmanager
def dies_at(engine: Engine, number: int) -> Generator[list[str]]:
    """End the process at an event: a statement, or a commit."""
    events: list[str] = []

    def tick(what: str) -> None:
        events.append(what)
        if len(events) == number:
            raise Killed(what)

    def statement(conn: Any, cursor: Any, sql: str, *rest: Any) -> None:
        tick(sql.split("\n", maxsplit=1)[0])

    def commit(conn: Any) -> None:
        tick("commit")

    event.listen(engine, "before_cursor_execute", statement)
    event.listen(engine, "commit", commit)
    try:
        yield events
    finally:
        event.remove(engine, "before_cursor_execute", statement)
        event.remove(engine, "commit", commit)


def test_killed_at_every_point(bench: Bench, any_queue: Queue, record_property: Any) -> None:
    """Killed at each statement and each commit, and started again later, every row's effect is there once."""
    table = any_queue.table
    with dies_at(bench.engine, 0) as clean:
        bench.add(table, 5)
        clean.clear()
        drain(bench.run(), any_queue, work, write, Limits(chunk=2))
    for number in range(1, len(clean) + 1):
        bench.execute(f'TRUNCATE "{table.name}", queue_audit, effects')
        keys = bench.add(table, 5)
        with dies_at(bench.engine, number), pytest.raises(Killed):
            drain(bench.run(), any_queue, work, write, Limits(chunk=2))
        bench.engine.dispose()
        started = {table.started: HOUR} if table.started else {}
        bench.age(table, heartbeat_at=HOUR, **started)
        take_back_lost(bench.run(), any_queue)
        bench.age(table, **{table.due: HOUR}, **({table.again: HOUR} if table.again else {}))
        drain(bench.run(), any_queue, work, write, Limits(chunk=2))
        assert bench.effects() == sorted(map(str, keys)), f"after event {number}: {clean[number - 1]}"
        assert bench.statuses(table) == {table.words.done: 5}
    record_property("crash points", f"engine on {table.name}: {len(clean)}")


def test_two_workers_with_opposite_orders(bench: Bench) -> None:
    """R5: two workers that finish the same tables' rows in opposite order end without a deadlock, each row once."""
    keys = bench.add(FULL, 200)
    bench.execute("CREATE TABLE totals (id int PRIMARY KEY, count int)")
    bench.execute("INSERT INTO totals SELECT n, 0 FROM generate_series(1, 20) AS n")
    errors: list[BaseException] = []

    def worker(backwards: bool) -> None:  # noqa: FBT001 - which of the two
        def count(tx: Transaction, outcomes: Sequence[Outcome]) -> None:
            write(tx, outcomes)
            for n in range(20, 0, -1) if backwards else range(1, 21):
                tx.execute(text("UPDATE totals SET count = count + 1 WHERE id = :n"), n=n)

        try:
            drain(bench.run(), Queue(FULL), work, count, Limits(chunk=10))
        except BaseException as error:  # noqa: BLE001 - told by the test
            errors.append(error)

    both = [threading.Thread(target=worker, args=(way,)) for way in (True, False)]
    for one in both:
        one.start()
    for one in both:
        one.join(60)
    assert errors == []
    assert bench.effects() == sorted(map(str, keys))


def test_a_worker_holds_no_transaction_while_it_works(bench: Bench) -> None:
    """R5: work that takes longer than the session may idle in a transaction ends well."""
    bench.add(FULL, 1)
    bench.execute(f"ALTER DATABASE {_name(bench)} SET idle_in_transaction_session_timeout = '200ms'")
    bench.engine.dispose()

    def slow(run: Run, claims: Sequence[Claim]) -> Sequence[Outcome]:
        time.sleep(0.6)
        return work(run, claims)

    assert drain(bench.run(), Queue(FULL), slow, write) == 1
    assert len(bench.effects()) == 1


def _name(bench: Bench) -> str:
    return str(bench.engine.url.database)


def test_heartbeats_from_beside(bench: Bench) -> None:
    """A worker that is busy for longer than a claim lives keeps it, and the heart stops with the work."""
    queue = Queue(replace(PLAIN, lost_after=timedelta(seconds=0.4)))
    bench.add(PLAIN)
    taken: list[tuple[int, int]] = []

    def slow(run: Run, claims: Sequence[Claim]) -> Sequence[Outcome]:
        until = time.monotonic() + 1.2
        while time.monotonic() < until:
            with bench.run().transaction() as tx:
                taken.append(queue.take_back(tx))
            time.sleep(0.1)
        return work(run, claims)

    run = bench.run()
    drain(run, queue, slow, write)
    assert set(taken) == {(0, 0)}
    assert run.counts["completed"] == 1
    assert not [one for one in threading.enumerate() if "heartbeat" in one.name]


def test_a_heart_outlives_the_database(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """A heartbeat that fails is told and tried again: the work goes on."""
    queue = Queue(FULL)
    run = bench.run()
    broken = replace_database(run)
    with beating(broken, queue, "me", timedelta(milliseconds=20)):
        until(lambda: "no heartbeat" in caplog.text)


def replace_database(run: Run) -> Run:
    """Return the run with a database that is out of reach."""

    class Away:
        def transaction(self) -> Any:
            raise Transient("database: away")

        def alone(self, what: str) -> Any:
            raise Transient(what)

    run.db = Away()
    return run


def until(true: Callable[[], Any], within: float = 10) -> None:
    """Wait until something is true."""
    give_up = time.monotonic() + within
    while not true():
        assert time.monotonic() < give_up, "it did not come true"
        time.sleep(0.01)


def test_a_run_ends_in_time(bench: Bench) -> None:
    """A run that may take so many seconds claims nothing after that, and leaves the rest due."""
    bench.add(FAIR, 10)

    def slow(run: Run, claims: Sequence[Claim]) -> Sequence[Outcome]:
        time.sleep(0.3)
        return work(run, claims)

    claimed = drain(bench.run(), Queue(FAIR), slow, write, Limits(chunk=1, seconds=0.5))
    assert 1 <= claimed <= 3
    assert bench.statuses(FAIR)["pending"] == 10 - claimed


def test_a_chunk_is_one_commit(bench: Bench) -> None:
    """However many rows a chunk has, its end is one statement, and the next chunk is claimed in the same commit."""
    bench.add(FULL, 200)
    with dies_at(bench.engine, 0) as events:
        drain(bench.run(), Queue(FULL), work, write, Limits(chunk=100))
    # Two chunks, then the looks that find nothing: past the place, and from the start.
    assert events.count("commit") <= 5
    assert len(events) - events.count("commit") <= 9


def refuse(bench: Bench, queue: Queue, *keys: Any) -> None:
    """Let the database refuse every change of these rows."""
    bench.execute(
        "CREATE FUNCTION bad() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'this row is bad' USING ERRCODE = '23514'; END $$"
    )
    listed = ", ".join(f"'{key}'" for key in keys)
    bench.execute(
        f'CREATE TRIGGER bad BEFORE UPDATE ON "{queue.table.name}" FOR EACH ROW '
        f"WHEN (OLD.id::text IN ({listed})) EXECUTE FUNCTION bad()"
    )


def test_a_row_that_can_not_be_claimed(bench: Bench, any_queue: Queue) -> None:
    """Ruling 6: a row that the database will not have changed is counted and left; every other one is done."""
    keys = bench.add(any_queue.table, 9)
    refuse(bench, any_queue, keys[4], keys[8])
    run = bench.run()
    assert drain(run, any_queue, work, write, Limits(chunk=3)) == 7
    assert bench.effects() == sorted(str(key) for key in keys if key not in (keys[4], keys[8]))
    assert bench.statuses(any_queue.table) == {"completed": 7, "pending": 2}
    assert (run.counts["completed"], run.counts["failed"]) == (7, 2)


def test_a_lost_row_that_can_not_be_taken_back(bench: Bench, any_queue: Queue) -> None:
    """Ruling 6: of claims that were lost, one that the database will not have changed is left; the others are due."""
    keys = bench.add(any_queue.table, 5)
    words = any_queue.table.words
    with bench.run().transaction() as tx:
        assert len(any_queue.claim(tx, "gone", 5)) == 5
    bench.age(any_queue.table, heartbeat_at=HOUR)
    refuse(bench, any_queue, keys[0], keys[3])
    run = bench.run()
    take_back_lost(run, any_queue)
    assert bench.statuses(any_queue.table) == {words.due: 3, words.claimed: 2}
    assert run.counts == Counter(taken_back=3, failed=2)
    take_back_lost(again := bench.run(), any_queue)
    assert again.counts == Counter(failed=2)


def test_a_row_that_kills_its_worker_takes_nobody_with_it(bench: Bench, any_queue: Queue) -> None:
    """R8: its neighbours in the chunk lose an attempt once, and are done; it alone ends as failed."""
    table = any_queue.table
    keys = bench.add(table, 6)

    def kills(run: Run, claims: Sequence[Claim]) -> Sequence[Outcome]:
        if keys[2] in [claim.key for claim in claims]:
            raise Killed
        return work(run, claims)

    for _ in range(table.attempt_limit + 1):
        bench.age(table, heartbeat_at=HOUR)
        take_back_lost(bench.run(), any_queue)
        bench.execute(
            f'UPDATE "{table.name}" SET "{table.again or table.due}" = now() - interval \'1 hour\' '
            f"WHERE status = '{table.words.due}'"
        )
        # A worker that is killed is followed by others, which find what is still due.
        for _ in range(3):
            with suppress(Killed):
                drain(bench.run(), any_queue, kills, write, Limits(chunk=10))
    assert bench.statuses(table) == {"completed": 5, "failed": 1}
    assert bench.effects() == sorted(str(key) for key in keys if key != keys[2])
    assert getattr(bench.row(table, keys[2]), table.error) == LOST


def test_an_outage_is_no_attempt(bench: Bench, any_queue: Queue) -> None:
    """What keeps a whole chunk from being done gives it back untouched, however often it happens."""
    table = any_queue.table
    keys = bench.add(table, 3)

    def out(run: Run, claims: Sequence[Claim]) -> Sequence[Outcome]:
        raise Transient("the other database is away")

    for _ in range(table.attempt_limit + 1):
        with pytest.raises(Transient, match="away"):
            drain(bench.run(), any_queue, out, write)
    assert drain(bench.run(), any_queue, work, write) == 3
    assert [bench.row(table, key).attempts for key in keys] == [1, 1, 1]


def test_a_heart_that_stumbles_goes_on(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever a beat runs into, the next one is tried: a heart that stopped would give live claims away."""
    bench.add(FULL)
    queue = Queue(FULL)
    with bench.database.transaction() as tx:
        (one,) = queue.claim(tx, "me", 10)
    bench.execute(
        "CREATE FUNCTION bad() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'no beat' USING ERRCODE = '23514'; END $$"
    )
    bench.execute("CREATE TRIGGER bad BEFORE UPDATE ON full_queue FOR EACH ROW EXECUTE FUNCTION bad()")
    with beating(bench.run(), queue, "me", timedelta(milliseconds=20)) as held:
        deadline = time.monotonic() + 20
        while "no beat" not in caplog.text:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        bench.execute("DROP TRIGGER bad ON full_queue")
        while held != {one.key}:
            assert time.monotonic() < deadline
            time.sleep(0.02)


def test_a_row_that_can_not_be_buried(bench: Bench) -> None:
    """A row ends even where neither its result nor what is kept of its end can be written; the others are done."""
    keys = bench.add(FULL, 3)
    bench.execute(f"ALTER TABLE effects ADD CHECK (row_key <> '{keys[1]}')")

    def bury(tx: Transaction, ended: Sequence[Ended]) -> None:
        tx.execute(text("INSERT INTO effects (row_key) VALUES (:key)"), key=str(ended[0].key))

    run = bench.run()
    drain(run, Queue(FULL, bury), work, write)
    assert bench.statuses(FULL) == {"completed": 2, "failed": 1}
    assert run.counts == Counter(completed=2, failed=1)
