"""What a gazette published since a subscription's last success becomes notifications, each address once."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from datetime import time as clock_time
from functools import partial
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Row

from include.alerts import Alerts, RecordedAlerts
from include.as_of import local_date
from include.effects import Effects
from include.errors import AlmanacError, BadInput, Outage, Permanent
from include.isolation import chunks, each_chunk
from include.nifya.gazettes import Content, Gazettes, parser_of
from include.nifya.job_types import NotReached, ProcessSubscription
from include.nifya.parser_breakers import FAILURES, PACKAGE, Breakers, is_left_alone
from include.odd_dates import OddDate
from include.run import Run, Transaction, row_error
from include.statements import statement

NAME = "process-subscription"
SETTINGS: dict[str, str | None] = {"ADMIN_ALERT_EMAIL": None}
QUEUES: tuple[str, ...] = ()

CHUNK = 10
"""Subscriptions that are asked for and written together: a kill loses no more answers."""

SECONDS = 120.0
"""How long the scheduled jobs' subscriptions go on being asked for before the rest is given back."""

STAGE = timedelta(days=30)
"""The most that one question asks for; what a stage brought is kept, whatever becomes of the next."""

FARTHEST = timedelta(days=365)
"""How far back a run looks at most."""

FAILURES_TOLD = 3
MOST_PROMPTS = 50
"""How many of a subscription's prompts a gazette is asked for; that more are left out is noted."""

_LONGEST_ERROR = 1_000


class Outside(NamedTuple):
    """The gazettes' parsers, and the operators' ledger."""

    gazettes: Gazettes
    alerts: Alerts

    def in_preview(self, run: Run, effects: Effects) -> Outside:
        alerts = RecordedAlerts(self.alerts, effects, run.settings["ADMIN_ALERT_EMAIL"])
        return Outside(read_ahead(run, self.gazettes, _asked_for(run)), alerts)


class _Plan(NamedTuple):
    """What is asked for one subscription: the days are both included."""

    subscription: uuid.UUID
    parser: str
    prompts: tuple[str, ...]
    since: date
    until: date


class _Brought(NamedTuple):
    """What came of it: content, up to `read` if not all was read, and the error that kept the rest."""

    content: Sequence[Content] = ()
    error: AlmanacError | None = None
    read: datetime | None = None


def process_subscriptions(run: Run, outside: Outside) -> None:
    """Process the subscription `subscription_id`, or without one all that are active.

    Raises what became of the one, if it failed; of many, each is counted and its status says why.
    """
    ids = _asked_for(run)
    became = process(run, outside.gazettes, ids)
    _tell_failing(run, outside.alerts, ids)
    if run.params.get("subscription_id") is not None and (error := became[ids[0]]) is not None:
        if not run.preview:
            raise error
        run.note(f"the run would fail: {row_error(error)}")


def handle(
    run: Run, gazettes: Gazettes, datas: Sequence[ProcessSubscription]
) -> Sequence[AlmanacError | None]:
    """Process the subscriptions of scheduled jobs; return None or the error for each job, in their order."""
    ids = list(dict.fromkeys(data.subscription_id for data in datas))
    owners = {row.id: row.user_id for row in _rows(run, ids)}
    foreign: dict[int, AlmanacError] = {
        place: BadInput(f"NIFYA: subscription {data.subscription_id} is not of user {data.user_id!r:.140}")
        for place, data in enumerate(datas)
        if data.user_id is not None and owners.get(data.subscription_id, data.user_id) != data.user_id
    }
    own = {data.subscription_id for place, data in enumerate(datas) if place not in foreign}
    became = process(run, gazettes, [one for one in ids if one in own], seconds=SECONDS, is_run=False)
    return [foreign.get(place, became.get(data.subscription_id)) for place, data in enumerate(datas)]


def process(
    run: Run,
    gazettes: Gazettes,
    ids: Sequence[uuid.UUID],
    *,
    seconds: float = math.inf,
    is_run: bool = True,
) -> dict[uuid.UUID, AlmanacError | None]:
    """Process subscriptions in chunks; return for each None, or the error that its status now says.

    A Permanent one would be the same again: the subscription is missing or inactive, its type unknown, its
    question refused. A Transient one is worth another try. After `seconds` nothing more is asked, and what is
    left is NotReached. `is_run` says that what fails has failed a run, rather than one of its tries.
    """
    until = time.monotonic() + seconds
    became: dict[uuid.UUID, AlmanacError | None] = {}
    for chunk in chunks(ids, CHUNK):
        if time.monotonic() >= until:
            became |= {one: _not_reached(one) for one in chunk}
        else:
            became |= _process_chunk(run, gazettes, chunk, until, is_run=is_run)
    return became


