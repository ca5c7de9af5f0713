"""EcoComply's dead letters: by their cause, one by one, and what a person decides on one or on many."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Any, cast

from airflow.api_fastapi.core_api.security import GetUserDep
from airflow.api_fastapi.logging.decorators import action_logging
from fastapi import APIRouter, Depends, Form, HTTPException, Query, Request, status
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from console.ecocomply.reading import reading, summaries, writable
from console.guards import (
    SESSION_COOKIE,
    form_token,
    may_trigger,
    meant,
    new_session,
    reads_runs_of,
    triggers,
)
from console.rendering import id_of, link, one_of, render
from console.values import shown
from include.ecocomply import ZONE
from include.ecocomply.console import letters
from include.ecocomply.console.letters import DECISIONS, STATES, Decision, LetterFilter, State
from include.ecocomply.console.listing import Place
from include.ecocomply.job_records import dead_letters
from include.ecocomply.job_records.dag_runs import run_of_key
from include.errors import BadInput
from include.run import Run

DAG = "ecocomply_job_dispatcher"
QUEUE = "ecocomply.background_jobs"
PATH = "/ecocomply/dead-letters"
CHANGE_SECONDS = 20.0
"""How long one request decides on letters; what is left is asked for again."""
MOST_TICKED = 200
LONGEST_NOTE = 2_000
ALL = "all"

log = logging.getLogger(__name__)

router = APIRouter(prefix=PATH, dependencies=[reads_runs_of(DAG)])

Text = Annotated[str, Query()]
MayChange = Annotated[bool, Depends(may_trigger(DAG))]
Note = Annotated[str, Form(max_length=LONGEST_NOTE)]


@dataclass(frozen=True, slots=True)
class Said:
    """What a page is told of a decision that led to it; `first` and `last` are the turns of what begins again."""

    did: Text = ""
    changed: Annotated[int, Query(ge=0)] = 0
    left: Annotated[int, Query(ge=0)] = 0
    a_minute: Annotated[int, Query(ge=0)] = 0
    first: Text = ""
    last: Text = ""


NOTHING = Said()


def wanted(
    state: Text = "open",
    job_type: Annotated[str, Query(alias="type")] = "",
    company: Text = "",
    words: Text = "",
    cause: Text = "",
    ticks: Annotated[list[str] | None, Query(alias="letter")] = None,
    ticked: Text = "",
) -> LetterFilter:
    """Read the filter of an address. Raises BadInput.

    `ticked` says that letters were to be chosen one by one: without any, none is meant rather than all.
    """
    if ticks is not None and len(ticks) > MOST_TICKED:
        raise BadInput(f"letter: {len(ticks)} are too many at once, {MOST_TICKED} is the most")
    ids = tuple(found for one in ticks or () if (found := id_of(one, "letter")) is not None)
    chosen = None if state == ALL else cast("State | None", one_of(state, STATES, "state") or "open")
    return LetterFilter(
        state=chosen,
        job_type=job_type or None,
        company=company.strip(),
        words=words.strip() or None,
        cause=cause or None,
        ids=ids if ids or ticked else None,
    )


Wanted = Annotated[LetterFilter, Depends(wanted)]


def decision(what: str) -> Decision:
    """Return what is asked for."""
    if what not in DECISIONS:
        raise HTTPException(status.HTTP_404_NOT_FOUND, f"Nobody can {what} a dead letter.")
    return what


What = Annotated[Decision, Depends(decision)]


@router.get("")
def listed(
    request: Request,
    wanted: Wanted,
    may_change: MayChange,
    after: Text = "",
    after_id: Text = "",
    said: Annotated[Said, Depends()] = NOTHING,
) -> HTMLResponse:
    """List dead letters, the latest first, and the causes of the open ones."""
    place_id = id_of(after_id, "page")
    with reading(request) as tx:
        page = letters.listed(tx, wanted, Place(after, place_id) if place_id else None)
        matching = letters.matching(tx, wanted)
        causes = letters.causes(tx, wanted)
        types = letters.types(tx)
    return render(
        request,
        "ecocomply_dead_letters.html",
        page=page,
        matching=matching,
        causes=causes,
        most_letters=letters.MOST_LETTERS,
        types=types,
        wanted=wanted,
        states=(*STATES, ALL),
        filters=filters(wanted),
        may_change=may_change,
        did=one_of(said.did, DECISIONS, "did"),
        said=said,
        turns=(_instant(said.first), _instant(said.last)),
        first_page=place_id is None,
        path=PATH,
        queue=QUEUE,
        dag=DAG,
    )


@router.get("/all/{what}", dependencies=[triggers(DAG)])
def confirm(request: Request, what: What, wanted: Wanted, user: GetUserDep) -> HTMLResponse:
    """Ask whether all open letters that match are meant, say how many they are and what becomes of them."""
    wanted = replace(wanted, state="open")
    with reading(request) as tx:
        number = letters.matching(tx, wanted)
    session = request.cookies.get(SESSION_COOKIE) or new_session()
    return render(
        request,
        "ecocomply_dead_letters_confirm.html",
        session=session,
        what=what,
        number=number,
        wanted=wanted,
        filters=filters(wanted),
        a_minute=letters.A_MINUTE,
        most_a_minute=letters.MOST_A_MINUTE,
        longest_note=LONGEST_NOTE,
        form_token=form_token(session, user),
        path=PATH,
    )


@router.post(
    "/all/{what}",
    dependencies=[
        triggers(DAG),
        Depends(meant),
        Depends(action_logging("console_decide_dead_letters")),
    ],
)
def decide_all(
    request: Request,
    what: What,
    wanted: Wanted,
    user: GetUserDep,
    number: Annotated[int, Form(ge=0)],
    a_minute: Annotated[int, Form(ge=1, le=letters.MOST_A_MINUTE)] = letters.A_MINUTE,
    note: Note = "",
) -> Response:
    """Decide on what matches, in the user's name: no more letters than were agreed to."""
    now, name = datetime.now(UTC), user.get_name()
    run = Run(
        job=f"console {what}",
        run_id=f"console__{now.isoformat()}",
        as_of=now,
        zone=ZONE,
        db=writable(request),
        log=log,
    )
    turns = letters.decide_all(
        run, what, replace(wanted, state="open"), name, note.strip() or None,
        at_most=number, a_minute=a_minute, seconds=CHANGE_SECONDS,
    )  # fmt: skip
    changed = run.counts["changed"]
    log.info("console: dead letters: %s by %s: %s of %s", what, name, changed, number)
    kept = filters(wanted) | {"state": "retried" if what == "retry" else "permanent"}
    said = {"did": what, "changed": str(changed), "left": str(number - changed)}
    if turns.first is not None and turns.last is not None:
        said |= {"a_minute": str(a_minute), "first": turns.first.isoformat(), "last": turns.last.isoformat()}
    return _back(request, PATH, kept | said)


