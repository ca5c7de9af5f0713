"""Rerun, kill anywhere, as-of, preview, one bad row: what every DAG keeps, with the DAGs taken from the folder."""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, MetaData, event, text

from include.job import perform
from include.preview import preview
from include.run import Database, EngineDatabase, Run
from tests.dags import states
from tests.dags.every import DagFile, dag_files
from tests.dags.generated import multiply
from tests.fakes.world import World

COPIES = 9
"""Ten of each row: more than any batch of these tests holds, fewer than a preview shows of a table."""

every_dag = pytest.mark.parametrize("dag", dag_files(), ids=str)


class Killed(BaseException):
    """The process is gone: nothing in a job may catch this."""


@dataclass
class Fate:
    """Counts everything that happens, and ends the process at one event."""

    die_at: int | None = None
    events: list[str] = field(default_factory=list)

    def tick(self, happening: str) -> None:
        self.events.append(happening)
        if len(self.events) == self.die_at:
            raise Killed(happening)

    @contextmanager
    def over(self, engine: Engine, world: World) -> Generator[None]:
        """Count every statement and commit of a database, and everything outside it."""

        def statement(conn: Any, cursor: Any, sql: str, *rest: Any) -> None:
            self.tick(f"statement {sql.strip().splitlines()[0][:60]}")

        def commit(conn: Any) -> None:
            self.tick("commit")

        event.listen(engine, "before_cursor_execute", statement)
        event.listen(engine, "commit", commit)
        world.die_by(self.tick)
        try:
            yield
        finally:
            event.remove(engine, "before_cursor_execute", statement)
            event.remove(engine, "commit", commit)
            world.die_by(lambda happening: None)


@cache
def children_first(metadata: MetaData) -> list[str]:
    """Return the names of a system's tables, each before those that it refers to."""
    return [table.name for table in reversed(metadata.sorted_tables)]


@dataclass
class Scene:
    """One database with one world around it, and the job between them."""

    dag: DagFile
    database: EngineDatabase
    now: datetime
    seed: int | None = None
    """Of a generated set; the small one without it."""

    def __post_init__(self) -> None:
        self.params: dict[str, Any] = dict(self.dag.world.PARAMS)
        with self.database.engine.begin() as connection:
            self._seed(connection)
        self._look()
        self._kept = states.kept(self.database.engine, self.seeded)
        self._set_world_anew()

    def set_anew(self) -> None:
        """Put every row and the whole world back to where they were at first."""
        tables = children_first(self.dag.tables.METADATA)
        if self._kept:
            with self.database.engine.begin() as connection:
                states.put_back(connection, self._kept, tables)
        else:
            with self.database.engine.begin() as connection:
                states.empty(connection, tables)
                self._seed(connection)
            self._look()
        self._set_world_anew()

    def _seed(self, connection: Connection) -> None:
        self.dag.world.seed(connection, self.now)
        if self.seed is not None:
            names = self.dag.world.NAMES
            multiply(connection, self.dag.tables.METADATA, names, copies=COPIES, seed=self.seed)

    def _set_world_anew(self) -> None:
        self.around: World = self.dag.world.world(self.now)
        if self.seed is not None:
            self.dag.world.grow(self.around, COPIES)

    def _look(self) -> None:
        self.seeded = states.rows(self.database.engine)
        self.known = states.known_uuids(self.seeded)

    def make_run(self, database: Database, as_of: datetime | None = None, *, given: bool = False) -> Run:
        job = self.dag.job
        settings = {name: self.dag.world.SETTINGS.get(name) or value for name, value in job.SETTINGS.items()}
        system = importlib.import_module(f"include.{self.dag.system}")
        return Run(
            job=job.NAME,
            run_id="run 1",
            as_of=as_of or self.now,
            zone=system.ZONE,
            db=getattr(system, "DATABASE", lambda db: db)(database),
            params=dict(self.params),
            settings=settings,
            as_of_given=given,
        )

    def perform(self, as_of: datetime | None = None) -> Run:
        run = self.make_run(self.database, as_of)
        perform(self.dag.job, run, self.dag.world.outside(self.dag.job, self.around))
        return run

    def time_passes(self) -> None:
        """Let a claim of the killed process grow so old that it counts as lost, where the system has such claims."""
        ages = getattr(self.dag.world, "time_passes", None)
        if ages is not None:
            with self.database.engine.begin() as connection:
                ages(connection)

    def perform_tasks(self, fate: Fate) -> None:
        """Run the steps as tasks: the one that is killed is tried again by itself, with what was handed to it."""
        run = self.make_run(self.database)
        outside = self.dag.world.outside(self.dag.job, self.around)
        for step in self.dag.job.STEPS:
            before = dict(run.handed)
            killed, handed = False, None
            try:
                handed = step(run, outside)
            except Killed:
                killed = True
            # Outside of the handler: what a later process raises has no earlier one's end for its context.
            if killed:
                self.database.engine.dispose()
                self.time_passes()
                run = self.make_run(self.database)
                run.handed.update(before)
                handed = step(run, outside)
            if handed is False:
                return
            if isinstance(handed, dict):
                run.handed.update(handed)
        assert fate.die_at is None or len(fate.events) >= fate.die_at

    def preview(self) -> dict[str, Any]:
        outside = self.dag.world.outside(self.dag.job, self.around)
        return preview(self.database.engine, self.dag.job, self.make_run, outside)

    def state(self) -> Any:
        rows = states.normalised(
            states.rows(self.database.engine), self.known, self.now, self.dag.world.BOOKKEEPING
        )
        return rows, self.around.state()


