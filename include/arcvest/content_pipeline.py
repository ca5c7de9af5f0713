"""An idea becomes an article in four steps by three models, each saved before the next one starts.

A run takes one job of type process_pipeline from the queue and holds its claim from the first step to the last.
What a step has saved is never paid for again, whoever goes on from there.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Row
from sqlalchemy.exc import DBAPIError

from include.alerts import Alerts, RecordedAlerts
from include.arcvest.articles import Article, Package, read, schema_of
from include.arcvest.jobs import PACKAGE, PIPELINE, QUEUE
from include.arcvest.models import (
    CLAUDE,
    GEMINI,
    GPT,
    MODELS,
    VENDORS,
    KeyRefused,
    Models,
    Question,
    RecordedModels,
    Unusable,
    service,
)
from include.arcvest.pipeline_call import call_pipeline
from include.arcvest.safe_html import safe_html
from include.arcvest.stand_in import StandIn
from include.arcvest.stuck_ideas import release_stuck_ideas
from include.effects import Effects
from include.errors import AlmanacError, BadInput, Outage, Permanent, QuotaExhausted, Transient
from include.plain_text import from_html, plain
from include.queues.drain import UNWRITABLE
from include.queues.engine import Claim, Failure, StaleClaim, new_owner
from include.queues.heartbeat import beating
from include.run import Run, Transaction, is_row_fault, row_error
from include.statements import statement

NAME = "contentPipeline"
SETTINGS: dict[str, str | None] = {**MODELS, "ADMIN_ALERT_EMAIL": None}
QUEUES = ("job_queue",)

ASKED_PRIORITY = 100
"""Of the job that a person asks for: before everything that a batch enqueues."""

SAVING_SECONDS = 45.0
"""How long a step's answer is tried to be saved: with the longest answer of a model within the task's time."""

_SAVE_AGAIN_SECONDS = 1.0
_TEXT = 2_000
# A person has to act first.
_MENDED_AFTER = 300
_ENDED = ("completed", "rejected")


class Outside(NamedTuple):
    """What the pipeline needs of the world."""

    models: Models
    alerts: Alerts

    def in_preview(self, run: Run, effects: Effects) -> Outside:
        """Ask no model: the stand-in's text is the placeholder."""
        alerts = RecordedAlerts(self.alerts, effects, run.settings.get("ADMIN_ALERT_EMAIL"))
        return Outside(RecordedModels(effects, self.models, StandIn()), alerts)


@dataclass(frozen=True, slots=True)
class Step:
    """One step: its name in `pipeline_step`, its key in `pipeline_data`, the step before it, and who does it."""

    name: str
    key: str
    after: str | None
    model: str
    form: type[Article | Package]


DRAFT = Step("claude_draft", "claude_draft", None, CLAUDE, Article)
IMPROVE = Step("gpt_improve", "gpt_improved", DRAFT.key, GPT, Article)
POLISH = Step("gemini_polish", "gemini_polished", IMPROVE.key, GEMINI, Article)
PACK = Step("claude_package", "final_package", POLISH.key, CLAUDE, Package)


def claim_job(run: Run, outside: Outside) -> Mapping[str, Any] | bool:
    """Claim one job that can be worked on, and hand on its ids; False if there is none.

    A job that a person asks for by `idea_id` is enqueued first. If more jobs wait, the next run is called.
    Without every model's name and key none is claimed: a step that is paid for should not wait for the next one.
    """
    release_stuck_ideas(run)
    asked = run.params.get("idea_id")
    if asked is not None:
        _enqueue(run, uuid.UUID(asked))
    claim = _resumed(run)
    if claim is None and not _can_ask(run, outside):
        return False
    while claim := claim or _claimed(run):
        run.count("processed")
        if (idea := _begun(run, claim)) is not None:
            call_pipeline(run)
            return {
                "job": str(claim.key),
                "attempt": claim.attempt,
                "attempt_limit": claim.attempt_limit,
                "owner": claim.owner,
                "idea": str(idea),
            }
        claim = None
    return False


def claude_draft(run: Run, outside: Outside) -> bool:
    """Write the first draft; False ends the run."""
    return _do(run, outside, DRAFT)


def gpt_improve(run: Run, outside: Outside) -> bool:
    """Improve the draft; False ends the run."""
    return _do(run, outside, IMPROVE)


def gemini_polish(run: Run, outside: Outside) -> bool:
    """Polish the article; False ends the run."""
    return _do(run, outside, POLISH)


def claude_package(run: Run, outside: Outside) -> bool:
    """Make the package of HTML, excerpt, tags and image prompt; False ends the run."""
    return _do(run, outside, PACK)


