"""What people see of a queue, and what they change of many rows at once."""

from __future__ import annotations

import importlib
import pkgutil
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

import include
from include.errors import BadInput
from include.queues import console
from include.queues.console import PAGE, RowFilter
from include.queues.engine import Failure, Queue, new_owner
from include.queues.table import QueueTable
from tests.queues.conftest import FAIR, FULL, PLAIN, Bench

EVERY = [FULL, FAIR, PLAIN]
ADDRESS = "recipient <ann.o'hara+7@example.test> refused by m1@example.test: full"


def end(bench: Bench, table: QueueTable, *reasons: str | None) -> list[Any]:
    """Let rows end: failed for good with a reason, or done where it is None; return their keys in order."""
    queue = Queue(table)
    bench.add(table, len(reasons))
    with bench.database.transaction() as tx:
        claims = queue.claim(tx, new_owner("run 7"), len(reasons))
        queue.complete(tx, [c for c, why in zip(claims, reasons, strict=True) if why is None])
        queue.fail(
            tx,
            [
                Failure(c, why, permanent=True)
                for c, why in zip(claims, reasons, strict=True)
                if why is not None
            ],
        )
    return [claim.key for claim in claims]


def names(system: str) -> list[str]:
    """Return the modules of a system, its migrations left out."""
    package = importlib.import_module(f"include.{system}")
    return [one.name for one in pkgutil.iter_modules(package.__path__) if one.name != "migrations"]


@pytest.mark.parametrize(
    "system",
    [one.name for one in pkgutil.iter_modules(include.__path__) if one.ispkg and one.name != "queues"],
)
def test_every_queue_is_watched(system: str) -> None:
    """A queue that its system does not list is one that nobody sees filling up."""
    modules = [importlib.import_module(f"include.{system}.{name}") for name in names(system)]
    tables = {value for module in modules for value in vars(module).values() if isinstance(value, QueueTable)}
    watched = [queue for module in modules for queue in vars(module).get("QUEUE_TABLES", ())]
    assert {queue.table for queue in watched} == tables
    if tables:
        assert tuple(watched) == importlib.import_module(f"include.{system}.queues").QUEUE_TABLES


@pytest.mark.parametrize("table", EVERY, ids=lambda table: table.name)
def test_how_a_queue_stands(bench: Bench, table: QueueTable) -> None:
    """The figures a person looks at first: what is due and since when, what ended, and what it ended of."""
    end(bench, table, None, None, "no")
    due = [bench.add(table, 1, id=_key(table))[0] for _ in range(2)]
    bench.add(table, 1, **{table.due: datetime.now(UTC) + timedelta(days=1), "id": _key(table)})
    with bench.database.transaction() as tx:
        found = console.standing(tx, table, 5)
    words = table.words
    assert found.depth == dict.fromkeys(table.all_words(), 0) | {words.due: 3, words.done: 2, words.failed: 1}
    assert found.due_now == 2
    assert found.oldest_due == getattr(bench.row(table, due[0]), table.due)
    assert found.ended == {words.done: (2, 2), words.failed: (1, 1)}


def _key(table: QueueTable) -> Any:
    return uuid.uuid4() if table.key_type == "uuid" else f"<b>/{uuid.uuid4()}"


def test_the_rate_is_of_the_last_hour_and_day(bench: Bench) -> None:
    """A trail of years must not count, and one queue's rows are not another's."""
    for hours in (30, 23, 0):
        end(bench, FULL, None, "no")
        end(bench, FAIR, None)
        bench.execute(f"UPDATE queue_audit SET moved_at = moved_at - interval '{hours} hours'")
    with bench.database.transaction() as tx:
        found = console.standing(tx, FULL, 5)
    assert found.ended == {"completed": (1, 2), "failed": (1, 2)}


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("HTTP 503 after 12.5 s", "HTTP # after #.# s"),
        ("job 0190aB2c-0000-7000-8000-00000000000F is gone", "job (id) is gone"),
        (ADDRESS, "recipient <(address)> refused by (address): full"),
        ("two\n  lines\tand 3", "two lines and #"),
        ("<b>no</b> :name %(x)s {y} \\d", "<b>no</b> :name %(x)s {y} \\d"),
        ("x" * 700 + "7", "x" * 160),
        ("", ""),
    ],
    ids=["numbers", "ids", "addresses", "blanks", "marks", "long", "empty"],
)
def test_a_cause_is_the_error_without_what_differs(bench: Bench, reason: str, cause: str) -> None:
    """A thousand failures of one kind are one line, not a thousand that differ in an id."""
    end(bench, FULL, reason)
    with bench.database.transaction() as tx:
        (found,) = console.standing(tx, FULL, 5).causes
        assert (found.cause, found.failed, found.waiting) == (cause, 1, 0)
        assert console.matching(tx, FULL, RowFilter(cause=found.cause_id)) == {"failed": 1}