def _not_reached(subscription: uuid.UUID) -> NotReached:
    return NotReached(f"NIFYA: subscription {subscription}: the time was up; it goes on where it is")


def read_ahead(run: Run, gazettes: Gazettes, ids: Sequence[uuid.UUID]) -> Gazettes:
    """Return the gazettes as a preview uses them: asked now, for these subscriptions, and answering by that."""
    read = _GazettesRead()
    failures: dict[str, int] = {}
    for chunk in chunks(ids, CHUNK):
        plans, _ = _plans(run, _rows(run, chunk))
        for plan in plans:
            if plan.parser not in failures:
                # The breaker would not let the run ask either.
                failures[plan.parser] = FAILURES if is_left_alone(run, plan.parser) else 0
            if failures[plan.parser] < FAILURES and not read.ask(gazettes, plan):
                failures[plan.parser] += 1
    return read


class _GazettesRead:
    """Answers that were fetched before a preview's transaction opened."""

    def __init__(self) -> None:
        self._answers: dict[Any, _Brought] = {}

    def ask(self, gazettes: Gazettes, plan: _Plan) -> bool:
        """Fetch what a plan asks for, and say whether its parser is there."""
        for since, until in _stages(plan):
            key = (plan.parser, plan.prompts, since, until)
            if key not in self._answers or isinstance(self._answers[key].error, Outage):
                try:
                    self._answers[key] = _Brought(gazettes.new_content(*key))
                except AlmanacError as error:
                    self._answers[key] = _Brought(error=error)
            if (error := self._answers[key].error) is not None:
                return not isinstance(error, Outage)
        return True

    def new_content(self, parser: str, prompts: Sequence[str], since: date, until: date) -> Sequence[Content]:
        known = self._answers.get((parser, tuple(prompts), since, until))
        if known is None:
            raise Outage(f"NIFYA: parser {parser} is not asked in a preview")
        if known.error is not None:
            raise known.error
        return known.content


def _asked_for(run: Run) -> list[uuid.UUID]:
    given = run.params.get("subscription_id")
    if given is not None:
        return [uuid.UUID(given)]
    with run.transaction() as tx:
        return [row.id for row in tx.rows(statement(PACKAGE, "active_subscriptions"))]


def _rows(run: Run, ids: Sequence[uuid.UUID]) -> Sequence[Row[Any]]:
    with run.transaction() as tx:
        return tx.rows(statement(PACKAGE, "subscriptions_to_process"), ids=list(ids))


def _process_chunk(
    run: Run, gazettes: Gazettes, ids: Sequence[uuid.UUID], until: float, *, is_run: bool
) -> dict[uuid.UUID, AlmanacError | None]:
    rows = _rows(run, ids)
    run.count("processed", len(ids))
    plans, wrong = _plans(run, rows)
    brought: dict[uuid.UUID, _Brought] = {one: _Brought(error=error) for one, error in wrong.items()}
    breakers = Breakers(run)
    not_reached: dict[uuid.UUID, AlmanacError] = {}
    for plan in plans:
        if time.monotonic() < until:
            brought[plan.subscription] = _ask(run, breakers, gazettes, plan, until)
        else:
            not_reached[plan.subscription] = _not_reached(plan.subscription)
    became: dict[uuid.UUID, AlmanacError | None] = {one: said.error for one, said in brought.items()}
    for missing in sorted(set(ids) - {row.id for row in rows}):
        became[missing] = BadInput(f"NIFYA: subscription {missing} was not found")
    for one, error in became.items():
        if error is not None and not isinstance(error, NotReached):
            run.row_failed(one, error)

    def write(tx: Transaction, some: Sequence[uuid.UUID]) -> None:
        _write(run, tx, some, brought, is_run=is_run)

    for one in each_chunk(run, list(brought), write):
        if became[one] is None or isinstance(became[one], NotReached):
            became[one] = Permanent(f"NIFYA: subscription {one} could not be written")
    # The others have no effect at this instant: a later run was there before.
    return dict.fromkeys(ids) | became | not_reached