def save_article(run: Run, outside: Outside) -> bool:  # noqa: ARG001 - a step's form
    """Put the article into the calendar, once per idea, and complete idea and job with it."""
    claim = _claim_of(run)
    if claim is None:
        return False
    try:
        idea = _held_idea(run, claim)
        if idea is None:
            return False
        package = _known(idea, PACK)
        if not isinstance(package, Package):
            raise Unusable(f"idea {idea.id}: no package is saved")
        with run.transaction() as tx:
            QUEUE.complete(tx, [claim])
            # The idea first: under its lock nobody rejects it while its article goes into the calendar.
            wanted = tx.execute(statement(PACKAGE, "pipeline_idea_completed"), idea=idea.id)
            added = (
                tx.execute(statement(PACKAGE, "pipeline_save_article"), idea=idea.id, **_safe(package))
                if wanted
                else 0
            )
        if not wanted:
            return _overtaken(run, claim)
    except (AlmanacError, DBAPIError) as error:
        return _failed(run, claim, error)
    run.count("completed")
    run.count("saved", added)
    run.count("skipped", 1 - added)
    run.note(f"{'in the calendar' if added else 'was in the calendar already'}: {plain(package.title, 120)}")
    return True


STEPS = (claim_job, claude_draft, gpt_improve, gemini_polish, claude_package, save_article)


def _can_ask(run: Run, outside: Outside) -> bool:
    """See that every model can be asked; tell of it as an outage if not."""
    try:
        for variable, vendor in VENDORS.items():
            _model(run, variable)
            outside.models.check(vendor)
    except KeyRefused as error:
        _tell(run, outside, error)
        run.note(row_error(error))
        return False
    return True


def _tell(run: Run, outside: Outside, error: Outage) -> None:
    if error.service:
        outside.alerts.outage(error.service, row_error(error))
        run.state = "deferred"


def _enqueue(run: Run, idea: uuid.UUID) -> None:
    """Let the idea that a person asks for be the next; one that is written up already stays as it is."""
    with run.transaction() as tx:
        found = tx.row(statement(PACKAGE, "pipeline_asked_idea"), idea=idea)
        if found is None:
            raise BadInput(f"idea_id: there is no idea {idea}")
        if found.status in _ENDED:
            run.count("skipped")
            run.note(f"idea {idea} is {found.status}: nothing is to be done")
            return
        jobs = tx.rows(statement(PACKAGE, "pipeline_open_job"), idea=str(idea))
        if not jobs:
            row = {"job_type": PIPELINE, "payload": {"idea_id": str(idea)}, "priority": ASKED_PRIORITY}
            QUEUE.enqueue(tx, [row])
            run.count("queued")
        elif jobs[0].status == "pending":
            tx.execute(statement(PACKAGE, "pipeline_hurry"), job=jobs[0].id, priority=ASKED_PRIORITY)


def _resumed(run: Run) -> Claim | None:
    """Return the claim of this very run, whose task was ended before it could hand it on."""
    with run.transaction() as tx:
        row = tx.row(statement(PACKAGE, "pipeline_resumed"), job_type=PIPELINE, run=f"{run.run_id} ")
    return row and Claim(row.claim_key, row.claim_attempt, row.claim_limit, row.claimed_by, row)


def _claimed(run: Run) -> Claim | None:
    with run.transaction() as tx:
        claims = QUEUE.claim(tx, new_owner(run.run_id), 1, not_after=run.due_limit, kinds=[PIPELINE])
    return claims[0] if claims else None


def _begun(run: Run, claim: Claim) -> uuid.UUID | None:
    """Mark the idea of a claim as being worked on and return its id; None ends the claim: nothing can be done."""
    try:
        idea = _idea_id(claim.row.payload)
        with run.transaction() as tx:
            QUEUE.heartbeat(tx, claim.owner)
            found = tx.row(statement(PACKAGE, "pipeline_idea"), idea=idea)
            if found is None:
                raise BadInput(f"job {claim.key}: there is no idea {idea}")
            if tx.rows(statement(PACKAGE, "pipeline_begin_idea"), idea=idea):
                return idea
            QUEUE.complete(tx, [claim])
    except (AlmanacError, DBAPIError) as error:
        _failed(run, claim, error)
        return None
    run.count("skipped")
    run.row_skipped(claim.key, f"the idea is {found.status}")
    return None


def _idea_id(payload: Any) -> uuid.UUID:
    given = payload.get("idea_id") if isinstance(payload, Mapping) else None
    try:
        return uuid.UUID(given)
    except (ValueError, TypeError, AttributeError):
        raise BadInput(f"payload: idea_id {str(given)[:60]!r} is not a uuid") from None