@pytest.fixture
def scene(database_of: Callable[..., EngineDatabase]) -> Callable[..., Scene]:
    """Return a function that sets a fresh scene for a DAG."""
    now = datetime.now(UTC)

    def make(dag: DagFile, timezone: str = "UTC", seed: int | None = None) -> Scene:
        return Scene(dag, database_of(dag.system, timezone), now, seed)

    return make


@every_dag
def test_the_seed_gives_it_work(dag: DagFile, scene: Callable[..., Scene]) -> None:
    """Without rows to work on, every other promise would be kept by a job that does nothing."""
    set_scene = scene(dag)
    run = set_scene.perform()
    assert states.changes(set_scene.seeded, states.rows(set_scene.database.engine))
    assert run.counts["processed"] > 0


@every_dag
def test_twice_equals_once(dag: DagFile, scene: Callable[..., Scene]) -> None:
    """Ruling 2: a second run with the same as-of leaves the database and the world as one run does."""
    set_scene = scene(dag)
    set_scene.perform()
    once = set_scene.state()
    set_scene.perform()
    assert set_scene.state() == once


def crash_points(events: list[str]) -> list[int]:
    """Return after which events, from 1, a process is to end: each kind once by what came before it, or all of them.

    A job that works through many rows repeats itself; `make crash` dies at every event all the same.
    """
    if os.environ.get("CRASH_POINTS") == "all":
        return list(range(1, len(events) + 1))
    kinds = {pair: number for number, pair in reversed([*enumerate(pairwise(["", *events]), start=1)])}
    return sorted(kinds.values())


@every_dag
def test_killed_anywhere(dag: DagFile, scene: Callable[..., Scene], record_property: Any) -> None:
    """Ruling 3, R2, E1: killed at any statement, commit or outside call and run again, it ends as one clean run."""
    one = scene(dag)
    counting = Fate()
    with counting.over(one.database.engine, one.around):
        one.perform()
    clean = one.state()
    assert len(counting.events) > 3
    tried = crash_points(counting.events)
    one.set_anew()
    assert states.rows(one.database.engine) == one.seeded, "what begins anew is not what was there at first"
    for die_at in tried:
        one.set_anew()
        fate = Fate(die_at)
        with fate.over(one.database.engine, one.around), pytest.raises(Killed):
            one.perform()
        one.database.engine.dispose()
        one.time_passes()
        one.perform()
        assert one.state() == clean, f"run again after event {die_at}: {fate.events[-1]}"
        one.set_anew()
        fate = Fate(die_at)
        with fate.over(one.database.engine, one.around):
            one.perform_tasks(fate)
        assert one.state() == clean, f"task retried after event {die_at}: {fate.events[die_at - 1]}"
    record_property(
        "crash points", f"{dag}: {len(tried)} of {len(counting.events)}, each run again and each retried"
    )


