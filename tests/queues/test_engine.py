"""What a queue's rows go through, and what they may not."""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from include.errors import BadInput
from include.queues.engine import Claim, Ended, Failure, Queue, StaleClaim, new_owner, place_after
from include.queues.table import LOST, QueueTable, Words, doubling
from include.queues.wording import worded
from include.run import Transaction
from tests.queues.conftest import FAIR, FULL, PLAIN, Bench

MINUTE = timedelta(minutes=1)


def claim(
    bench: Bench, queue: Queue, at_most: int = 100, owner: str | None = None, **rest: Any
) -> list[Claim]:
    """Claim in a transaction of its own."""
    with bench.database.transaction() as tx:
        return queue.claim(tx, owner or new_owner("test"), at_most, **rest)


def test_oldest_first_and_no_more_than_asked(bench: Bench, any_queue: Queue) -> None:
    """A claim takes the oldest due rows, counts the attempt, and leaves what is not due yet."""
    keys = bench.add(any_queue.table, 5)
    bench.add(any_queue.table, 1, **{any_queue.table.due: datetime.now(UTC) + MINUTE, "id": _key(any_queue)})
    first, second = claim(bench, any_queue, 3), claim(bench, any_queue, 3)
    assert [c.key for c in first] == keys[:3]
    assert [c.key for c in second] == keys[3:]
    assert {c.attempt for c in first + second} == {1}
    assert claim(bench, any_queue) == []


def _key(queue: Queue) -> object:
    return uuid.uuid4() if queue.table.key_type == "uuid" else "later"


def test_higher_priority_first(bench: Bench) -> None:
    """Priority decides before age; no priority is 0."""
    low, none, high = (bench.add(FULL, 2, priority=priority) for priority in (-1, None, 7))
    assert [c.key for c in claim(bench, Queue(FULL))] == [*high, *none, *low]


def test_never_more_than_the_limit_under_a_nested_loop(bench: Bench, any_queue: Queue) -> None:
    """R7: with every other plan forbidden, the claim still takes no more than n."""
    bench.add(any_queue.table, 60)
    with bench.database.transaction() as tx:
        for plan in ("hashjoin", "mergejoin", "material", "hashagg", "sort"):
            tx.execute(text(f"SET LOCAL enable_{plan} = off"))
        assert len(any_queue.claim(tx, "me", 7)) == 7


def test_an_as_of_only_narrows(bench: Bench, any_queue: Queue) -> None:
    """Ruling 1: an explicit as-of leaves rows that fell due after it, and makes none due early."""
    keys = bench.add(any_queue.table, 2)
    now = datetime.now(UTC)
    assert claim(bench, any_queue, not_after=now - timedelta(hours=1)) == []
    assert [c.key for c in claim(bench, any_queue, not_after=now + timedelta(hours=1))] == keys


def test_kinds(bench: Bench) -> None:
    """A worker that takes some kinds leaves the others due."""
    scans, pipelines = bench.add(FULL, 2, kind="scan"), bench.add(FULL, 2, kind="pipeline")
    assert [c.key for c in claim(bench, Queue(FULL), kinds=["scan", "score"])] == scans
    assert [c.key for c in claim(bench, Queue(FULL), kinds=["pipeline"])] == pipelines


def test_rows_of_a_stage_wait_for_higher_ones(bench: Bench) -> None:
    """Within a stage nothing starts while a row of a higher priority is due or claimed; others do not wait."""
    batch = uuid.uuid4()
    scan, score = (bench.add(FULL, 1, batch=batch, priority=priority)[0] for priority in (10, 8))
    alone = bench.add(FULL, 1, priority=1)[0]
    queue = Queue(FULL)
    first = claim(bench, queue)
    assert {c.key for c in first} == {scan, alone}
    assert claim(bench, queue) == []
    with bench.database.transaction() as tx:
        queue.complete(tx, first)
    assert [c.key for c in claim(bench, queue)] == [score]


def test_tenants_take_turns(bench: Bench) -> None:
    """B's one row starts within one chunk of A's thousand, and each tenant's rows stay in their order."""
    ours = bench.add(FAIR, 1_000, tenant="A")
    theirs = bench.add(FAIR, 1, tenant="B")
    nobody = bench.add(FAIR, 3, tenant=None)
    claims = claim(bench, Queue(FAIR), 100)
    by_tenant = Counter(c.row.tenant for c in claims)
    assert by_tenant["B"] == 1
    assert by_tenant[None] == 3
    assert [c.key for c in claims if c.row.tenant == "A"] == ours[: by_tenant["A"]]
    assert {c.key for c in claims} >= {*theirs, *nobody}