@router.get("/{letter_id}")
def letter(
    request: Request, letter_id: uuid.UUID, user: GetUserDep, may_change: MayChange, did: Text = ""
) -> HTMLResponse:
    """Show one letter: why it is there, its job as it was and as it is now, and what was done about it."""
    with reading(request) as tx:
        found = letters.detail(tx, letter_id)
    if found is None:
        raise _no_such(letter_id)
    session = request.cookies.get(SESSION_COOKIE) or new_session()
    context = found.row.error_context if isinstance(found.row.error_context, Mapping) else {}
    run = run_of_key(found.row.dag_run_id)
    return render(
        request,
        "ecocomply_dead_letter.html",
        session=session,
        letter=found,
        context=[(name, shown(name, value)) for name, value in context.items() if value is not None],
        run=run.uncleared if run else None,
        has_page=run is not None and bool(summaries(request, run.dag_id, {run.run_id})),
        may_change=may_change and found.row.resolved_at is None,
        did=one_of(did, (*DECISIONS, "note"), "did"),
        longest_note=LONGEST_NOTE,
        form_token=form_token(session, user),
        path=PATH,
        queue=QUEUE,
    )


@router.post(
    "/{letter_id}/note",
    dependencies=[triggers(DAG), Depends(meant), Depends(action_logging("console_note_dead_letter"))],
)
def add_note(request: Request, letter_id: uuid.UUID, user: GetUserDep, note: Note = "") -> Response:
    """Add a line to an open letter's notes, in the user's name."""
    with writable(request).transaction() as tx:
        if not dead_letters.add_note(tx, letter_id, user.get_name(), note):
            raise _not_open(letters.detail(tx, letter_id), letter_id)
    return _back(request, f"{PATH}/{letter_id}", {"did": "note"})


@router.post(
    "/{letter_id}/{what}",
    dependencies=[triggers(DAG), Depends(meant), Depends(action_logging("console_decide_dead_letter"))],
)
def decide(request: Request, letter_id: uuid.UUID, what: What, user: GetUserDep, note: Note = "") -> Response:
    """Decide on one letter, in the user's name; its job is due at once if it is tried again."""
    with writable(request).transaction() as tx:
        done, _ = letters.decide(tx, what, [letter_id], user.get_name(), note.strip() or None)
        if not done:
            raise _not_open(letters.detail(tx, letter_id), letter_id)
    return _back(request, f"{PATH}/{letter_id}", {"did": what})


def filters(wanted: LetterFilter) -> dict[str, Any]:
    """Return what an address has of a filter; ticked letters come one by one."""
    kept: dict[str, Any] = {
        "state": ALL if wanted.state is None else "" if wanted.state == "open" else wanted.state,
        "type": wanted.job_type,
        "company": wanted.company,
        "words": wanted.words,
        "cause": wanted.cause,
        "letter": [str(one) for one in wanted.ids or ()],
        "ticked": "" if wanted.ids is None else "1",
    }
    return {name: value for name, value in kept.items() if value}


def _no_such(letter_id: uuid.UUID) -> HTTPException:
    return HTTPException(status.HTTP_404_NOT_FOUND, f"There is no dead letter {letter_id}.")


def _not_open(found: letters.LetterDetail | None, letter_id: uuid.UUID) -> HTTPException:
    if found is None:
        return _no_such(letter_id)
    if found.row.resolved_at is None:
        how = f"its job is {found.row.job_status} now"
    else:
        how = f"it is resolved as {found.row.resolution}"
        if who := found.row.resolved_by_airflow_user:
            how += f" by {who}"
    return HTTPException(status.HTTP_409_CONFLICT, f"The letter {letter_id} can't be changed: {how}.")


def _instant(text: str) -> datetime | None:
    try:
        value = datetime.fromisoformat(text) if text else None
    except ValueError:
        raise BadInput(f"{text!r} is no instant") from None
    if value is not None and value.tzinfo is None:
        raise BadInput(f"{text!r} has no offset")
    return value


def _back(request: Request, path: str, query: Mapping[str, Any]) -> RedirectResponse:
    root = request.scope.get("root_path", "")
    return RedirectResponse(link(f"{root}{path}", dict(query)), status.HTTP_303_SEE_OTHER)
