"""Every system's queues: how each stands, its rows and their lives, and what people may do about them."""

from __future__ import annotations

import contextvars
import importlib
import importlib.util
import logging
import pkgutil
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from airflow.api_fastapi.core_api.security import GetUserDep
from airflow.api_fastapi.logging.decorators import action_logging
from fastapi import APIRouter, Depends, Form, HTTPException, Query, Request, status
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from sqlalchemy.exc import DataError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

import include
from console.databases import Databases, ReadOnly
from console.guards import SESSION_COOKIE, form_token, may, meant, new_session, signed_in
from console.rendering import link, one_of, render
from console.values import shown
from hooks.connections import UnknownConnection
from include import odd_json
from include.errors import AlmanacError, BadInput, Transient
from include.platform.console import known_runs
from include.queues import console
from include.queues.console import ACTIONS, Place, RowDetail, RowFilter, Standing
from include.queues.table import QueueTable
from include.queues.watched import WatchedQueue
from include.run import Database, Run, Transaction, row_error

ALMANAC = "almanac_db"
CHANGE_SECONDS = 20.0
"""How long one request changes rows; what is left is asked for again."""

_FEW_CAUSES, _MANY_CAUSES = 5, 20
_LONGEST_WORDS = 200

log = logging.getLogger(__name__)

router = APIRouter(prefix="/queues", dependencies=[signed_in()])

Text = Annotated[str, Query()]


@dataclass(frozen=True, slots=True)
class Found:
    """A queue of a system; its `name` is what its address has."""

    system: str
    title: str
    watched: WatchedQueue

    @property
    def table(self) -> QueueTable:
        return self.watched.table

    @property
    def connection(self) -> str:
        return f"{self.system}_db"

    @property
    def path(self) -> str:
        return f"/queues/{self.name}"

    def seen(self, db: Database) -> Database:
        """Return the database as the system's own jobs see it: where row-level security is forced, in a role."""
        as_jobs: Callable[[Database], Database] | None = getattr(
            importlib.import_module(f"include.{self.system}"), "DATABASE", None
        )
        return db if as_jobs is None else as_jobs(db)

    @property
    def name(self) -> str:
        return f"{self.system}.{self.table.name}"


@dataclass(frozen=True, slots=True)
class Offer:
    """What a person may do with a number of rows, as the page says it."""

    what: str
    rows: int


@dataclass(frozen=True, slots=True)
class Said:
    """What a page is told of a change that led to it: `changed` rows, and `left` that were asked for too."""

    did: Text = ""
    changed: Annotated[int, Query(ge=0)] = 0
    left: Annotated[int, Query(ge=0)] = 0


NOTHING = Said()


@cache
def all_queues() -> tuple[Found, ...]:
    """Return the queues of every system, by system: what its `queues` module lists."""
    found: list[Found] = []
    for package in pkgutil.iter_modules(include.__path__):
        name = f"include.{package.name}.queues"
        if not package.ispkg or importlib.util.find_spec(name) is None:
            continue
        module = importlib.import_module(name)
        found += [Found(package.name, module.TITLE, watched) for watched in module.QUEUE_TABLES]
    return tuple(found)


def readable(queue: str, user: GetUserDep) -> Found:
    """Return the queue of an address, for who may read the runs of its DAGs."""
    found = next((one for one in all_queues() if one.name == queue), None)
    if found is None:
        raise HTTPException(status.HTTP_404_NOT_FOUND, f"There is no queue {queue}.")
    if not may("GET", found.watched.dags, user):
        raise HTTPException(status.HTTP_403_FORBIDDEN, "Forbidden")
    return found


Readable = Annotated[Found, Depends(readable)]


def action(what: str, queue: Readable) -> str:
    """Return what is asked for, where the queue's table lets a person do it."""
    if what not in ACTIONS or what not in queue.table.people_may:
        raise HTTPException(status.HTTP_404_NOT_FOUND, f"Nobody can {what} rows of {queue.table.name}.")
    return what


Action = Annotated[str, Depends(action)]


def changes(queue: Readable, user: GetUserDep) -> None:
    """Let in who may trigger the queue's DAGs."""
    if not may("POST", queue.watched.dags, user):
        raise HTTPException(status.HTTP_403_FORBIDDEN, "Forbidden")


def wanted(
    queue: Readable, row_status: Annotated[str, Query(alias="status")] = "", kind: Text = "",
    words: Text = "", cause: Text = "",
) -> RowFilter:  # fmt: skip
    """Read the filter of an address. Raises BadInput."""
    if len(words) > _LONGEST_WORDS:
        raise BadInput(f"words: {len(words)} characters are too many, {_LONGEST_WORDS} is the most")
    return RowFilter(
        status=one_of(row_status, tuple(queue.table.all_words()), "status"),
        kind=kind or None,
        words=words.strip() or None,
        cause=cause or None,
    )


Wanted = Annotated[RowFilter, Depends(wanted)]