@pytest.mark.parametrize(("chunk", "within"), [(1, 8), (4, 3), (100, 1)])
def test_tenants_take_turns_in_small_chunks(bench: Bench, chunk: int, within: int) -> None:
    """With more tenants than a chunk has rows, each worker goes around: nobody's one row waits for all of A's."""
    for tenant in "ABCDEF":
        bench.add(FAIR, 40, tenant=tenant)
    (last,) = bench.add(FAIR, 1, tenant="G")
    place, number = None, 0
    while True:
        claims = claim(bench, Queue(FAIR), chunk, owner="one worker", place=place)
        place, number = place_after(claims), number + 1
        assert claims
        if last in [one.key for one in claims]:
            break
    assert number <= within


def test_a_high_row_that_is_not_to_be_had(bench: Bench) -> None:
    """What another session holds, or what is left aside, does not stand before lower priorities."""
    (high,) = bench.add(FAIR, 1, priority=9, tenant="A")
    low = bench.add(FAIR, 3, priority=0, tenant="B")
    queue = Queue(FAIR)
    with bench.database.transaction() as held:
        assert [one.key for one in queue.claim(held, "first", 1)] == [high]
        with bench.database.transaction() as tx:
            assert [one.key for one in queue.claim(tx, "second", 2)] == low[:2]
    assert [one.key for one in claim(bench, queue, without=[high])] == low[2:]


def test_two_workers_share_tenants(bench: Bench) -> None:
    """A second worker beside an open claim finds other rows of the same tenants, not an empty queue."""
    for tenant in "ABC":
        bench.add(FAIR, 50, tenant=tenant)
    queue = Queue(FAIR)
    with bench.database.transaction() as one, bench.database.transaction() as two:
        first = queue.claim(one, "first", 9)
        second = queue.claim(two, "second", 9)
    assert len(first) == len(second) == 9
    assert not {c.key for c in first} & {c.key for c in second}


def test_a_place_spares_what_was_claimed(bench: Bench) -> None:
    """A claim from a place finds what lies beyond it; one without it finds what came in before."""
    keys = bench.add(FULL, 4)
    queue = Queue(FULL)
    first = claim(bench, queue, 2)
    early = bench.add(FULL, 1, next_run_at=datetime.now(UTC) - timedelta(hours=1))
    place = place_after(first)
    assert [c.key for c in claim(bench, queue, place=place)] == keys[2:]
    assert claim(bench, queue, place=place) == []
    assert [c.key for c in claim(bench, queue)] == early


def test_done_and_failed(bench: Bench, any_queue: Queue) -> None:
    """What is said of claims is written: done; due again after its delay; at an end where it is permanent."""
    bench.add(any_queue.table, 3)
    done, again, ended = claim(bench, any_queue)
    buried: list[Ended] = []
    queue = replace(any_queue, bury=lambda tx, rows: buried.extend(rows))
    with bench.database.transaction() as tx:
        queue.complete(tx, [done])
        queue.fail(tx, [Failure(again, "try\x00 later"), Failure(ended, "never", permanent=True)])
    table = queue.table
    assert bench.row(table, done.key).status == table.words.done
    last = bench.row(table, ended.key)
    assert (last.status, getattr(last, table.error)) == (table.words.failed, "never")
    row = bench.row(table, again.key)
    assert getattr(row, table.error) == "try later"
    if table.delays:
        wait = getattr(row, table.again or table.due) - datetime.now(UTC)
        assert timedelta(seconds=table.delays[0] - 5) < wait <= timedelta(seconds=table.delays[0])
        assert row.status == table.words.due
        assert [one.key for one in buried] == [ended.key]
    else:
        assert row.status == table.words.failed
        assert {one.key for one in buried} == {again.key, ended.key}
    assert row.claimed_by is None


