"""`make demo`: the whole platform on demo data, every DAG or one system's run once, and what came of it."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import time
from collections.abc import Generator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any

from sqlalchemy import create_engine, select

from include.platform.tables import RUN_SUMMARY
from stack.api import FINISHED, Airflow, Refused
from stack.environment import CONSOLE, database_uri
from stack.errors import StackError
from stack.home import Home
from stack.supervisor import Stack, Stopped, ends_on_signals
from stack.terminal import progress, say, table

_PARSED_WITHIN = 120.0
_RUNS_WITHIN = 600.0


PREVIEWED = "clearpath_session_expiry"
AHEAD = timedelta(days=365)
"""What the demo proposes to preview: the runs have left nothing that is due now, but much will be in a year."""


def demo(home: Home, *, stay: bool, fresh: bool = False, system: str | None = None) -> int:
    """Run the demo; with `stay`, keep the stack up until Ctrl-C. Returns the exit code.

    `fresh` throws away the data of an earlier demo, of which little is left to do. With a `system`, its DAGs
    alone are run.

    Raises:
        StackError: there is no such system.
    """
    dag_ids = dags_of_folder(home, system)
    asked = os.environ | {"LAB_INTEGRATION_MODEL": "api", "ARCVEST_WORKER_SECONDS": "20"}
    done = False
    code = 1
    try:
        with ends_on_signals(), _ending(Stack(home, asked)) as stack:
            stack.start(demo_data=True, fresh=fresh)
            code = run_all(stack, dag_ids, stay=stay)
            done = True
            if stay:
                say("The stack stays up until Ctrl-C.")
                stack.watch()
    except Stopped:
        # Ctrl-C is how a demo that is done ends; before that, it cuts one short.
        return code if done else 130
    return code


def run_all(stack: Stack, dag_ids: Sequence[str], *, stay: bool) -> int:
    """Run each of the DAGs once and show what came of it; return 0 if all went well.

    `stay` says that the stack stays up, so that it is of use to say how to reach it.
    """
    with stack.api() as api:
        _until_parsed(api, dag_ids, stack.began)
        runs = {dag_id: _trigger(api, dag_id, params_of(stack.home, dag_id)) for dag_id in dag_ids}
        progress(f"{len(runs)} {'DAG is' if len(runs) == 1 else 'DAGs are'} triggered")
        if stay:
            _welcome(stack)
        states = _follow(stack, api, runs)
        rows = _summaries(stack, runs)
    say()
    table(
        ["DAG", "state", "seconds", "counts"],
        [_row(dag_id, states[dag_id], rows.get(dag_id)) for dag_id in runs],
    )
    for dag_id in runs:
        for note in (rows.get(dag_id) or {}).get("notes", []):
            say(f"  {dag_id}: {note}")
    say()
    _farewell(stack, stay=stay)
    failed = [dag_id for dag_id, state in states.items() if state != "success"]
    missing = [dag_id for dag_id in runs if dag_id not in rows]
    for dag_id in failed:
        say(f"{dag_id} {states[dag_id]}: see {stack.home.logs / 'tasks' / f'dag_id={dag_id}'}")
    for dag_id in missing:
        say(f"{dag_id} left no summary in the database almanac")
    return 1 if failed or missing else 0


def _trigger(api: Airflow, dag_id: str, params: Mapping[str, Any]) -> str:
    """Ask for a run of a paused DAG as of now, let it go, and return the run's id.

    A DAG that is let go makes up for its latest missed slot at once. The run takes that slot's place, or
    there would be two.
    """
    now = datetime.now(UTC)
    slot = api.dag(dag_id)
    missed = slot["next_dagrun_run_after"]
    run_id = None
    if missed and datetime.fromisoformat(missed) <= now:
        as_of = {**params, "as_of": now.isoformat()}
        try:
            run_id = api.trigger(dag_id, as_of, logical_date=slot["next_dagrun_logical_date"])
        except Refused as error:
            # An earlier run has that place already, so nothing is made up for.
            if error.status != HTTPStatus.CONFLICT:
                raise
    if run_id is None:
        run_id = api.trigger(dag_id, params)
    api.unpause(dag_id)
    return run_id


def params_of(home: Home, dag_id: str) -> Mapping[str, Any]:
    """Return what the demo gives a DAG: the entry in PARAMS of its system's demo data, if there is one."""
    (file,) = (home.project / "dags").glob(f"*/{dag_id}.py")
    name = f"include.{file.parent.name}.demo"
    if importlib.util.find_spec(name) is None:
        return {}
    return getattr(importlib.import_module(name), "PARAMS", {}).get(dag_id, {})


def dags_of_folder(home: Home, system: str | None = None) -> list[str]:
    """Return the ids of the DAGs in the dags/ folder, or of one system: each file is named for the one it holds."""
    folder = home.project / "dags"
    files = [file for file in folder.glob("*/*.py") if not file.stem.startswith("_")]
    systems = sorted({file.parent.name for file in files})
    if not files:
        raise StackError(f"{folder}: holds no DAG")
    if system is not None and system not in systems:
        raise StackError(f"no system {system!r}; say SYSTEM= one of {', '.join(systems)}")
    return sorted(file.stem for file in files if system in (None, file.parent.name))