@router.get("")
def overview(request: Request, user: GetUserDep) -> HTMLResponse:
    """Show how every queue stands that the user may read; one that is out of reach says so."""
    queues = [queue for queue in all_queues() if may("GET", queue.watched.dags, user)]
    return render(
        request,
        "queues.html",
        systems=_by_system(queues, _standings(request.app.state.databases, queues)),
        ended=ended,
        badge_of=badge_of,
        most_failures=console.MOST_FAILURES,
    )


@router.get("/{queue}")
def rows(
    request: Request,
    queue: Readable,
    wanted: Wanted,
    user: GetUserDep,
    after: Text = "",
    after_key: Text = "",
    said: Annotated[Said, Depends()] = NOTHING,
) -> HTMLResponse:
    """Show one queue: how it stands, failures by their cause, and its rows, the latest planned first."""
    table = queue.table
    with reading(request.app.state.databases, queue) as tx:
        standing = console.standing(tx, table, _MANY_CAUSES)
        kinds = console.kinds(tx, table)
        listed = console.listed(tx, table, wanted, Place(after, after_key) if after_key else None)
        matching = console.matching(tx, table, wanted)
    return render(
        request,
        "queue.html",
        queue=queue,
        standing=standing,
        ended=ended,
        kinds=[one.kind for one in kinds],
        listed=listed,
        matching=sum(matching.values()),
        wanted=wanted,
        offers=_offers(table, matching) if may("POST", queue.watched.dags, user) else [],
        did=one_of(said.did, ACTIONS, "did"),
        said=said,
        first_page=not after_key,
        badge_of=badge_of,
        most_failures=console.MOST_FAILURES,
        filters=_filters(wanted),
    )


@router.get("/{queue}/row")
def row(request: Request, queue: Readable, user: GetUserDep, key: Text = "", did: Text = "") -> HTMLResponse:
    """Show one row: its life from the day it was enqueued, and its data."""
    found = _row(request, queue, key)
    may_change = may("POST", queue.watched.dags, user)
    session = request.cookies.get(SESSION_COOKIE) or new_session()
    columns = _columns(found)
    return render(
        request,
        "queue_row.html",
        session=session,
        queue=queue,
        found=found,
        created=_instant(columns.get(queue.watched.created or "")),
        data=_data(queue, columns) if columns else None,
        runs=_runs(request, queue, found),
        actions=[
            what
            for what in ACTIONS
            if may_change
            and what in queue.table.people_may
            and console.acted_on(queue.table, what) == found.row.row_status
        ],
        did=one_of(did, ACTIONS, "did"),
        badge_of=badge_of,
        run_of=run_of,
        form_token=form_token(session, user),
    )


@router.post(
    "/{queue}/row/{what}",
    dependencies=[Depends(changes), Depends(meant), Depends(action_logging("console_change_queue_row"))],
)
def change_row(request: Request, queue: Readable, what: Action, user: GetUserDep, key: Text = "") -> Response:
    """Cancel, retry or requeue one row, in the user's name."""
    found = _row(request, queue, key)
    with writable(request.app.state.databases, queue).transaction() as tx:
        changed = console.change(tx, queue.table, what, [found.row.row_key], user.get_name())
    if not changed:
        now = _row(request, queue, key).row.row_status
        raise HTTPException(
            status.HTTP_409_CONFLICT,
            f"The row {key} is {now} now. To {what} is for rows that are {console.acted_on(queue.table, what)}.",
        )
    return _back(request, f"{queue.path}/row", key=key, did=what)


@router.get("/{queue}/all/{what}", dependencies=[Depends(changes)])
def confirm(
    request: Request, queue: Readable, what: Action, wanted: Wanted, user: GetUserDep
) -> HTMLResponse:
    """Ask whether all rows that match are meant, and say how many they are."""
    with reading(request.app.state.databases, queue) as tx:
        matching = console.matching(tx, queue.table, wanted)
    session = request.cookies.get(SESSION_COOKIE) or new_session()
    return render(
        request,
        "queue_confirm.html",
        session=session,
        queue=queue,
        what=what,
        acted_on=console.acted_on(queue.table, what),
        number=matching.get(console.acted_on(queue.table, what), 0),
        wanted=wanted,
        filters=_filters(wanted),
        form_token=form_token(session, user),
    )


@router.post(
    "/{queue}/all/{what}",
    dependencies=[Depends(changes), Depends(meant), Depends(action_logging("console_change_queue_rows"))],
)
def change_all(
    request: Request,
    queue: Readable,
    what: Action,
    wanted: Wanted,
    user: GetUserDep,
    number: Annotated[int, Form(ge=0)],
) -> Response:
    """Cancel, retry or requeue what matches, in the user's name: no more rows than were agreed to."""
    now = datetime.now(UTC)
    run = Run(
        job=f"console {what}",
        run_id=f"console__{now.isoformat()}",
        as_of=now,
        zone=ZoneInfo("UTC"),
        db=writable(request.app.state.databases, queue),
        log=log,
    )
    name = user.get_name()
    console.change_all(run, queue.table, what, wanted, name, at_most=number, seconds=CHANGE_SECONDS)
    changed = run.counts["changed"]
    log.info("console: %s: %s by %s: %s of %s rows", queue.path, what, name, changed, number)
    return _back(
        request, queue.path, **_filters(wanted), did=what, changed=str(changed), left=str(number - changed)
    )