@every_dag
def test_the_session_zone_decides_nothing(dag: DagFile, scene: Callable[..., Scene]) -> None:
    """Ruling 1, T4: the same answer whatever zone the database's session is in."""
    outcomes = []
    for zone in ("UTC", "Europe/Madrid", "Pacific/Kiritimati"):
        set_scene = scene(dag, zone)
        set_scene.perform()
        counts = states.changes(set_scene.seeded, states.rows(set_scene.database.engine))
        outcomes.append((counts, set_scene.around.state()))
    assert outcomes[0] == outcomes[1] == outcomes[2]


@every_dag
def test_preview_changes_nothing(dag: DagFile, scene: Callable[..., Scene]) -> None:
    """Ruling 9: after a preview every row and the whole world are as they were."""
    set_scene = scene(dag)
    world_before = set_scene.around.state()
    set_scene.preview()
    assert states.rows(set_scene.database.engine) == set_scene.seeded
    assert set_scene.around.state() == world_before


@every_dag
@pytest.mark.parametrize("seed", [None, 1, 2, 3], ids=["small", "generated 1", "generated 2", "generated 3"])
def test_preview_equals_the_real_run(dag: DagFile, scene: Callable[..., Scene], seed: int | None) -> None:
    """Ruling 9: what a preview shows is the difference that the real run then makes."""
    set_scene = scene(dag, seed=seed)
    set_scene.around.mail.refuse.clear()
    shown = set_scene.preview()
    mailed_before = len(set_scene.around.mail.delivered)
    files_before = set(set_scene.around.storage.files)
    run = set_scene.perform()
    after = states.rows(set_scene.database.engine)

    expected = states.changes(set_scene.seeded, after)
    assert {
        t["table"]: {k: t[k] for k in ("inserted", "updated", "deleted")} for t in shown["tables"]
    } == expected
    assert shown["counts"] == dict(run.counts)
    new_mail = set_scene.around.mail.delivered[mailed_before:]
    alerts = len(set_scene.around.alerts.told)
    assert shown["messages"]["count"] == len(new_mail) + alerts
    assert {(m["to"], m["subject"]) for m in shown["messages"]["shown"]} >= {
        (m.to, m.subject) for m in new_mail
    }
    assert {f["name"] for f in shown["files"]["shown"]} == set(set_scene.around.storage.files) - files_before
    _assert_rows_equal(set_scene, shown, after)


def _assert_rows_equal(set_scene: Scene, shown: dict[str, Any], after: states.Rows) -> None:
    known = set_scene.known
    for table in shown["tables"]:
        ignored = set_scene.dag.world.BOOKKEEPING.get(table["table"], set()) | {
            "provider_message_id",
            "delivery_provider_id",
        }
        before_rows, after_rows = set_scene.seeded[table["table"]], after[table["table"]]
        changed = [
            (before_rows.get(key), after_rows.get(key))
            for key in sorted(before_rows.keys() | after_rows.keys())
            if before_rows.get(key) != after_rows.get(key)
        ]

        def comparable(before: Any, later: Any, ignored: set[str] = ignored) -> str:
            return str(
                [
                    {
                        k: _cut(v)
                        for k, v in sorted((states.plain_row(r, known, set_scene.now, ignored) or {}).items())
                    }
                    for r in (before, later)
                ]
            )

        assert sorted(comparable(c["before"], c["after"]) for c in table["changes"]) == sorted(
            comparable(before, later) for before, later in changed
        ), table["table"]


def _cut(value: Any) -> Any:
    return value[:200] if isinstance(value, str) else value