@pytest.mark.parametrize("table", EVERY, ids=lambda table: table.name)
def test_failures_by_their_cause(bench: Bench, table: QueueTable) -> None:
    """The most frequent first, those beyond the limit known to be there; a failure without a reason counts too."""
    end(bench, table, "status 500 of job 1", "status 502 of job 2", "refused", "gone", None)
    bench.execute(f'UPDATE "{table.name}" SET "{table.error}" = NULL WHERE "{table.error}" = \'gone\'')
    with bench.database.transaction() as tx:
        few, all_ = console.standing(tx, table, 1), console.standing(tx, table, 3)
    assert [(one.cause, one.failed) for one in few.causes] == [("status # of job #", 2)]
    assert (few.more, all_.more) == (True, False)
    assert [(one.cause, one.failed) for one in all_.causes][1:] == [("", 1), ("refused", 1)]


def test_long_errors_of_one_kind_are_one_cause(bench: Bench) -> None:
    """What is cut off a long error depends on the length of its ids; its cause must not."""
    tail = " and more of a trace" * 30
    errors = [f"job {uuid.uuid4()} of {'n' * n}@example.test after {10**n} s{tail}" for n in (1, 9, 20)]
    end(bench, FULL, *errors)
    with bench.database.transaction() as tx:
        (found,) = console.standing(tx, FULL, 5).causes
    assert found.cause.startswith("job (id) of (address) after # s and more")
    assert found.failed == 3