@pytest.mark.parametrize(
    ("own_limit", "expected"), [(None, [30, 60, 120, 240]), (2, [30]), (7, [30, 60, 120, 240, 240, 240])]
)
def test_backoff(bench: Bench, own_limit: int | None, expected: list[int]) -> None:
    """Each transient failure waits as the table says until the attempts, the row's own or the table's, are used up."""
    queue = Queue(FULL)
    key = bench.add(FULL, 1, max_attempts=own_limit)[0]
    waits = []
    while True:
        (claimed,) = claim(bench, queue)
        with bench.database.transaction() as tx:
            ended = queue.fail(tx, [Failure(claimed, "overloaded")])
        if ended:
            break
        waits.append(round((bench.row(FULL, key).next_run_at - datetime.now(UTC)).total_seconds()))
        bench.age(FULL, next_run_at=timedelta(hours=2))
    assert waits == expected
    row = bench.row(FULL, key)
    assert (row.status, row.attempts, row.completed_at is not None) == ("failed", len(expected) + 1, True)


def test_doubling_is_capped() -> None:
    """30 s, 60, 120 … and never above an hour."""
    assert doubling(30, 3600, 10) == (30, 60, 120, 240, 480, 960, 1920, 3600, 3600)


@pytest.mark.parametrize("way", ["complete", "fail", "bury"])
def test_a_stale_worker_changes_nothing(
    bench: Bench, any_queue: Queue, way: str, record_property: Any
) -> None:
    """R6: given up for dead and back again, a worker is refused, and what it wrote beside is rolled back."""
    table = any_queue.table
    bench.add(table)
    (old,) = claim(bench, any_queue)
    bench.age(table, heartbeat_at=timedelta(hours=1))
    with bench.database.transaction() as tx:
        assert any_queue.take_back(tx) == (1, 0)
    bench.age(table, **{table.again or table.due: timedelta(hours=1)})
    (new,) = claim(bench, any_queue)
    assert (new.key, new.attempt) == (old.key, 2)
    before = bench.row(table, old.key)
    buried: list[Ended] = []
    queue = replace(any_queue, bury=lambda tx, rows: buried.extend(rows))

    def come_back() -> None:
        with bench.database.transaction() as tx:
            tx.execute(text("INSERT INTO effects (row_key) VALUES ('late')"))
            if way == "complete":
                queue.complete(tx, [old])
            else:
                queue.fail(tx, [Failure(old, "late", permanent=way == "bury")])

    with pytest.raises(StaleClaim, match=str(old.key)):
        come_back()
    assert bench.row(table, old.key) == before
    assert bench.effects() == []
    assert buried == []
    with bench.database.transaction() as tx:
        assert any_queue.heartbeat(tx, old.owner) == set()
        assert any_queue.heartbeat(tx, new.owner) == {new.key}
    record_property("queues", f"{table.name}: a stale {way} is refused, and what it wrote beside rolled back")


def test_a_retry_by_a_person_does_not_revive_an_old_claim(bench: Bench) -> None:
    """Counted anew from 1, the attempt is another owner's: the first one's late word is refused."""
    queue = Queue(FULL)
    bench.add(FULL)
    (old,) = claim(bench, queue)
    with bench.database.transaction() as tx:
        queue.fail(tx, [Failure(old, "broken", permanent=True)])
    with bench.database.transaction() as tx:
        assert queue.retry(tx, [old.key], "ana") == {old.key}
    (new,) = claim(bench, queue)
    assert new.attempt == old.attempt == 1
    with pytest.raises(StaleClaim), bench.database.transaction() as tx:
        queue.complete(tx, [old])


def test_a_slow_worker_that_beats_is_left_alone(bench: Bench, any_queue: Queue) -> None:
    """R6: what counts is the heartbeat, not how long the work takes."""
    table = any_queue.table
    bench.add(table)
    (claimed,) = claim(bench, any_queue)
    aged = {"heartbeat_at": timedelta(hours=1)} | (
        {table.started: timedelta(hours=1)} if table.started else {}
    )
    bench.age(table, **aged)
    with bench.database.transaction() as tx:
        assert any_queue.heartbeat(tx, claimed.owner) == {claimed.key}
    with bench.database.transaction() as tx:
        assert any_queue.take_back(tx) == (0, 0)
        any_queue.complete(tx, [claimed])


