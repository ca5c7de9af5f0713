"""The operators' desk, and the first day of the stack: DAGs previewed, then run, on their demo data."""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from stack.api import FINISHED
from stack.settings_file import load
from tests.dags import states
from tests.live import PROBES, LiveStack
from tests.live.desk import CLEARPATH_IDS, DAG_IDS, OTHER_IDS, Desk, Run, until
from tests.live.param_values import at_the_edges
from tests.live.rows import put_off_mails

PREFIX = "clearpath_"
RENDERING = "clearpath_certificate_rendering"
# Runs of a group touch no row in common, so that their changes add up.
GROUPS = (
    ("session_expiry", "certificate_expiry", "cnrpp_expiry_alert"),
    ("email_queue_dispatch", "certificate_rendering"),
    ("lab_result_polling",),
)
# Their PDFs wait to be made, though the first rendering is over.
_LOST_FILES = """
UPDATE certificates SET pdf_path = NULL, current_pdf_path = NULL
WHERE id IN (SELECT id FROM certificates WHERE pdf_path IS NOT NULL ORDER BY id LIMIT 5)
"""

ALL_DAGS = 900
"""Seconds in which every DAG has run once, on a machine that has much else to do."""
_AHEAD = 30
"""Days that a preview may look ahead, as no run may."""
_TRIES = 3
_SLOT, _CLEAR = 900, 60
"""Seconds between the slots of the mail's DAG, and before one in which no comparison is begun."""


@pytest.fixture(scope="session")
def desk(live_stack: LiveStack) -> Desk:
    """Give the operators' alerts a mail connection of their own, and let every DAG go."""
    folder = live_stack.home.folder / "alerts"
    made = Desk(live_stack, folder)
    set_alert_connection(made)
    wanted = {*DAG_IDS, *(path.stem for path in PROBES.glob("*.py"))}
    until(f"all DAGs are read: {wanted}", lambda: wanted <= made.api.dag_ids())
    for path in PROBES.glob("*.py"):
        made.api.unpause(path.stem)
    return made


@dataclass(frozen=True)
class Previewed:
    """A group of DAGs: their previews, the real runs that followed, and all rows before and after these."""

    started: datetime
    previews: dict[str, Run]
    rows_previewed: states.Rows
    runs: dict[str, Run]
    rows_before: states.Rows
    rows_after: states.Rows
    mails: int


@dataclass(frozen=True)
class FirstDay:
    """What came of ClearPath's first runs; `early` are the previews of its DAGs before any of them ran."""

    early: dict[str, Run]
    groups: tuple[Previewed, ...]

    @property
    def runs(self) -> list[Run]:
        return [run for group in self.groups for run in group.runs.values()]


@pytest.fixture(scope="session")
def first_day(desk: Desk) -> FirstDay:
    """Let ClearPath's DAGs go: a preview takes the missed slot; then each runs for real, after a fresh preview."""
    early = {dag_id: preview_slot(desk, dag_id) for dag_id in CLEARPATH_IDS}
    desk.succeed(*early.values())
    groups = [preview_and_run(desk, [PREFIX + name for name in names]) for names in GROUPS[:-1]]
    # The lab's results make certificates; their rendering must not join in before the rows are compared.
    desk.idle(*CLEARPATH_IDS)
    desk.api.pause(RENDERING)
    groups.append(preview_and_run(desk, [PREFIX + name for name in GROUPS[-1]]))
    desk.api.unpause(RENDERING)
    desk.idle(*CLEARPATH_IDS)
    return FirstDay(early, tuple(groups))


@dataclass(frozen=True)
class OtherDay:
    """What came of the other systems' DAGs, each previewed and then run, by DAG."""

    previews: dict[str, Run]
    runs: dict[str, Run]


@pytest.fixture(scope="session")
def other_day(desk: Desk, first_day: FirstDay) -> OtherDay:
    """Preview every DAG of the other systems and run each; once it has, it is paused: some would never be idle."""
    previews: dict[str, Run] = {}
    runs: dict[str, Run] = {}
    at_work = set(OTHER_IDS)
    # ArcVest's ideas become articles one after the other: they do so beside all that follows.
    first = [dag_id for dag_id in OTHER_IDS if dag_id.startswith("arcvest_")]
    for wave in (first, sorted(at_work.difference(first))):
        previews |= {dag_id: preview_slot(desk, dag_id) for dag_id in wave}
        runs |= {dag_id: desk.start(dag_id) for dag_id in wave}
        if wave is first:
            desk.ended(*runs.values(), within=ALL_DAGS)

    def all_are_paused() -> bool:
        states = desk.states([*previews.values(), *runs.values()])
        for dag_id in sorted(at_work):
            both = {states.get(previews[dag_id]), states.get(runs[dag_id])}
            # A run that a pause falls into stays as it is until the DAG is let go again.
            if both <= FINISHED and desk.is_idle(dag_id):
                desk.api.pause(dag_id)
                at_work.remove(dag_id)
        return not at_work

    until("every DAG has run and is paused", all_are_paused, ALL_DAGS, every=0.5)
    desk.succeed(*previews.values(), *runs.values())
    return OtherDay(previews, runs)