def _claim_of(run: Run) -> Claim | None:
    """Return the claim that the first step handed on, whether or not it is still held; None if the job is gone."""
    handed = run.handed
    with run.transaction() as tx:
        row = tx.row(statement(PACKAGE, "pipeline_job"), job=handed["job"])
    if row is None:
        run.count("stale")
        return None
    return Claim(row.id, handed["attempt"], handed["attempt_limit"], handed["owner"], row)


def _held_idea(run: Run, claim: Claim) -> Row[Any] | None:
    """Return the idea of a claim; None if nobody wants it written up any more, which completes the job.

    Raises StaleClaim if the claim was taken away.
    """
    with run.transaction() as tx:
        if claim.key not in QUEUE.heartbeat(tx, claim.owner):
            raise StaleClaim(QUEUE.table.name, [claim.key])
        row = tx.row(statement(PACKAGE, "pipeline_idea"), idea=run.handed["idea"])
        if row is None:
            raise BadInput(f"job {claim.key}: idea {run.handed['idea']} is gone")
        if row.status == "selected" and tx.rows(statement(PACKAGE, "pipeline_begin_idea"), idea=row.id):
            # Taken for stuck, while the claim was silent: it is held, so the work goes on.
            return row
        if row.status == "processing":
            return row
        QUEUE.complete(tx, [claim])
    _overtaken(run, claim)
    return None


def _overtaken(run: Run, claim: Claim) -> bool:
    """Count a job as skipped that is completed since its idea went another way, and return False."""
    run.count("skipped")
    run.row_skipped(claim.key, "the idea was rejected or written up meanwhile")
    run.note(f"job {claim.key}: its idea was rejected or written up meanwhile: nothing more is to be done")
    return False


def _do(run: Run, outside: Outside, step: Step) -> bool:
    """Do one step unless it is saved already, and save it; False if the claim is at an end."""
    claim = _claim_of(run)
    if claim is None:
        return False
    try:
        idea = _held_idea(run, claim)
        if idea is None:
            return False
        if _known(idea, step) is not None:
            run.count("resumed")
            return True
        question = _question(run, step, idea)
        with beating(run, QUEUE, claim.owner):
            reply = outside.models.ask(question)
            run.count("asked")
            run.count("tokens_in", reply.tokens_in)
            run.count("tokens_out", reply.tokens_out)
            answer = read(reply.text, step.form)
            if isinstance(answer, Package):
                _safe(answer)
            saved = {step.key: {**msgspec.to_builtins(answer), "model": plain(reply.model, 100)}}
            wanted = _saved(run, claim, step, idea.id, saved)
        if not wanted:
            return _overtaken(run, claim)
    except (AlmanacError, DBAPIError) as error:
        if isinstance(error, Outage):
            _tell(run, outside, error)
        return _failed(run, claim, error)
    outside.alerts.recovered(service(question.vendor))
    return True


def _saved(run: Run, claim: Claim, step: Step, idea: uuid.UUID, saved: Mapping[str, Any]) -> bool:
    """Save a step as `_checkpoint` does, again and again for a while if the database can't just now.

    The answer is paid for, and would be lost with the task.
    """
    give_up_at = time.monotonic() + SAVING_SECONDS
    while True:
        try:
            with run.transaction() as tx:
                return _checkpoint(tx, claim, step, idea, saved)
        except Transient as error:
            if run.preview or time.monotonic() >= give_up_at:
                raise
            run.log.warning("job %s: %s is not saved yet: %s", claim.key, step.name, row_error(error))
            time.sleep(_SAVE_AGAIN_SECONDS)


def _checkpoint(tx: Transaction, claim: Claim, step: Step, idea: uuid.UUID, saved: Mapping[str, Any]) -> bool:
    """Save a step under a claim that is still held; complete the job and return False if the idea is not wanted.

    Raises StaleClaim if the claim was taken away.
    """
    done = tx.execute(
        statement(PACKAGE, "pipeline_checkpoint"),
        job=claim.key,
        attempt=claim.attempt,
        owner=claim.owner,
        step=step.name,
        idea=idea,
        saved=json.dumps(saved),
    )
    if not done:
        QUEUE.complete(tx, [claim])
    return bool(done)


def _failed(run: Run, claim: Claim, error: Exception) -> bool:
    """Write that a claim failed, and return False; what the database itself can't do now is raised again."""
    if isinstance(error, StaleClaim):
        run.count("stale")
        run.note(f"job {claim.key} was taken away meanwhile: nothing was written")
        return False
    if isinstance(error, DBAPIError):
        if not is_row_fault(error):
            raise error
        run.log.warning("job %s: %s", claim.key, row_error(error))
        reason, permanent = UNWRITABLE, True
    elif isinstance(error.__cause__, DBAPIError):
        # The database, not the job: Airflow tries the task again, and the claim stays.
        raise error
    else:
        reason, permanent = row_error(error), isinstance(error, Permanent)
    _write_failure(run, claim, reason, error, permanent=permanent)
    return False


