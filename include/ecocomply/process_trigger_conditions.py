"""Something has happened: it is stored as an event, and the conditions that listen to it are looked at right away."""

from __future__ import annotations

import re
from uuid import NAMESPACE_OID, UUID, uuid5

import msgspec

from include.ecocomply.triggers import CONDITIONAL, fire_by_event
from include.errors import BadInput
from include.isolation import CHUNK
from include.job import NothingOutside
from include.run import Run
from include.statements import statement

PACKAGE = "include.ecocomply"
NAME = "processTriggerConditions"
SETTINGS: dict[str, str | None] = {}
QUEUES: tuple[str, ...] = ()
Outside = NothingOutside

# As the dispatcher names a run that a row of `background_jobs` has started.
_OF_JOB = re.compile(r"job__([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:__[1-9][0-9]*)?")


def store_event(run: Run, outside: NothingOutside) -> dict[str, str] | None:  # noqa: ARG001 - a step's form
    """Store the event that the run was given, once; without a type nothing has happened, and what waits is looked at.

    Its id is the application's, else that of the job's row, else one that the run's own id makes. Raises BadInput for
    an event of no company, or whose id is another company's.
    """
    kind, given, company = (run.params[name] for name in ("event_type", "event_id", "company_id"))
    if kind is None:
        if run.params["event_data"] is not None:
            raise BadInput("EcoComply: event_data without an event_type is no event")
        return None if given is None else {"event_id": given}
    if company is None:
        raise BadInput(f"EcoComply: the event {kind[:80]!r} is of no company")
    event_id = given or str(_event_id(run.run_id))
    data = msgspec.json.encode(run.params["event_data"] or {}).decode()
    with run.transaction() as tx:
        binds = {"id": event_id, "company_id": company}
        stored = tx.execute(
            statement(PACKAGE, "store_event"), event_type=kind, event_data=data, as_of=run.as_of, **binds
        )
        if not stored and not tx.value(statement(PACKAGE, "event_is_of"), **binds):
            raise BadInput(
                f"EcoComply: the event {event_id} is not of the company {company}, or there is no such company"
            )
    run.count("events", stored)
    return {"event_id": event_id}


def evaluate_conditions(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Evaluate the conditions that listen to the event, or to all that wait; those that are met fire."""
    fire_by_event(run, (CONDITIONAL,), CHUNK, run.params["company_id"], run.handed.get("event_id"))


def _event_id(run_id: str) -> UUID:
    of_job = _OF_JOB.fullmatch(run_id)
    return uuid5(NAMESPACE_OID, run_id) if of_job is None else UUID(of_job[1])


STEPS = (store_event, evaluate_conditions)