def test_a_row_that_kills_its_worker_ends(bench: Bench, any_queue: Queue) -> None:
    """R8: the attempt was counted at the claim, so a row that kills its process every time ends as failed."""
    table = any_queue.table
    (key,) = bench.add(table)
    buried: list[Ended] = []
    queue = replace(any_queue, bury=lambda tx, rows: buried.extend(rows))
    outcomes = []
    for _ in range(table.attempt_limit):
        assert [c.key for c in claim(bench, queue)] == [key]
        bench.age(table, heartbeat_at=timedelta(hours=1))
        with bench.database.transaction() as tx:
            outcomes.append(queue.take_back(tx))
        bench.age(table, **{table.again or table.due: timedelta(hours=2)})
    assert outcomes == [(1, 0)] * (table.attempt_limit - 1) + [(0, 1)]
    row = bench.row(table, key)
    assert (row.status, row.attempts, getattr(row, table.error)) == (
        table.words.failed,
        table.attempt_limit,
        LOST,
    )
    assert buried == [Ended(key, table.attempt_limit, LOST)]
    assert claim(bench, queue) == []


def test_a_lost_row_is_claimed_alone(bench: Bench, any_queue: Queue) -> None:
    """What may have killed its worker takes nobody with it: it comes alone, until an attempt says more of it."""
    table = any_queue.table
    bench.add(table, 6)
    claim(bench, any_queue, 3)
    bench.age(table, heartbeat_at=timedelta(hours=1))
    with bench.database.transaction() as tx:
        assert any_queue.take_back(tx) == (3, 0)
    bench.execute(f'UPDATE "{table.name}" SET "{table.again or table.due}" = now() - interval \'1 hour\'')
    claims = [claim(bench, any_queue, 10) for _ in range(6)]
    assert sorted(one.attempt for some in claims for one in some) == [1, 1, 1, 2, 2, 2]
    assert all(len(some) <= 1 or {one.attempt for one in some} == {1} for some in claims)


def test_a_claim_that_is_given_back(bench: Bench, any_queue: Queue) -> None:
    """It is as if it had not been made: due as before, no attempt; a stale one gives nothing back."""
    (key,) = bench.add(any_queue.table)
    before = bench.row(any_queue.table, key)
    (one,) = claim(bench, any_queue)
    with bench.database.transaction() as tx:
        assert any_queue.release(tx, [one]) == {key}
    after = bench.row(any_queue.table, key)
    assert (after.status, after.attempts, after.claimed_by) == (before.status, before.attempts, None)
    (again,) = claim(bench, any_queue)
    assert again.attempt == 1
    with bench.database.transaction() as tx:
        assert any_queue.release(tx, [one]) == set()
        any_queue.complete(tx, [again])


def test_a_claim_by_hand_that_counted_nothing(bench: Bench) -> None:
    """An application's own claim may leave attempts null or 0: it is taken back all the same, after one delay."""
    keys = bench.add(FULL, 2)
    bench.execute("ALTER TABLE full_queue DISABLE TRIGGER USER")
    bench.execute(
        "UPDATE full_queue SET status = 'processing', started_at = now() - interval '1 hour', "
        f"attempts = CASE WHEN id = '{keys[0]}' THEN 0 END"
    )
    with bench.database.transaction() as tx:
        assert Queue(FULL).take_back(tx) == (2, 0)
    waits = [(bench.row(FULL, key).next_run_at - datetime.now(UTC)).total_seconds() for key in keys]
    assert all(20 < seconds <= 30 for seconds in waits)


def test_a_lost_row_that_does_not_change(bench: Bench) -> None:
    """A trigger may let an update change nothing: what was not taken back is not counted, and nobody waits for it."""
    bench.add(FULL)
    claim(bench, Queue(FULL))
    bench.age(FULL, heartbeat_at=timedelta(hours=1))
    bench.execute("CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$")
    bench.execute("CREATE TRIGGER keep BEFORE UPDATE ON full_queue FOR EACH ROW EXECUTE FUNCTION keep()")
    with bench.database.transaction() as tx:
        assert Queue(FULL).take_back(tx) == (0, 0)


def test_started_counts_where_no_heart_ever_beat(bench: Bench) -> None:
    """Rows that an application claims by its own function have no heartbeat: their start stands for it."""
    old, young = bench.add(FULL, 2)
    bench.execute("UPDATE full_queue SET status = 'processing', attempts = 1, started_at = now()")
    bench.execute(f"UPDATE full_queue SET started_at = now() - interval '11 minutes' WHERE id = '{old}'")
    with bench.database.transaction() as tx:
        assert Queue(FULL).take_back(tx) == (1, 0)
    assert bench.row(FULL, old).status == "pending"
    assert bench.row(FULL, young).status == "processing"