def _write_failure(run: Run, claim: Claim, reason: str, error: Exception, *, permanent: bool) -> None:
    no_fault = isinstance(error, KeyRefused | QuotaExhausted)
    if no_fault:
        claim = replace(claim, attempt_limit=claim.attempt + 1)
    with run.transaction() as tx:
        held, ended = QUEUE.fail_held(tx, [Failure(claim, reason, permanent)])
        if not held:
            run.count("stale")
            return
        if no_fault:
            tx.execute(statement(PACKAGE, "pipeline_attempt_back"), job=claim.key, seconds=_MENDED_AFTER)
        if isinstance(error, Outage) and error.retry_at is not None:
            tx.execute(statement(PACKAGE, "pipeline_not_before"), job=claim.key, retry_at=error.retry_at)
        _idea_failed(run, tx, claim, reason, ended=bool(ended))
    run.count("failed" if ended else "retried")
    run.log.warning("row failed: job=%s recordId=%s err=%s", NAME, claim.key, reason)
    run.note(
        f"job {claim.key} {'failed for good' if ended else 'is tried again later'}: {plain(reason, 300)}"
    )


def _idea_failed(run: Run, tx: Transaction, claim: Claim, reason: str, *, ended: bool) -> None:
    idea = run.handed.get("idea") or _payload_idea(claim)
    if idea is None:
        return
    try:
        with tx.savepoint():
            tx.execute(
                statement(PACKAGE, "pipeline_idea_failed"),
                idea=idea,
                ended=ended,
                reason=plain(reason, _TEXT),
            )
    except DBAPIError as error:
        if not is_row_fault(error):
            raise
        run.log.warning("idea %s stays as it is: %s", idea, row_error(error))


def _payload_idea(claim: Claim) -> uuid.UUID | None:
    try:
        return _idea_id(claim.row.payload)
    except BadInput:
        return None


def _question(run: Run, step: Step, idea: Row[Any]) -> Question:
    asked: dict[str, Any] = {"step": step.name}
    if step.after is None:
        asked["idea"] = {
            "title": idea.title,
            "summary": idea.summary,
            "source": idea.source,
            "source_name": idea.source_name,
            "url": idea.url,
            "published_at": idea.published_at,
        }
    else:
        before = _known(idea, _BY_KEY[step.after])
        if before is None:
            raise Unusable(f"idea {idea.id}: {step.after} is not saved")
        asked["article"] = msgspec.to_builtins(before)
    return Question(
        VENDORS[step.model],
        _model(run, step.model),
        _instructions(step),
        json.dumps(asked, ensure_ascii=False, default=_as_text),
    )


def _model(run: Run, variable: str) -> str:
    model = run.settings.get(variable)
    if not model:
        # Whoever asks gets the same answer, until we mend it: no idea's fault.
        raise KeyRefused(f"variable {variable}: names no model", service=service(VENDORS[variable]))
    return model


def _as_text(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


_BY_KEY = {step.key: step for step in (DRAFT, IMPROVE, POLISH, PACK)}


def _known(idea: Row[Any], step: Step) -> Article | Package | None:
    """Return what a step has saved of an idea; None if that is nothing that the next one could use."""
    data = idea.pipeline_data if isinstance(idea.pipeline_data, Mapping) else {}
    saved = data.get(step.key)
    if isinstance(saved, str) and step.form is Article:
        # An application's own pipeline may have saved bare text.
        saved = {"title": plain(idea.title, 300), "body": saved}
    try:
        return msgspec.convert(saved, step.form)
    except msgspec.ValidationError:
        return None


@cache
def _instructions(step: Step) -> str:
    prompts = resources.files(PACKAGE).joinpath("prompts")
    texts = [prompts.joinpath(f"{name}.txt").read_text(encoding="utf-8") for name in (step.name, "answer")]
    return f"{''.join(texts)}\n{schema_of(step.form)}"


def _safe(package: Package) -> dict[str, Any]:
    """Return a package as the calendar may hold it. Raises Unusable if nothing is left of a part of it."""
    safe = {
        "title": plain(package.title, 300),
        "html": safe_html(package.html),
        "excerpt": plain(package.excerpt, _TEXT),
        "image_prompt": plain(package.image_prompt, _TEXT),
    }
    tags = list(dict.fromkeys(tag for tag in (plain(tag, 60) for tag in package.tags) if tag))
    if not from_html(safe["html"], _TEXT) or not all(safe.values()) or not tags:
        raise Unusable("nothing is left of the package once it is made safe")
    return {**safe, "tags": json.dumps(tags)}