@contextlib.contextmanager
def _ending(stack: Stack) -> Generator[Stack]:
    """End the stack however its use ends, and say so; what never began needs no word."""
    began = False
    try:
        with stack:
            try:
                yield stack
            finally:
                began = stack.holds_home
                if began:
                    progress("stopping")
    finally:
        if began and not stack.holds_home:
            progress("stopped: no process is left")


def _until_parsed(api: Airflow, dag_ids: Sequence[str], since: datetime) -> None:
    """Wait until Airflow has read the files as they are now: what it knows may be of an earlier start."""
    deadline = time.monotonic() + _PARSED_WITHIN
    missing = set(dag_ids)
    while missing and time.monotonic() < deadline:
        errors = api.import_errors(since)
        if errors:
            for file, error in errors.items():
                say(f"{file}: {error}")
            raise StackError(f"{len(errors)} DAG files don't load; see above")
        missing = set(dag_ids) - api.dag_ids(since)
        time.sleep(0.2)
    if missing:
        late = ", ".join(sorted(missing))
        raise StackError(f"Airflow has not read these DAGs after {_PARSED_WITHIN:.0f} s: {late}")


def _follow(stack: Stack, api: Airflow, runs: Mapping[str, str]) -> dict[str, str]:
    """Show how the runs go until all have ended; return each one's last state."""
    deadline = time.monotonic() + _RUNS_WITHIN
    shown: dict[str, str] = {}
    states: dict[str, str] = {}
    while len(states) < len(runs):
        stack.restart_the_dead()
        for dag_id, run_id in runs.items():
            if dag_id in states:
                continue
            state = api.run(dag_id, run_id)["state"]
            if state in FINISHED:
                states[dag_id] = state
            line = _line(dag_id, state, api.tasks(dag_id, run_id))
            if shown.get(dag_id) != line:
                shown[dag_id] = line
                progress(line)
        if time.monotonic() > deadline:
            late = ", ".join(sorted(set(runs) - set(states)))
            raise StackError(
                f"not finished after {_RUNS_WITHIN:.0f} s: {late}; see {stack.home.logs / 'tasks'}"
            )
        time.sleep(0.3)
    return states


def _line(dag_id: str, state: str, tasks: list[dict[str, Any]]) -> str:
    done = sum(task["state"] in {"success", "failed", "skipped", "upstream_failed"} for task in tasks)
    return f"{dag_id:<46} {state:<8} {done}/{len(tasks)} tasks"


def _summaries(stack: Stack, runs: Mapping[str, str]) -> dict[str, Mapping[str, Any]]:
    engine = create_engine(database_uri(stack.environment, "almanac", "postgresql+psycopg"))
    try:
        with engine.connect() as connection:
            wanted = select(RUN_SUMMARY).where(RUN_SUMMARY.c.run_id.in_(runs.values()))
            rows = connection.execute(wanted).mappings().all()
    finally:
        engine.dispose()
    return {row["dag_id"]: row for row in rows if runs.get(row["dag_id"]) == row["run_id"]}


def _row(dag_id: str, state: str, summary: Mapping[str, Any] | None) -> list[str]:
    if summary is None:
        return [dag_id, state, "-", "no summary"]
    # What a run worked on comes first, what became of it after that.
    sorted_counts = sorted(summary["counts"].items(), key=lambda item: (item[0] != "processed", item[0]))
    counts = ", ".join(f"{name} {number}" for name, number in sorted_counts)
    return [
        dag_id,
        summary["state"] if state == "success" else state,
        _seconds(summary["started_at"], summary["ended_at"]),
        counts or "nothing to do",
    ]


def _seconds(start: datetime, end: datetime | None) -> str:
    return f"{(end - start).total_seconds():.1f}" if end else "-"


def _welcome(stack: Stack) -> None:
    environment = stack.environment
    say(f"Console:  {environment['ALMANAC_URL']}{CONSOLE}")
    say(f"Login:    {environment['ALMANAC_LOGIN']} / {environment['ALMANAC_PASSWORD']}")


def _farewell(stack: Stack, *, stay: bool) -> None:
    mails = sum(1 for _ in stack.home.outbox.rglob("*.eml"))
    say(f"Mail:     {mails} .eml files in {stack.home.outbox}")
    if stay:
        _welcome(stack)
        say(f"Preview:  trigger {PREVIEWED} with Preview only ticked and As of {_ahead()}; as of now")
        say("          all is done, and a day older than these runs undoes nothing of it")
        say(f"More:     make env (the database URIs, two further logins), logs in {stack.home.logs}")
    else:
        say("Look:     make up starts this again without running anything, make env says how to log in")
    say("Again:    make demo goes on with this data, make demo FRESH=1 makes it anew")


def _ahead() -> str:
    """Return the instant that the demo proposes to preview as of, as the form takes it."""
    return f"{datetime.now(UTC) + AHEAD:%Y-%m-%dT00:00:00Z}"