GUARDED = [
    ("pending", "processing", True), ("pending", "cancelled", True), ("pending", "completed", False),
    ("pending", "failed", False), ("processing", "completed", True), ("processing", "failed", True),
    ("processing", "pending", True), ("processing", "cancelled", True), ("failed", "pending", True),
    ("failed", "completed", False), ("completed", "pending", False), ("completed", "failed", False),
    ("cancelled", "pending", False),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "allowed"), GUARDED)
def test_the_guard(bench: Bench, before: str, after: str, allowed: bool) -> None:  # noqa: FBT001 - a table's column
    """Whoever asks, the database allows the specification's changes of status and no other; each is on the trail."""
    (key,) = bench.add(FULL)
    ways = {"pending": [], "processing": ["processing"], "failed": ["processing", "failed"]}
    for word in ways.get(before, ["processing", before]):
        bench.execute(f"UPDATE full_queue SET status = '{word}', attempts = 1 WHERE id = '{key}'")
    trail = len(bench.audit(key))
    change = f"UPDATE full_queue SET status = '{after}' WHERE id = '{key}'"
    if allowed:
        bench.execute(change)
        assert bench.audit(key)[trail:] == [(before, after, bench.row(FULL, key).attempts)]
    else:
        with pytest.raises(IntegrityError, match=f"can't go from {before} to {after}"):
            bench.execute(change)
        assert bench.row(FULL, key).status == before
        assert len(bench.audit(key)) == trail


def test_nothing_is_no_status(bench: Bench) -> None:
    """A table that was taken over may allow null for a status; the guard does not."""
    bench.execute("ALTER TABLE full_queue ALTER COLUMN status DROP NOT NULL")
    (key,) = bench.add(FULL)
    with pytest.raises(IntegrityError, match="can't go from pending to"):
        bench.execute("UPDATE full_queue SET status = NULL")
    assert bench.row(FULL, key).status == "pending"


@pytest.fixture
def application(bench: Bench) -> Iterator[psycopg.Connection[Any]]:
    """Return a session of a role that may change the queue's rows, and has no other right."""
    role = f"application_{uuid.uuid4().hex[:12]}"
    bench.execute(f"CREATE ROLE {role} LOGIN")
    bench.execute(f"GRANT {role} TO CURRENT_USER WITH INHERIT TRUE")
    try:
        bench.execute(f"GRANT SELECT, UPDATE ON full_queue TO {role}")
        url = bench.engine.url.set(drivername="postgresql", username=role)
        with psycopg.connect(url.render_as_string(hide_password=False)) as own:
            yield own
    finally:
        bench.execute(f"DROP OWNED BY {role}")
        bench.execute(f"DROP ROLE {role}")


def test_an_application_with_a_role_of_its_own(bench: Bench, application: psycopg.Connection[Any]) -> None:
    """It may change the queue's rows without any right on the trail, which has its name all the same."""
    (key,) = bench.add(FULL)
    application.execute("UPDATE full_queue SET status = 'processing', attempts = 1")
    with pytest.raises(psycopg.errors.InsufficientPrivilege), application.transaction():
        application.execute("DELETE FROM queue_audit")
    application.commit()
    with bench.engine.connect() as connection:
        trail = connection.execute(text("SELECT row_key, to_status, actor FROM queue_audit")).one()
    assert tuple(trail) == (str(key), "processing", application.info.user)


_TRAIL_OF_ITS_OWN = """
CREATE TEMPORARY TABLE queue_audit (
    id serial, queue text, row_key text, from_status text, to_status text, attempt int, claimed_by text, actor text,
    reason text
);
CREATE FUNCTION pg_temp.as_whom() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN NEW.reason := current_user; RETURN NEW; END
$$;
CREATE TRIGGER as_whom BEFORE INSERT ON pg_temp.queue_audit FOR EACH ROW EXECUTE FUNCTION pg_temp.as_whom();
GRANT ALL ON pg_temp.queue_audit, pg_temp.queue_audit_id_seq TO PUBLIC;
"""


