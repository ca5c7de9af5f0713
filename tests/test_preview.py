"""A preview shows exactly what a run would change, changes nothing, and makes nobody wait."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from sqlalchemy import Engine, text

from include import preview as module
from include.as_of import ZoneInfo
from include.effects import SHOWN, Effects
from include.errors import BadInput, Transient
from include.isolation import each_chunk
from include.mail import Batch, Message, RecordedMail
from include.preview import preview
from include.run import Database, Run, Transaction
from tests.fakes.world import FakeMail


class Outside(NamedTuple):
    """What the jobs here use of the world: mail, and a hook for a test to look in."""

    mail: Any = FakeMail()

    def in_preview(self, run: Run, effects: Effects) -> Outside:
        return Outside(RecordedMail(self.mail, effects))


def job(*steps: Callable[[Run, Any], Any], queues: tuple[str, ...] = ()) -> Any:
    """Return a job of these steps."""
    return SimpleNamespace(NAME="test", STEPS=steps, SETTINGS={}, QUEUES=queues)


def make_run(db: Database) -> Run:
    """Return the run of a preview."""
    return Run(job="test", run_id="1", as_of=datetime.now(UTC), zone=ZoneInfo("UTC"), db=db, preview=True)


def sql(statement: str, **binds: Any) -> Callable[[Run, Any], None]:
    """Return a step that runs one statement in a transaction."""

    def step(run: Run, outside: Any) -> None:
        with run.transaction() as tx:
            tx.execute(text(statement), **binds)

    return step


def look(engine: Engine, *steps: Callable[[Run, Any], Any], queues: tuple[str, ...] = ()) -> dict[str, Any]:
    """Preview a job of these steps; the result must be fit for JSON."""
    shown = preview(engine, job(*steps, queues=queues), make_run, Outside())
    return json.loads(json.dumps(shown))


def counts(shown: dict[str, Any]) -> dict[str, tuple[int, int, int]]:
    """Return what a preview counted: inserted, updated, deleted."""
    return {t["table"]: (t["inserted"], t["updated"], t["deleted"]) for t in shown["tables"]}


def content(engine: Engine) -> list[Any]:
    """Return all things."""
    with engine.begin() as connection:
        return list(connection.execute(text("SELECT * FROM thing ORDER BY id")))


@pytest.fixture
def things(empty_database: Engine) -> Engine:
    """Make a table of 3,000 things, and a small one with a key of two columns."""
    with empty_database.begin() as connection:
        connection.exec_driver_sql(
            "CREATE TABLE thing (id int PRIMARY KEY, done int NOT NULL DEFAULT 0, note text, data jsonb)"
        )
        connection.exec_driver_sql("INSERT INTO thing (id) SELECT generate_series(1, 3000)")
        connection.exec_driver_sql('CREATE TABLE "Pair Of" (a int, "B" text, v int, PRIMARY KEY (a, "B"))')
        connection.exec_driver_sql("INSERT INTO \"Pair Of\" VALUES (1, 'x', 0), (1, 'y', 0), (2, 'x', 0)")
        connection.exec_driver_sql("CREATE TABLE keyless (v int)")
    return empty_database


def test_three_thousand_changes(things: Engine) -> None:
    """Ruling 9: counts are exact however many there are; the first 200 of a table are shown, with both sides."""
    before = content(things)
    shown = look(things, sql("UPDATE thing SET done = 1, note = 'n'"))
    (table,) = shown["tables"]
    assert (table["table"], table["updated"], len(table["changes"])) == ("thing", 3000, SHOWN)
    assert table["changes"][0] == {
        "key": {"id": 1}, "kind": "update",
        "before": {"id": 1, "done": 0, "note": None, "data": None},
        "after": {"id": 1, "done": 1, "note": "n", "data": None},
    }  # fmt: skip
    assert [change["key"]["id"] for change in table["changes"]] == list(range(1, SHOWN + 1))
    assert content(things) == before


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("DELETE FROM thing WHERE id > 2750", (0, 0, 250)),
        ("INSERT INTO thing (id) SELECT generate_series(3001, 4500)", (1500, 0, 0)),
        ("UPDATE thing SET done = done", None),
        ("UPDATE thing SET done = 1 WHERE id % 10 = 0", (0, 300, 0)),
        ("SELECT * FROM thing FOR UPDATE", None),
        ("UPDATE thing SET id = id + 10000 WHERE id <= 5", (5, 0, 5)),
        (
            "WITH gone AS (DELETE FROM thing WHERE id <= 3) UPDATE thing SET done = 1 WHERE id IN (4, 5)",
            (0, 2, 3),
        ),
        ("TRUNCATE keyless", None),
    ],
)  # fmt: skip
def test_what_is_counted(things: Engine, statement: str, expected: tuple[int, int, int] | None) -> None:
    """Inserted, updated, deleted; a row that is only locked, or written as it was, is no change."""
    assert counts(look(things, sql(statement))) == ({"thing": expected} if expected else {})


def test_several_changes_of_a_row_are_one(things: Engine) -> None:
    """What counts is before the run and after it: what cancels out is no change."""
    shown = look(
        things,
        sql("UPDATE thing SET done = 1 WHERE id <= 3"),
        sql("UPDATE thing SET done = done + 1 WHERE id <= 2"),
        sql("UPDATE thing SET done = 0 WHERE id = 3"),
        sql("INSERT INTO thing (id) VALUES (9001), (9002)"),
        sql("DELETE FROM thing WHERE id IN (9001, 10)"),
        sql("INSERT INTO thing (id, note) VALUES (10, 'again')"),
        sql("INSERT INTO thing (id) VALUES (11) ON CONFLICT DO NOTHING"),
    )
    assert counts(shown) == {"thing": (1, 3, 0)}
    changed = {c["key"]["id"]: c["after"]["done"] for c in shown["tables"][0]["changes"]}
    assert changed == {1: 2, 2: 2, 10: 0, 9002: 0}


def test_a_key_of_several_columns(things: Engine) -> None:
    """Rows are told apart by the whole key, whatever its names and types are."""
    shown = look(
        things,
        sql("""UPDATE "Pair Of" SET v = 1 WHERE a = 1"""),
        sql("""DELETE FROM "Pair Of" WHERE a = 2"""),
    )
    assert counts(shown) == {"Pair Of": (0, 2, 1)}
    assert {tuple(change["key"].items()) for change in shown["tables"][0]["changes"]} == {
        (("a", 1), ("B", "x")), (("a", 1), ("B", "y")), (("a", 2), ("B", "x")),
    }  # fmt: skip


def test_a_table_without_a_key(things: Engine) -> None:
    """Its rows can't be told apart, and that is said by name."""
    with pytest.raises(Transient, match="keyless has no primary key"):
        look(things, sql("INSERT INTO keyless VALUES (1)"))