@every_dag
def test_a_preview_makes_nobody_wait(dag: DagFile, scene: Callable[..., Scene]) -> None:
    """Ruling 9, R4: a real run beside a preview is not kept from any row, and both come to their end."""
    set_scene = scene(dag)
    results: list[Any] = []

    def look() -> None:
        results.append(set_scene.preview())

    watcher = threading.Thread(target=look)
    watcher.start()
    set_scene.perform()
    watcher.join(60)
    assert results, "the preview did not end"
    alone = scene(dag)
    alone.perform()
    assert set_scene.state() == alone.state()


@every_dag
def test_one_bad_row_stops_nothing_else(dag: DagFile, scene: Callable[..., Scene]) -> None:
    """Ruling 6: a row that the database refuses to change is counted; every other row is worked on."""
    clean_scene = scene(dag)
    clean_scene.perform()
    clean = states.rows(clean_scene.database.engine)
    tried = 0
    changes = states.changes(clean_scene.seeded, clean)
    for view in states.materialised_views(clean_scene.database.engine):
        # It takes no trigger, and is refreshed as a whole: there is no row of it that could be refused.
        if changes.pop(view, None) and not changes:
            return
    if not any(changed["updated"] for changed in changes.values()):
        # What a job only adds stands or falls together; there is no row that it could fail to change.
        assert any(changed["inserted"] for changed in changes.values())
        return
    for table, changed in changes.items():
        updated = [
            key
            for key in clean_scene.seeded[table]
            if clean_scene.seeded[table][key] != clean[table].get(key) and "id" in clean[table].get(key, {})
        ]
        if changed["updated"] < 2 or not updated:
            continue
        tried += 1
        bad = scene(dag)
        refused = min(updated)
        _refuse(bad.database.engine, table, refused)
        run = bad.perform()
        after = states.rows(bad.database.engine)
        assert after[table][refused] == bad.seeded[table][refused]
        assert run.counts["failed"] > 0, table
        known = bad.known
        unit = bad.dag.world.unit
        for key in updated:
            if unit(table, clean[table][key]) == unit(table, clean[table][refused]):
                continue
            got = states.plain_row(after[table][key], known, bad.now, set())
            want = states.plain_row(clean[table][key], known, bad.now, set())
            assert got == want, f"{table} {key}"
    assert tried, "no table with two updated rows: the seed must reach this promise"


def _refuse(engine: Engine, table: str, row_id: str) -> None:
    with engine.begin() as connection:
        connection.execute(
            text(
                "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ "
                "BEGIN RAISE EXCEPTION 'this row is bad' USING ERRCODE = '23514'; END $$"
            )
        )
        connection.exec_driver_sql(
            f'CREATE TRIGGER refuse BEFORE UPDATE ON "{table}" FOR EACH ROW '
            f"WHEN (OLD.id::text = '{row_id}') EXECUTE FUNCTION refuse()"
        )


@every_dag
def test_the_as_of_decides(dag: DagFile, scene: Callable[..., Scene]) -> None:
    """Ruling 1: runs as of different days differ, however late they are made; a queue asks the database's clock."""
    early, late = scene(dag), scene(dag)
    early.perform(early.now - timedelta(days=3650))
    late.perform(late.now)
    states_of = [{t: r for t, r in one.state()[0].items() if t != "jobs_state"} for one in (early, late)]
    if dag.job.QUEUES or dag.dag_id in dag.world.DAYLESS:
        assert states_of[0] == states_of[1]
    else:
        assert states_of[0] != states_of[1]


@every_dag
def test_a_day_made_up_for_later_changes_nothing_more(dag: DagFile, scene: Callable[..., Scene]) -> None:
    """Rulings 1 and 2, T3: days run again after newer ones have run send nothing twice and undo nothing."""
    in_order, replayed = scene(dag), scene(dag)
    days = [in_order.now - timedelta(days=n) for n in (2, 1, 0)]
    for day in days:
        in_order.perform(day)
    for day in [*days, *days]:
        replayed.perform(day)
    assert replayed.state() == in_order.state()