def test_causes_are_of_a_bounded_number(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A million failures must not keep the page from the person who looks for their cause."""
    monkeypatch.setattr(console, "MOST_FAILURES", 2)
    end(bench, FULL, "no", "no", "no")
    with bench.database.transaction() as tx:
        (found,) = console.standing(tx, FULL, 5).causes
    assert found.failed == 2


def test_what_waits_for_another_try_has_its_cause(bench: Bench) -> None:
    """An outage shows while its rows are still tried again, not only when they have ended."""
    bench.add(FULL, 2)
    queue = Queue(FULL)
    with bench.database.transaction() as tx:
        queue.fail(tx, [Failure(c, "no answer in 30 s") for c in queue.claim(tx, "me", 2)])
        (found,) = console.standing(tx, FULL, 5).causes
    assert (found.cause, found.failed, found.waiting, found.latest) == ("no answer in # s", 0, 2, None)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (RowFilter(), {"completed": 1, "failed": 3}),
        (RowFilter(status="failed"), {"failed": 3}),
        (RowFilter(status="no such"), {}),
        (RowFilter(kind="scan"), {"completed": 1, "failed": 3}),
        (RowFilter(kind="Scan"), {}),
        (RowFilter(words="REFUSED"), {"failed": 2}),
        (RowFilter(words="%"), {"failed": 1}),
        (RowFilter(words="_"), {}),
        (RowFilter(words="' OR 1=1 --"), {}),
        (RowFilter(cause="no such"), {}),
        (RowFilter(status="completed", words="refused"), {}),
    ],
    ids=str,
)
def test_filters(bench: Bench, wanted: RowFilter, found: dict[str, int]) -> None:
    """Each alone and together; words are words, never a pattern."""
    end(bench, FULL, None, "Refused 1", "refused 2", "100 % wrong")
    bench.execute("UPDATE full_queue SET kind = 'scan'")
    with bench.database.transaction() as tx:
        assert console.matching(tx, FULL, wanted) == found
        assert len(console.listed(tx, FULL, wanted).rows) == sum(found.values())


def test_a_table_without_kinds_has_none(bench: Bench) -> None:
    """The filter is not offered where it says nothing, and finds nothing where it is sent all the same."""
    bench.add(FAIR, 1)
    bench.add(FULL, 1, kind="scan")
    with bench.database.transaction() as tx:
        assert console.kinds(tx, FAIR) == ()
        assert [(one.kind, one.rows) for one in console.kinds(tx, FULL)] == [("scan", 1)]
        assert console.matching(tx, FAIR, RowFilter(kind="scan")) == {}


@pytest.mark.parametrize("table", EVERY, ids=lambda table: table.name)
def test_pages_have_every_row_once(bench: Bench, table: QueueTable) -> None:
    """Equal times, no time, infinite times: each row is on one page, the latest first."""
    keys = set()
    for number, due in enumerate(("now", "2020-01-01", "infinity", "-infinity", "now")):
        more = bench.add(table, PAGE) if table.key_type == "uuid" else _named(bench, table, number)
        keys |= set(more)
        last = "NULL" if number == 4 else f"'{due}'"
        bench.execute(f'UPDATE "{table.name}" SET "{table.due}" = {last} WHERE {_among(more)}')
    found, place, pages = [], None, 0
    with bench.database.transaction() as tx:
        while True:
            page = console.listed(tx, table, RowFilter(), place)
            found += [row.row_key for row in page.rows]
            pages, place = pages + 1, page.next
            if place is None:
                break
    assert len(found) == len(set(found)) == 5 * PAGE
    assert set(found) == {str(key) for key in keys}
    assert pages == 5
    with bench.database.transaction() as tx:
        first = console.listed(tx, table, RowFilter()).rows[0]
        assert first.planned_text == "infinity"


def _named(bench: Bench, table: QueueTable, number: int) -> list[str]:
    return [bench.add(table, 1, id=f"row {number}/{n} <b>")[0] for n in range(PAGE)]


def _among(keys: list[Any]) -> str:
    return f"id IN ({', '.join(repr(str(key)) for key in keys)})"


@pytest.mark.parametrize("table", [FULL, PLAIN], ids=lambda table: table.name)
def test_a_rows_life(bench: Bench, table: QueueTable) -> None:
    """From the claim to the end, in order, with who and why; a key that is none finds nothing."""
    (key,) = end(bench, table, "no")
    if "retry" in table.people_may:
        with bench.database.transaction() as tx:
            assert console.change(tx, table, "retry", [key], "ana") == {key}
    with bench.database.transaction() as tx:
        found = console.row_detail(tx, table, str(key))
        assert console.row_detail(tx, table, str(_key(table))) is None
    assert found is not None
    words = table.words
    expected = [(words.due, words.claimed, None), (words.claimed, words.failed, "no")]
    assert [(m.from_status, m.to_status, m.reason) for m in found.moves[:2]] == expected
    assert found.moves[0].claimed_by.startswith("run 7 ")
    if table is FULL:
        assert (found.moves[2].to_status, found.moves[2].actor) == ("pending", "ana")
    assert found.row.row_error == "no"
    assert not found.cut


def test_a_long_life_is_cut_at_its_beginning(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that was tried again for years shows its latest tries, not its first."""
    monkeypatch.setattr(console, "MOST_MOVES", 1)
    (key,) = end(bench, FULL, "no")
    with bench.database.transaction() as tx:
        found = console.row_detail(tx, FULL, str(key))
    assert found is not None
    assert [move.to_status for move in found.moves] == ["failed"]
    assert found.cut


def test_a_key_that_is_no_key(bench: Bench) -> None:
    """The database refuses it; it must not find another row."""
    with pytest.raises(DBAPIError), bench.database.transaction() as tx:
        console.row_detail(tx, FULL, "nonsense")


def test_retry_all_that_match(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that match and nothing else, over several chunks, each row in the person's name."""
    monkeypatch.setattr(console, "BATCH", 10)
    end(bench, FULL, *["status 500"] * 25, *["refused"] * 3, None)
    run = bench.run()
    console.change_all(run, FULL, "retry", RowFilter(words="status"), "ana", at_most=100, seconds=60)
    assert run.counts == {"changed": 25}
    assert bench.statuses(FULL) == {"pending": 25, "failed": 3, "completed": 1}
    with bench.database.transaction() as tx:
        by = tx.rows(text("SELECT actor, count(*) FROM queue_audit WHERE to_status = 'pending' GROUP BY 1"))
    assert [tuple(row) for row in by] == [("ana", 25)]


@pytest.mark.parametrize(("at_most", "seconds", "changed"), [(7, 60, 7), (0, 60, 0), (100, 0, 0)])
def test_no_more_than_was_said(bench: Bench, at_most: int, seconds: float, changed: int) -> None:
    """A person agreed to a number; rows that came in since then are not among it, and no request goes on for ever."""
    end(bench, FULL, *["no"] * 9)
    run = bench.run()
    console.change_all(run, FULL, "retry", RowFilter(), "ana", at_most=at_most, seconds=seconds)
    assert run.counts["changed"] == changed
    assert bench.statuses(FULL).get("pending", 0) == changed


def test_a_row_that_fails_again_is_not_taken_twice(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Retried rows that fail at once match again: one request must come to an end all the same."""
    monkeypatch.setattr(console, "BATCH", 2)
    end(bench, FULL, *["no"] * 5)
    # A worker that is as quick as can be.
    bench.execute(
        "CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN NEW.status = OLD.status; RETURN NEW; END $$"
    )
    bench.execute("CREATE TRIGGER a_fails BEFORE UPDATE ON full_queue FOR EACH ROW EXECUTE FUNCTION fails()")
    run = bench.run()
    console.change_all(run, FULL, "retry", RowFilter(), "ana", at_most=1_000, seconds=20)
    assert run.counts["changed"] == 5


def test_what_another_session_holds_is_left_alone(bench: Bench) -> None:
    """A page must not wait for a worker, nor take a row that the worker is just finishing."""
    bench.add(FULL, 3)
    queue = Queue(FULL)
    with bench.database.transaction() as tx:
        claims = queue.claim(tx, "me", 3)
    with bench.database.transaction() as tx:
        queue.complete(tx, claims[:1])
        run = bench.run()
        console.change_all(run, FULL, "requeue", RowFilter(), "ana", at_most=10, seconds=60)
    assert run.counts == {"changed": 2}
    assert bench.statuses(FULL) == {"completed": 1, "pending": 2}


def test_one_bad_row_stops_no_other(bench: Bench) -> None:
    """A row of before the constraints can't be changed at all; the others are, and it is counted."""
    keys = end(bench, FULL, *["no"] * 6)
    bench.execute(f"UPDATE full_queue SET payload = 'bad' WHERE id = '{keys[3]}'")
    bench.execute("ALTER TABLE full_queue ADD CHECK (payload IS DISTINCT FROM 'bad') NOT VALID")
    run = bench.run()
    console.change_all(run, FULL, "retry", RowFilter(), "ana", at_most=10, seconds=60)
    assert run.counts == {"changed": 5, "failed": 1}


@pytest.mark.parametrize("table", [FAIR, PLAIN], ids=lambda table: table.name)
@pytest.mark.parametrize("what", console.ACTIONS)
def test_what_a_person_may_not_do(bench: Bench, table: QueueTable, what: str) -> None:
    """The list of the table holds, whatever a page asks for."""
    end(bench, table, "no")
    bench.add(table, 1, id=_key(table))
    run = bench.run()
    with pytest.raises(BadInput, match=f"a person can't {what}"), bench.database.transaction() as tx:
        console.change(tx, table, what, [], "ana")
    with pytest.raises(BadInput, match=f"a person can't {what}"):
        console.change_all(run, table, what, RowFilter(), "ana", at_most=10, seconds=60)
    assert bench.statuses(table) == {table.words.failed: 1, table.words.due: 1}