def test_what_was_rolled_back_is_not_shown(things: Engine) -> None:
    """A bad row's change, undone under its savepoint, is none; the others of its chunk are."""
    with things.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE thing ADD CHECK (id <> 7 OR done = 0)")

    def step(run: Run, outside: Any) -> None:
        update = text("UPDATE thing SET done = 1 WHERE id = ANY (CAST(:ids AS int[]))")
        each_chunk(run, list(range(1, 21)), lambda tx, ids: tx.execute(update, ids=list(ids)))

    shown = look(things, step)
    assert counts(shown) == {"thing": (0, 19, 0)}
    assert shown["counts"] == {"failed": 1}
    assert 7 not in [change["key"]["id"] for change in shown["tables"][0]["changes"]]


def test_what_others_change_meanwhile_is_not_shown(things: Engine) -> None:
    """Another session's rows, committed or not, are its own."""

    def meanwhile(run: Run, outside: Any) -> None:
        with things.begin() as connection:
            connection.exec_driver_sql("UPDATE thing SET done = 5 WHERE id BETWEEN 100 AND 110")
            connection.exec_driver_sql("INSERT INTO thing (id) VALUES (7000)")
            connection.exec_driver_sql("DELETE FROM thing WHERE id = 120")

    locker = things.connect()
    locker.exec_driver_sql("SELECT * FROM thing WHERE id BETWEEN 200 AND 300 FOR SHARE")
    try:
        shown = look(things, sql("UPDATE thing SET done = 1 WHERE id = 1"), meanwhile)
    finally:
        locker.close()
    assert counts(shown) == {"thing": (0, 1, 0)}