def preview_slot(desk: Desk, dag_id: str) -> Run:
    """Preview a paused DAG in the place of the slot that it missed, which would run at once otherwise.

    It looks ahead, with its own params at their edges.
    """
    slot = desk.api.dag(dag_id)
    ahead = datetime.now(UTC) + timedelta(days=_AHEAD)
    conf = at_the_edges(desk.api, dag_id) | {"dry_run": True, "as_of": ahead.isoformat()}
    missed = slot["next_dagrun_run_after"] if slot["is_paused"] else None
    if missed and datetime.fromisoformat(missed) <= datetime.now(UTC):
        run = desk.start(dag_id, conf, logical_date=slot["next_dagrun_logical_date"])
    else:
        run = desk.start(dag_id, conf)
    desk.api.unpause(dag_id)
    return run


def preview_and_run(desk: Desk, dag_ids: Sequence[str]) -> Previewed:
    """Preview DAGs, then run them as of the same instant; the previews once more if another run fell between."""
    clearpath = desk.stack.database("clearpath")
    for _ in range(_TRIES):
        _wait_past_the_slot()
        desk.idle(*CLEARPATH_IDS)
        if RENDERING in dag_ids:
            with clearpath.begin() as connection:
                connection.execute(text(_LOST_FILES))
        put_off_mails(clearpath)
        started = datetime.now(UTC)
        conf: dict[str, Any] = {"as_of": started.isoformat()}
        rows_previewed = states.rows(clearpath)
        previews = {dag_id: desk.start(dag_id, conf | {"dry_run": True}) for dag_id in dag_ids}
        desk.succeed(*previews.values())
        rows_before, mailed = states.rows(clearpath), desk.all_mails()
        # The triggerer may be late to tell of the certificates that the demo's data made.
        if not desk.others_since(started, CLEARPATH_IDS, previews.values()):
            break
    runs = {dag_id: desk.start(dag_id, conf) for dag_id in dag_ids}
    desk.succeed(*runs.values())
    return Previewed(
        started,
        previews,
        rows_previewed,
        runs,
        rows_before,
        states.rows(clearpath),
        desk.all_mails() - mailed,
    )


def _wait_past_the_slot() -> None:
    """Wait until ClearPath's next quarter of an hour, when mail goes out by itself, is far enough off."""
    left = _SLOT - time.time() % _SLOT
    if left < _CLEAR:
        time.sleep(left + 1)


def set_connection(desk: Desk, conn_id: str, conn_type: str = "almanac_email", **fields: Any) -> None:
    """Make or replace an Airflow connection over the API; `extra` is a mapping."""
    body = {"connection_id": conn_id, "conn_type": conn_type} | fields
    body["extra"] = json.dumps(body.get("extra") or {})
    desk.admin.call("DELETE", f"/api/v2/connections/{conn_id}")
    answer = desk.admin.call("POST", "/api/v2/connections", json=body)
    assert answer.is_success, answer.text


def set_alert_connection(desk: Desk) -> None:
    """Give the operators' alerts the folder that the desk looks into."""
    extra = {"provider": "outbox", "folder": str(desk.alert_folder), "from": "Almanac <almanac@example.test>"}
    set_connection(desk, "almanac_alert_email", extra=extra)


@contextmanager
def connection(desk: Desk, conn_id: str, **fields: Any) -> Generator[None]:
    """Replace a connection of airflow_settings.yaml in here, and put it back as that file has it."""
    home = desk.stack.home
    (was,) = [c for c in load(home.settings, desk.stack.environment).connections if c.conn_id == conn_id]
    known = ("host", "port", "schema", "login", "password", "extra")
    kept = {name: value for name in known if (value := getattr(was, name))}
    try:
        set_connection(desk, conn_id, was.conn_type, **fields)
        yield
    finally:
        set_connection(desk, conn_id, was.conn_type, **kept)