def test_a_trail_of_the_applications_own(bench: Bench, application: psycopg.Connection[Any]) -> None:
    """A temporary table of the trail's name keeps nothing from the trail, and runs nothing with its owner's rights."""
    (key,) = bench.add(FULL)
    application.execute(_TRAIL_OF_ITS_OWN)
    application.execute("UPDATE full_queue SET status = 'processing', attempts = 1")
    assert application.execute("SELECT reason FROM pg_temp.queue_audit").fetchall() == []
    application.commit()
    assert bench.audit(key) == [("pending", "processing", 1)]


def test_a_trail_of_what_never_happened(bench: Bench, application: psycopg.Connection[Any]) -> None:
    """The function that writes the trail serves no table of somebody's own."""
    application.execute("CREATE TEMPORARY TABLE forged AS SELECT * FROM full_queue")
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="full_queue_moved"):
        application.execute(
            "CREATE TRIGGER forged AFTER UPDATE ON forged REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows "
            "FOR EACH STATEMENT EXECUTE FUNCTION full_queue_moved()"
        )


def test_a_key_stays(bench: Bench, any_queue: Queue) -> None:
    """Under another key a row would have left its trail behind; the guard says which row it was."""
    (key,) = bench.add(any_queue.table)
    other = uuid.uuid4()
    change = f"UPDATE \"{any_queue.table.name}\" SET id = '{other}'"
    with pytest.raises(IntegrityError, match=f"row {key} can't become row {other}"):
        bench.execute(change)
    assert bench.row(any_queue.table, key).id == key


def test_a_key_stays_in_a_change_of_status(bench: Bench) -> None:
    """A move that the guard allows is no way around."""
    (key,) = bench.add(FULL)
    with pytest.raises(IntegrityError, match=f"row {key} can't become row"):
        bench.execute("UPDATE full_queue SET status = 'processing', id = gen_random_uuid()")
    assert (bench.row(FULL, key).status, bench.audit(key)) == ("pending", [])


def test_the_guard_at_the_door(bench: Bench, any_queue: Queue) -> None:
    """A row can't come in as if it had been worked on."""
    with pytest.raises(IntegrityError, match="can't go from nothing to completed"):
        bench.add(any_queue.table, status="completed")


def test_what_a_person_may_do(bench: Bench) -> None:
    """Cancel, retry and requeue are done for a person by name, and only where the table allows them."""
    queue = Queue(FULL)
    bench.add(FULL, 3)
    failed, held, due = claim(bench, queue, 1)[0], claim(bench, queue, 1)[0], None
    with bench.database.transaction() as tx:
        queue.fail(tx, [Failure(failed, "no", permanent=True)])
    every = [failed.key, held.key]
    with bench.database.transaction() as tx:
        assert queue.retry(tx, every, "ana") == {failed.key}
        assert queue.requeue(tx, every, "ana") == {held.key}
        due = queue.cancel(tx, every, "ana")
    assert due == set(every)
    with bench.engine.connect() as connection:
        named = connection.execute(text("SELECT DISTINCT actor FROM queue_audit WHERE actor <> session_user"))
        assert named.scalars().all() == ["ana"]
    with pytest.raises(StaleClaim), bench.database.transaction() as tx:
        queue.complete(tx, [held])
    with pytest.raises(BadInput, match="can't retry"), bench.database.transaction() as tx:
        Queue(PLAIN).retry(tx, ["row 0"], "ana")
    with pytest.raises(BadInput, match="name of who asks"), bench.database.transaction() as tx:
        queue.cancel(tx, every, " ")


def test_an_insert_tells_who_listens_once(bench: Bench, any_queue: Queue) -> None:
    """A statement of many rows is one notification, sent at the commit, and a row made due by a person is one too."""
    url = bench.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url, autocommit=True) as listener:
        listener.execute(sql.SQL("LISTEN {}").format(sql.Identifier(any_queue.table.channel)))
        bench.add(any_queue.table, 50)
        assert len(list(listener.notifies(timeout=0.3))) == 1
        claims = claim(bench, any_queue)
        assert list(listener.notifies(timeout=0.2)) == []
        with bench.database.transaction() as tx:
            any_queue.fail(tx, [Failure(one, "no", permanent=True) for one in claims])
        assert list(listener.notifies(timeout=0.2)) == []
        if "retry" in any_queue.table.people_may:
            with bench.database.transaction() as tx:
                any_queue.retry(tx, [one.key for one in claims], "ana")
            assert len(list(listener.notifies(timeout=0.3))) == 1