def test_rows_that_were_locked_by_several(things: Engine) -> None:
    """A row that carries a lock of many sessions from before is changed once, and shown once."""
    with things.connect() as one, things.connect() as two:
        one.exec_driver_sql("SELECT * FROM thing WHERE id <= 5 FOR KEY SHARE")
        two.exec_driver_sql("SELECT * FROM thing WHERE id <= 5 FOR KEY SHARE")
        shown = look(things, sql("UPDATE thing SET done = 1 WHERE id <= 5"))
    assert counts(shown) == {"thing": (0, 5, 0)}


DEEP = "{" + '"a": ' + "[" * 5_000 + "]" * 5_000 + "}"
APPLICATIONS_OWN = [
    ("ALTER TABLE thing ADD extra json DEFAULT '{\"a\":  1}'", "extra", {"a": 1}),
    ("ALTER TABLE thing ADD extra json DEFAULT '\"\\u0000\"'", "extra", r'"\u0000"'),
    ("ALTER TABLE thing ADD extra xml", "extra", None),
    ("ALTER TABLE thing ADD place point DEFAULT '(1,2)'", "place", "(1,2)"),
    ("ALTER TABLE thing ADD twice int GENERATED ALWAYS AS (done * 2) STORED", "twice", 2),
    ("ALTER TABLE thing ADD n int DEFAULT 5", "n", 5),
    ("ALTER TABLE thing ADD o int DEFAULT 5", "o", 5),
    ("ALTER TABLE thing ADD t int DEFAULT 5", "t", 5),
    ("""ALTER TABLE thing ADD "100 %% o'clock :x" int DEFAULT 5""", "100 % o'clock :x", 5),
    ("ALTER TABLE thing ADD n bigint GENERATED ALWAYS AS IDENTITY", "n", 1),
    (f"UPDATE thing SET data = '{DEEP}' WHERE id = 1", "data", f"{DEEP[:300]}… ({len(DEEP)} characters)"),
    (f"UPDATE thing SET data = '{'[' * 60}{']' * 60}' WHERE id = 1", "data", "[" * 60 + "]" * 60),
]


@pytest.mark.parametrize("queues", [(), ("thing",)], ids=["table", "queue"])
@pytest.mark.parametrize(("definition", "column", "shown_as"), APPLICATIONS_OWN)
def test_columns_of_the_applications_own(
    things: Engine, queues: tuple[str, ...], definition: str, column: str, shown_as: Any
) -> None:
    """A table that was taken over may have any type, computed columns and any names; the result can be kept."""
    with things.begin() as connection:
        connection.exec_driver_sql(definition)
    shown = look(things, sql("UPDATE thing SET done = 1 WHERE id < 3"), queues=queues)
    assert counts(shown) == {"thing": (0, 2, 0)}
    assert shown["tables"][0]["changes"][0]["after"][column] == shown_as
    with things.connect() as connection:
        connection.execute(text("SELECT CAST(:shown AS jsonb)"), {"shown": json.dumps(shown)})