def _plans(run: Run, rows: Sequence[Row[Any]]) -> tuple[list[_Plan], dict[uuid.UUID, AlmanacError]]:
    plans: list[_Plan] = []
    wrong: dict[uuid.UUID, AlmanacError] = {}
    late = many = 0
    for row in rows:
        if row.last_run_at is not None and run.as_of < row.last_run_at:
            late += 1
            run.row_skipped(row.id, "a later run was there before")
            continue
        try:
            plans.append(_plan(run, row))
        except BadInput as error:
            wrong[row.id] = error
            continue
        if isinstance(row.prompts, list) and len(row.prompts) > MOST_PROMPTS:
            many += 1
    if late:
        run.count("skipped", late)
        run.note(f"{late} subscriptions were processed as of a later instant; this run is too old for them")
    if many:
        run.note(
            f"{many} subscriptions have over {MOST_PROMPTS} prompts; their first {MOST_PROMPTS} are asked for"
        )
    return plans, wrong


def _plan(run: Run, row: Row[Any]) -> _Plan:
    if row.active is not True:
        raise BadInput(f"NIFYA: subscription {row.id} is inactive")
    prompts = [row.prompts] if isinstance(row.prompts, str) else row.prompts
    if not isinstance(prompts, list) or not all(isinstance(prompt, str) for prompt in prompts):
        raise BadInput(f"NIFYA: subscription {row.id}: prompts is not a list of texts")
    seen = row.last_success_at or row.begun_at or run.as_of
    if isinstance(seen, OddDate) and not seen.before_all:
        raise BadInput(f"NIFYA: subscription {row.id} was last seen at {seen}, which never comes")
    # An edition may have grown after the last look at it: its day is read again, each address told once.
    since = max(local_date(max(seen, run.as_of - FARTHEST), run.zone), run.today - FARTHEST)
    return _Plan(row.id, parser_of(row.type_id), tuple(prompts[:MOST_PROMPTS]), since, run.today)


def _stages(plan: _Plan) -> Iterator[tuple[date, date]]:
    since = plan.since
    while since <= plan.until:
        until = min(since + STAGE - timedelta(days=1), plan.until)
        yield since, until
        since = until + timedelta(days=1)


def _ask(run: Run, breakers: Breakers, gazettes: Gazettes, plan: _Plan, until: float) -> _Brought:
    content: list[Content] = []
    read: datetime | None = None
    for first, last in _stages(plan):
        if time.monotonic() >= until:
            return _Brought(content, _not_reached(plan.subscription), read)
        try:
            content += breakers.ask(plan.parser, partial(gazettes.new_content, *plan[1:3], first, last))
        except AlmanacError as error:
            return _Brought(content, error, read)
        # The day after is the first to be read again.
        read = datetime.combine(last + timedelta(days=1), clock_time.min, run.zone)
    return _Brought(content)


def _write(
    run: Run,
    tx: Transaction,
    ids: Sequence[uuid.UUID],
    brought: Mapping[uuid.UUID, _Brought],
    *,
    is_run: bool,
) -> None:
    told = [(one, content) for one in ids for content in brought[one].content]
    if told:
        added = tx.execute(
            statement(PACKAGE, "add_notifications"),
            subscriptions=[one for one, _ in told],
            titles=[content.title for _, content in told],
            contents=[content.summary for _, content in told],
            urls=[content.url for _, content in told],
            metadata=[msgspec.json.encode(content.metadata).decode() for _, content in told],
        )
        run.count("newNotifications", added)
    tx.execute(
        statement(PACKAGE, "record_processing"),
        ids=list(ids),
        statuses=[_status(brought[one].error) for one in ids],
        errors=[
            None if (error := brought[one].error) is None else row_error(error)[:_LONGEST_ERROR]
            for one in ids
        ],
        seen=[run.as_of if brought[one].error is None else brought[one].read for one in ids],
        as_of=run.as_of,
        is_run=is_run,
    )


def _status(error: AlmanacError | None) -> str:
    if error is None:
        return "completed"
    return "pending" if isinstance(error, NotReached) else "failed"


def _tell_failing(run: Run, alerts: Alerts, ids: Sequence[uuid.UUID]) -> None:
    """Tell the operators of a subscription whose runs failed three times in a row, once until it succeeds."""
    with run.transaction() as tx:
        failing = tx.rows(statement(PACKAGE, "failing_subscriptions"), ids=list(ids), most=FAILURES_TOLD)
    for row in failing:
        since = row.last_success_at.isoformat() if row.last_success_at else "never"
        if alerts.tell(
            f"nifya subscription failing:{row.subscription_id}:{since}",
            "stuck",
            f"NIFYA: subscription {row.subscription_id} has failed {FAILURES_TOLD} times in a row",
            f"Subscription {row.subscription_id} ({row.type_id:.60}) has failed {row.failures_in_row} times in a "
            f"row. Its last success was {since}.\n\nThe last error: {row.error}\n",
        ):
            run.count("alerts")


STEPS = (process_subscriptions,)