def test_statistics_and_retention(bench: Bench, any_queue: Queue) -> None:
    """The depth and the oldest due row are told; what ended long ago goes with its trail, all else stays."""
    table = any_queue.table
    bench.add(table, 4)
    claims = claim(bench, any_queue, 2)
    with bench.database.transaction() as tx:
        any_queue.complete(tx, claims)
    with bench.database.transaction() as tx:
        found = {row.status: (row.rows, row.due_now) for row in any_queue.statistics(tx)}
        assert found == {table.words.done: (2, 0), table.words.due: (2, 2)}
        assert any_queue.retire(tx, datetime.now(UTC) - timedelta(days=1)) == 0
        assert any_queue.retire(tx, datetime.now(UTC) + timedelta(days=1)) == 2
    assert bench.statuses(table) == {table.words.due: 2}
    assert bench.audit(claims[0].key) == []


@pytest.mark.parametrize(
    "broken",
    [
        {"name": 'x"; DROP'}, {"channel": "Häh?"}, {"attempt_limit": 0}, {"delays": (-1,)},
        {"words": Words(due="a'b", claimed="b", done="c", failed="d")}, {"people_may": frozenset({"delete"})},
        {"people_may": frozenset({"cancel"})},
    ],
)  # fmt: skip
def test_a_description_that_can_not_be(broken: dict[str, object]) -> None:
    """What would end up in a statement, or make no sense, is refused when it is written down."""
    with pytest.raises(BadInput, match="queue table"):
        QueueTable(
            **{"name": "q", "words": PLAIN.words, "due": "d", "error": "e", "channel": "c"} | broken  # ty: ignore[invalid-argument-type]
        )


def test_a_claim_by_two_owners_is_refused(bench: Bench) -> None:
    """Claims are finished one owner at a time: mixed up, the fence would look at one owner only."""
    queue = Queue(FULL)
    bench.add(FULL, 2)
    mixed = [*claim(bench, queue, 1), *claim(bench, queue, 1)]

    def finish(tx: Transaction) -> None:
        queue.complete(tx, mixed)

    with pytest.raises(BadInput, match="one owner"), bench.database.transaction() as tx:
        finish(tx)


def test_enqueue(bench: Bench) -> None:
    """Rows come in as given, due at once, after a delay or at their own instant; NULL, quotes and JSON survive."""
    queue = Queue(FULL)
    parent = uuid.uuid4()
    own = datetime(2027, 1, 2, 3, 4, tzinfo=UTC)
    with bench.database.transaction() as tx:
        at_once = queue.enqueue(
            tx,
            [
                {"kind": "a", "payload": 'O\'Neil "x"', "batch": parent},
                {"kind": None, "payload": None, "batch": None},
            ],
        )
        (later,) = queue.enqueue(tx, [{"kind": "b", "priority": 7}], delay=timedelta(hours=1))
        (own_time,) = queue.enqueue(tx, [{"kind": "c", "next_run_at": own}])
    first = bench.row(FULL, at_once[0])
    assert (first.kind, first.payload, first.batch, first.status) == ("a", 'O\'Neil "x"', parent, "pending")
    assert bench.row(FULL, at_once[1]).kind is None
    assert {c.key for c in claim(bench, queue)} == set(at_once)
    wait = bench.row(FULL, later).next_run_at - datetime.now(UTC)
    assert timedelta(minutes=59) < wait <= timedelta(hours=1)
    assert bench.row(FULL, own_time).next_run_at == own


def test_enqueue_twice_is_once(bench: Bench) -> None:
    """A known dedupe key adds nothing, within one statement or over several, also once the row is done."""
    queue = Queue(FULL)
    rows = [{"dedupe_key": key} for key in ("a", "b", "a")]
    with bench.database.transaction() as tx:
        assert len(queue.enqueue(tx, rows)) == 2
        queue.complete(tx, queue.claim(tx, "me", 10))
        assert queue.enqueue(tx, rows) == []
    assert bench.statuses(FULL) == {"completed": 2}