@pytest.mark.parametrize("queues", [(), ("thing",)], ids=["table", "queue"])
def test_a_change_of_what_has_no_equality(things: Engine, queues: tuple[str, ...]) -> None:
    """A JSON that is only written otherwise, or a number with more noughts, is the same; another value is a change."""
    with things.begin() as connection:
        connection.exec_driver_sql(
            "ALTER TABLE thing ADD extra json DEFAULT '{}', ADD price numeric DEFAULT 1, ADD place point"
        )
    shown = look(
        things,
        sql("UPDATE thing SET extra = '{ }' WHERE id = 1"),
        sql("UPDATE thing SET price = 1.00 WHERE id = 2"),
        sql("UPDATE thing SET extra = '[]' WHERE id = 3"),
        sql("UPDATE thing SET place = '(1,2)' WHERE id = 4"),
        queues=queues,
    )
    assert [change["key"] for change in shown["tables"][0]["changes"]] == [{"id": 3}, {"id": 4}]


def test_a_key_of_many_digits(empty_database: Engine) -> None:
    """A row is found again by its key to the last digit."""
    with empty_database.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE thing (id numeric PRIMARY KEY, done int)")
        connection.exec_driver_sql("INSERT INTO thing VALUES (0.12345678901234567890123, 0)")
    assert counts(look(empty_database, sql("UPDATE thing SET done = 1"))) == {"thing": (0, 1, 0)}


def test_long_values_are_cut(things: Engine) -> None:
    """A preview is no copy of the table."""
    shown = look(things, sql("UPDATE thing SET note = repeat('x', 5000) WHERE id = 1"))
    note = shown["tables"][0]["changes"][0]["after"]["note"]
    assert note.endswith("(5000 characters)")
    assert len(note) < 400


def test_messages_are_recorded(things: Engine) -> None:
    """What would leave the database is listed and counted, and nothing of it leaves."""

    def send(run: Run, outside: Any) -> None:
        messages = tuple(Message("s", f"{n}@x.test", f"Subject {n}", "body") for n in range(250))
        (answer,) = outside.mail.send([Batch("k", messages)])
        run.count("sent", len(answer.outcomes))
        run.note("a note")
        run.state = "deferred"

    real = FakeMail()
    shown = preview(things, job(send), make_run, Outside(real))
    assert (shown["messages"]["count"], len(shown["messages"]["shown"])) == (250, SHOWN)
    assert shown["messages"]["shown"][0] == {"to": "0@x.test", "subject": "Subject 0"}
    assert (real.requests, real.delivered) == (0, [])
    assert (shown["counts"], shown["notes"], shown["state"]) == ({"sent": 250}, ["a note"], "deferred")


def test_a_step_that_ends_the_job(things: Engine) -> None:
    """A job that stops at a step stops there in its preview."""
    shown = look(things, lambda run, outside: False, sql("DELETE FROM thing"))
    assert shown["tables"] == []


def test_an_error_of_the_job_passes(things: Engine) -> None:
    """What would fail a run fails its preview, and nothing is left of it."""

    def step(run: Run, outside: Any) -> None:
        with run.transaction() as tx:
            tx.execute(text("DELETE FROM thing"))
        raise BadInput("certificate_id: there is no certificate 7")

    with pytest.raises(BadInput, match="no certificate 7"):
        look(things, step)
    assert len(content(things)) == 3000


# Nobody waits


def test_a_waiting_session_goes_first(things: Engine) -> None:
    """Ruling 9: an application's UPDATE of a row that a preview has changed waits for an instant."""
    waited: list[float] = []
    attempts: list[int] = []

    def update() -> None:
        with things.begin() as connection:
            begin = time.monotonic()
            connection.exec_driver_sql("UPDATE thing SET note = 'application' WHERE id = 5")
            waited.append(time.monotonic() - begin)

    application = threading.Thread(target=update)

    def hold(run: Run, outside: Any) -> None:
        attempts.append(1)
        if len(attempts) == 1:
            application.start()
        with run.transaction() as tx:
            # Long enough that only giving way explains a short wait.
            tx.execute(text("SELECT pg_sleep(:seconds)"), seconds=10 if len(attempts) == 1 else 0)

    began = time.monotonic()
    shown = look(things, sql("UPDATE thing SET done = 1 WHERE id <= 10"), hold)
    application.join(30)
    assert counts(shown) == {"thing": (0, 10, 0)}
    assert len(attempts) == 2
    assert waited[0] < 3
    assert time.monotonic() - began < 9
    assert content(things)[4].note == "application"
    # The session that was ended is not handed to the next user of the pool.
    for _ in range(5):
        assert len(content(things)) == 3000