def ended(queue: Found, standing: Standing) -> list[tuple[str, int, int]]:
    """Return the ways in which rows end, with how many did in the last hour and the last day."""
    words = queue.table.words
    ends = [word for word in (words.done, words.failed, words.cancelled) if word]
    return [(word, *standing.ended.get(word, (0, 0))) for word in ends]


def badge_of(queue: Found, word: str) -> str:
    """Return the look of a status word's badge."""
    words = queue.table.words
    return {words.done: "good", words.failed: "bad", words.claimed: "info"}.get(word, "calm")


def run_of(owner: str | None) -> str:
    """Return the run that an owner's name begins with; see `new_owner`."""
    return (owner or "").rpartition(" ")[0]


@contextmanager
def reading(databases: Databases, queue: Found) -> Generator[Transaction]:
    """Open a transaction that can only read the queue."""
    with queue.seen(ReadOnly(databases, queue.connection)).transaction() as tx:
        yield tx


def writable(databases: Databases, queue: Found) -> Database:
    """Return the database for what a person changes of the queue."""
    return queue.seen(databases.writable(queue.connection))


def _standings(databases: Databases, queues: Sequence[Found]) -> list[Standing | str]:
    """Return how each queue stands, or why that can't be said; all are asked at once, so one wait is the longest."""

    def ask(queue: Found) -> Standing | str:
        try:
            with reading(databases, queue) as tx:
                return console.standing(tx, queue.table, _FEW_CAUSES)
        except PoolTimeout:
            return "Too many pages are being read at once."
        except (AlmanacError, DBAPIError) as error:
            log.warning("console: %s can't be shown: %s", queue.path, row_error(error))
            return row_error(error)

    if not queues:
        return []
    with ThreadPoolExecutor(len(queues)) as pool:
        asked = [pool.submit(contextvars.copy_context().run, ask, queue) for queue in queues]
        return [one.result() for one in asked]


def _by_system(
    queues: Sequence[Found], standings: Sequence[Standing | str]
) -> Mapping[str, list[tuple[Found, Standing | str]]]:
    systems: dict[str, list[tuple[Found, Standing | str]]] = {}
    for queue, standing in zip(queues, standings, strict=True):
        systems.setdefault(queue.title, []).append((queue, standing))
    return systems


def _offers(table: QueueTable, matching: Mapping[str, int]) -> list[Offer]:
    return [
        Offer(what, matching[console.acted_on(table, what)])
        for what in ACTIONS
        if what in table.people_may and matching.get(console.acted_on(table, what))
    ]


def _filters(wanted: RowFilter) -> dict[str, str]:
    return {name: value for name, value in wanted.binds().items() if value}


def _row(request: Request, queue: Found, key: str) -> RowDetail:
    found = None
    try:
        with reading(request.app.state.databases, queue) as tx:
            found = console.row_detail(tx, queue.table, key)
    except DataError:
        # No key of this table has that form.
        pass
    if found is None:
        raise HTTPException(status.HTTP_404_NOT_FOUND, f"{queue.table.name} has no row {key!r}.")
    return found


def _columns(found: RowDetail) -> Mapping[str, Any]:
    """Return a row's columns, or none if they can't be read."""
    try:
        columns = odd_json.read(found.row.row_columns)
    except ValueError:
        return {}
    return columns if isinstance(columns, Mapping) else {}


def _data(queue: Found, columns: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what a row holds beside the engine's own columns, each value as text that a person reads."""
    table = queue.table
    known = {*table.columns(), queue.watched.created, "claimed_by", "heartbeat_at"} - {
        table.tenant,
        table.stage,
    }
    return [(name, shown(name, value)) for name, value in columns.items() if name not in known]


def _instant(text: Any) -> datetime | None:
    try:
        value = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return value.replace(tzinfo=UTC) if value is not None and value.tzinfo is None else value


def _runs(request: Request, queue: Found, found: RowDetail) -> Mapping[str, str]:
    """Return the DAG of each run that held the row and has a page; without the platform's database, none."""
    owners = {found.row.row_owner, *(move.claimed_by for move in found.moves)}
    run_ids = {run_of(owner) for owner in owners} - {""}
    try:
        with request.app.state.databases.read(ALMANAC) as tx:
            return {run_id: dag for dag in queue.watched.dags for run_id in known_runs(tx, dag, run_ids)}
    except (Transient, UnknownConnection):
        return {}


def _back(request: Request, path: str, **query: str) -> RedirectResponse:
    root = request.scope.get("root_path", "")
    return RedirectResponse(link(f"{root}{path}", query), status.HTTP_303_SEE_OTHER)