def test_one_key_from_many_at_once(bench: Bench) -> None:
    """Sessions that enqueue one key at the same time leave exactly one row, and one of them is told of it."""
    queue = Queue(FULL)
    gate = threading.Barrier(8)

    def add() -> int:
        with bench.database.transaction() as tx:
            gate.wait(10)
            return len(queue.enqueue(tx, [{"dedupe_key": "one"}]))

    with ThreadPoolExecutor(8) as pool:
        added = [done.result(30) for done in [pool.submit(add) for _ in range(8)]]
    assert sum(added) == 1
    assert bench.statuses(FULL) == {"pending": 1}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{'kind") VALUES (1); --': "x"}], "plain name"),
        ([{"kind": "a"}, {"batch": None}], "together"),
        ([{"kind": object()}], "nothing that a queue"),
    ],
)
def test_what_can_not_be_enqueued(bench: Bench, rows: list[dict[str, Any]], said: str) -> None:
    """A row that can't be one is refused with the table's name or the value's, and nothing is added."""

    def add() -> None:
        with bench.database.transaction() as tx:
            Queue(FULL).enqueue(tx, rows)

    with pytest.raises(BadInput, match=said):
        add()
    assert bench.statuses(FULL) == {}


def test_an_earlier_attempt_of_the_same_worker(bench: Bench) -> None:
    """A worker that claims a row again is held to its newest attempt: what it says of the first is refused."""
    queue = Queue(FULL)
    bench.add(FULL)
    (first,) = claim(bench, queue, owner="one")
    with bench.database.transaction() as tx:
        queue.requeue(tx, [first.key], "ana")
    (second,) = claim(bench, queue, owner="one")

    def finish(one: Claim) -> None:
        with bench.database.transaction() as tx:
            queue.complete(tx, [one])

    with pytest.raises(StaleClaim):
        finish(first)
    finish(second)


def _read(node: dict[str, Any]) -> int:
    """Return how many rows a plan's nodes made or threw away."""
    own = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
    return int(own) + sum(map(_read, node.get("Plans", [])))


def _fill(bench: Bench, table: QueueTable, word: str, rows: int) -> None:
    tenant = ", tenant" if table.tenant else ""
    bench.execute(f'ALTER TABLE "{table.name}" DISABLE TRIGGER USER')
    bench.execute(
        f'INSERT INTO "{table.name}" (id, status, "{table.due}"{tenant}) '
        f"SELECT CAST(md5('{word}' || n) AS uuid), '{word}', now() - interval '1 day' + n * interval '1 ms'"
        f"{', chr(65 + n % 4)' if tenant else ''} FROM generate_series(1, {rows}) AS n"
    )
    bench.execute(f'ALTER TABLE "{table.name}" ENABLE TRIGGER USER')
    bench.execute(f'ANALYZE "{table.name}"')


def test_a_claim_reads_no_more_than_it_takes(bench: Bench, any_queue: Queue) -> None:
    """However many rows are due and have ended, a claim walks the index of due ones, in order, and stops."""
    table = any_queue.table
    for word, rows in ((table.words.due, 20_000), (table.words.done, 5_000)):
        _fill(bench, table, word, rows)
    statement = worded(table, "claim_in_turn" if table.tenant else "claim")
    with bench.engine.connect() as connection:
        (plan,) = connection.execute(
            text(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement.clause.text}"),
            {"owner": "me", "at_most": 20, "not_after": None, "after_turn": None},
        ).scalar_one()
    assert _read(plan["Plan"]) < 20 * 20


def test_dead_rows_cost_a_worker_nothing(bench: Bench) -> None:
    """Under a held snapshot what was claimed can't be cleaned away; from its place a worker does not meet it."""
    _fill(bench, FULL, "pending", 6_000)
    queue, place = Queue(FULL), None
    statement = worded(FULL, "claim", beyond=True).clause.text
    with bench.engine.connect().execution_options(isolation_level="REPEATABLE READ") as holder:
        holder.execute(text("SELECT count(*) FROM full_queue"))
        for _ in range(5):
            claims = claim(bench, queue, 1_000, owner="me", place=place)
            place = place_after(claims)
            with bench.database.transaction() as tx:
                queue.complete(tx, claims)
        assert place
        with bench.engine.connect() as connection:
            (plan,) = connection.execute(
                text(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}"),
                {"owner": "me", "at_most": 5, "not_after": None}
                | {"after_rank": place.rank, "after_due": place.due, "after_key": place.key},
            ).scalar_one()
    # Five thousand dead entries of the index would be some hundred pages.
    assert plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"] < 150