def test_a_held_row_does_not_hold_up_the_preview_for_long(
    things: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that a session holds for minutes: a second's wait, another try, then an error to try again later."""
    monkeypatch.setattr(module, "TRIES", 2)
    with things.connect() as application:
        application.exec_driver_sql("UPDATE thing SET done = 9 WHERE id = 5")
        began = time.monotonic()
        with pytest.raises(Transient, match="lock timeout"):
            look(things, sql("UPDATE thing SET done = 1"))
        assert 2 <= time.monotonic() - began < 10
        application.rollback()
    assert counts(look(things, sql("UPDATE thing SET done = 1"))) == {"thing": (0, 3000, 0)}


def test_a_row_that_changes_under_the_preview(things: Engine) -> None:
    """A serialization failure is another try, on a fresh look at the rows."""
    attempts: list[int] = []

    def rival(run: Run, outside: Any) -> None:
        attempts.append(1)
        if len(attempts) == 1:
            with things.begin() as connection:
                connection.exec_driver_sql("UPDATE thing SET note = 'rival' WHERE id = 5")

    shown = look(things, rival, sql("UPDATE thing SET done = 1 WHERE id = 5"))
    assert len(attempts) == 2
    assert shown["tables"][0]["changes"][0]["before"]["note"] == "rival"


def test_a_chunk_that_lost_is_not_tried_again_in_its_snapshot(things: Engine) -> None:
    """A real run tries a chunk again in a new transaction; here that would be the old snapshot, ten times over."""
    looks: list[int] = []

    def rival(run: Run, outside: Any) -> None:
        looks.append(0)
        if len(looks) == 1:
            with things.begin() as connection:
                connection.exec_driver_sql("UPDATE thing SET note = 'rival' WHERE id = 5")

    def change(tx: Transaction, ids: Sequence[int]) -> None:
        looks[-1] += 1
        tx.execute(text("UPDATE thing SET done = 1 WHERE id = ANY(:ids)"), ids=list(ids))

    shown = look(things, rival, lambda run, outside: each_chunk(run, [5], change))
    assert looks == [1, 1]
    assert counts(shown) == {"thing": (0, 1, 0)}


def test_a_row_that_lost_is_no_bad_row(things: Engine) -> None:
    """A step that goes on after a row's error, as with jobs of a queue, makes no preview of what a rival has spoilt."""
    looks: list[int] = []

    def rival(run: Run, outside: Any) -> None:
        looks.append(1)
        if len(looks) == 1:
            with things.begin() as connection:
                connection.exec_driver_sql("UPDATE thing SET note = 'rival' WHERE id = 5")

    def goes_on(run: Run, outside: Any) -> None:
        for number in (5, 6):
            try:
                sql("UPDATE thing SET done = 1 WHERE id = :id", id=number)(run, outside)
            except Transient as error:
                run.row_failed(number, error)

    shown = look(things, rival, goes_on)
    assert len(looks) == 2
    assert counts(shown) == {"thing": (0, 2, 0)}
    assert not shown["counts"].get("failed")


def test_the_limits_of_the_session(things: Engine) -> None:
    """Lock timeout 1 s, and a bound on every statement; a real run's sessions keep their own."""
    seen: dict[str, str] = {}

    def step(run: Run, outside: Any) -> None:
        with run.transaction() as tx:
            for name in ("lock_timeout", "statement_timeout", "transaction_isolation"):
                seen[name] = tx.value(text("SELECT current_setting(:name)"), name=name)

    look(things, step)
    assert seen == {
        "lock_timeout": "1s",
        "statement_timeout": "2min",
        "transaction_isolation": "repeatable read",
    }
    step(make_run_on(things), None)
    assert (seen["lock_timeout"], seen["transaction_isolation"]) == ("0", "read committed")


def make_run_on(engine: Engine) -> Run:
    """Return a real run."""
    from include.run import EngineDatabase  # noqa: PLC0415 - of this one helper

    return make_run(EngineDatabase(engine))


CLAIM = "SELECT id FROM thing WHERE done = 0 ORDER BY id LIMIT 5 FOR UPDATE SKIP LOCKED"


def test_a_queue_is_previewed_without_locking_it(things: Engine) -> None:
    """A real worker skips rows that are locked: beside a preview it must find every row, and change it at once."""
    claimed: list[list[int]] = []

    def worker(run: Run, outside: Any) -> None:
        with things.begin() as connection:
            ids = list(connection.exec_driver_sql(CLAIM).scalars())
            claimed.append(ids)
            connection.execute(
                text("UPDATE thing SET done = 7 WHERE id = ANY (CAST(:i AS int[]))"), {"i": ids}
            )

    shown = look(
        things, sql("UPDATE thing SET done = 1 WHERE id <= 100"), worker, sql("DELETE FROM thing WHERE id = 3000"),
        queues=("thing",),
    )  # fmt: skip
    assert claimed == [[1, 2, 3, 4, 5]]
    # The copy was made before the worker came, and its rows are compared with what is there now.
    assert counts(shown)["thing"][2] == 1
    assert content(things)[0].done == 7
    assert len(content(things)) == 3000


def test_a_queue_with_an_identity(empty_database: Engine) -> None:
    """Rows that a preview adds to a queue's copy take no numbers from the queue itself."""
    with empty_database.begin() as connection:
        connection.exec_driver_sql(
            "CREATE TABLE queue (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v text UNIQUE)"
        )
        connection.exec_driver_sql("INSERT INTO queue (v) VALUES ('a'), ('b')")
    shown = look(empty_database, sql("INSERT INTO queue (v) VALUES ('c')"), queues=("queue",))
    assert counts(shown) == {"queue": (1, 0, 0)}
    assert shown["tables"][0]["changes"][0]["after"] == {"id": 3, "v": "c"}
    with empty_database.begin() as connection:
        assert connection.exec_driver_sql("INSERT INTO queue (v) VALUES ('d') RETURNING id").scalar() == 3


def test_a_copied_queue_keeps_its_triggers(things: Engine) -> None:
    """What a queue's triggers write beside it, such as an audit trail, is part of what a preview shows."""
    with things.begin() as connection:
        connection.exec_driver_sql('CREATE TABLE "Trail" (id int PRIMARY KEY, was text, what text)')
        connection.execute(
            text(
                "CREATE FUNCTION trail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                'INSERT INTO "Trail" SELECT n.id, o.note\\:\\:text, n.note FROM old_rows o JOIN new_rows n USING (id); '
                "RETURN NULL; END $$"
            )
        )
        connection.exec_driver_sql(
            "CREATE TRIGGER trail AFTER UPDATE ON thing REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows "
            "FOR EACH STATEMENT EXECUTE FUNCTION trail()"
        )
        connection.exec_driver_sql(
            "CREATE FUNCTION never() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$"
        )
        connection.exec_driver_sql(
            "CREATE TRIGGER guard BEFORE UPDATE ON thing FOR EACH ROW WHEN (NEW.note = 'a: :b %% c') "
            "EXECUTE FUNCTION never()"
        )
    change = sql("UPDATE thing SET note = 'kept' WHERE id <= 3")
    refused = sql("UPDATE thing SET note = CAST(:note AS text) WHERE id = 9", note="a: :b % c")
    shown = look(things, change, refused, queues=("thing",))
    assert counts(shown) == {"Trail": (3, 0, 0), "thing": (0, 3, 0)}
