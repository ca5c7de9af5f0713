"""Rules that make schedules and deadlines: which of them fire, by which date or event, and what comes of it.

A rule and a date, or a rule and an event, fire once: an execution says what came of them. What a tenant's rule gets
wrong is a FAILED execution with the reason, never a failure of the job.
"""

from __future__ import annotations

import calendar
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, timedelta
from itertools import count
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import Row

from include.ecocomply.expressions import Answer, Asked, Evaluator
from include.ecocomply.tables.base import FREQUENCIES
from include.ecocomply.tenant_json import read_json
from include.errors import BadInput
from include.isolation import each_chunk, pages
from include.odd_dates import as_text, reckonable
from include.run import Run, Transaction
from include.statements import statement

PACKAGE = "include.ecocomply"

EVENT_BASED, CONDITIONAL = "EVENT_BASED", "CONDITIONAL"
SUCCESS, SKIPPED, FAILED = "SUCCESS", "SKIPPED", "FAILED"

PERIODS = 100
"""Dates that a rule makes up for at a time; what is left comes with the next look at it."""

_DAYS = {"DAILY": 1, "WEEKLY": 7}
_MONTHS = {"MONTHLY": 1, "QUARTERLY": 3, "ANNUAL": 12}
_LAST_DAY = 31
_LEAP_YEARS_APART = 8  # at most, as around 2100
_FARTHEST_DAYS = 3660
_HISTORY = "its date was past when this platform took over"


@dataclass(frozen=True, slots=True)
class Trigger:
    """A rule as a tenant wrote it; `wrong` says why it can't be read."""

    id: UUID
    company_id: UUID
    name: str
    type: str
    target: str
    config: Mapping[str, Any]
    template: Mapping[str, Any]
    wrong: str | None = None

    @classmethod
    def of(cls, row: Row[Any]) -> Trigger:
        """Return the rule that a row is. Its template may stand in its config too."""
        config: Mapping[str, Any] = {}
        template: Mapping[str, Any] = {}
        wrong = None
        try:
            config, template = _objects(row)
        except BadInput as error:
            wrong = str(error)
        return cls(
            row.id,
            row.company_id,
            row.rule_name,
            row.trigger_type,
            row.target_entity_type,
            config,
            template,
            wrong,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """A rule that fires by an event or for a period. Without a reason it succeeds.

    `due_date` is what it makes a schedule or deadline for; `previous` the due date before that, where the rule knows.
    `again`: a failure that is not the rule's fault, so a later run tries once more.
    """

    trigger: Trigger
    event: Row[Any] | None = None
    period: date | None = None
    due_date: date | None = None
    previous: date | None = None
    obligation_id: UUID | None = None
    frequency: str | None = None
    base_date: date | None = None
    result: str = SUCCESS
    reason: str | None = None
    again: bool = False
    series: Mapping[str, Any] = field(default_factory=dict)

    def ends(self, result: str, reason: str, *, again: bool = False) -> Firing:
        """Return the firing as one that makes nothing."""
        return replace(self, result=result, reason=reason, again=again)


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Firings that stand or fall together: all of a rule by the calendar, or one rule's by one event.

    `read` is the rule's next date as it was read, and `following` what it becomes; None and None for events.
    """

    firings: Sequence[Firing]
    read: date | None = None
    following: date | None = None

    @property
    def trigger(self) -> Trigger:
        return self.firings[0].trigger

    def __str__(self) -> str:
        """Return what finds it, as a row's error names it."""
        event = self.firings[0].event
        return f"{self.trigger.id}" + ("" if event is None else f" by {event.id}")


def _objects(row: Row[Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    config, template = read_json(row.rule_config) or {}, read_json(row.template_data) or {}
    if isinstance(config, Mapping) and not template:
        template = config.get("template_data") or {}
    if not isinstance(config, Mapping) or not isinstance(template, Mapping):
        raise BadInput("its config and template are no objects")
    return config, template


def fire_by_date(run: Run) -> None:
    """Fire every rule by the calendar whose date has come, for each date that was missed as well."""
    size, company_id = int(run.params["batch_size"]), run.params["company_id"]
    more = True
    while more:
        more = False
        look = statement(PACKAGE, "trigger_rules_due")
        for due in pages(run, look, today=run.today, company_id=company_id):
            groups = _resolve(run, [_by_date(row, run.today) for row in due])
            bad = _write(run, groups, "record_period_firings", size)
            # Only a rule that has moved can be due again: what failed waits for the next run.
            more = more or any(
                len(group.firings) == PERIODS and group.following != group.read and group not in bad
                for group in groups
            )


def fire_by_event(
    run: Run, types: Sequence[str], size: int, company_id: str | None = None, event_id: str | None = None
) -> None:
    """Fire the rules of these types by every event that they listen to and have not fired by."""
    look = statement(PACKAGE, "events_unfired")
    with Evaluator() as evaluator:
        for events in pages(
            run, look, as_of=run.as_of, types=list(types), company_id=company_id, event_id=event_id
        ):
            with run.transaction() as tx:
                ids = sorted({rule for event in events for rule in event.rules})
                found = tx.rows(statement(PACKAGE, "trigger_rules"), ids=ids)
            triggers = {row.id: Trigger.of(row) for row in found}
            pairs = [(triggers[rule], event) for event in events for rule in event.rules if rule in triggers]
            firings = _by_events(evaluator, pairs)
            _write(run, _resolve(run, [Group([one]) for one in firings]), "record_event_firings", size)


def _by_date(row: Row[Any], today: date) -> Group:
    trigger, read = Trigger.of(row), row.next_execution_date
    # The series goes on as it began, unless somebody has set another date since.
    carried = row.day_of_month if row.promised == read.isoformat() else None
    firings: list[Firing] = []
    try:
        reckonable(read, "its next_execution_date")
        for dated in _dates(trigger, read, carried):
            period = dated.period or read
            if period > today or len(firings) == PERIODS:
                return Group(firings, read, period)
            # What was missed before the adoption is history: it is used up, and makes nothing.
            is_history = row.adopted_on is not None and period < row.adopted_on
            firings.append(dated.ends(SKIPPED, _HISTORY) if is_history else dated)
    except (BadInput, OverflowError, ValueError) as error:
        return Group([Firing(trigger=trigger, period=read).ends(FAILED, _wrong(error))], read, read)
    return Group(firings, read, None)


def _wrong(error: Exception) -> str:
    return str(error) if isinstance(error, BadInput) else "its dates are out of reach"


def _dates(trigger: Trigger, read: date, carried: str | None) -> Iterator[Firing]:
    """Yield a firing for each period from the date that was read on; a rule that fires once has one.

    Due dates are those of one day of the month (of the config, or that the series began with), clamped to the end of a
    shorter month; a period is so many days earlier. `series` is what the next run has to know.
    """
    config = trigger.config
    frequency = config.get("frequency") or trigger.template.get("frequency")
    if trigger.wrong is not None or frequency not in FREQUENCIES:
        raise BadInput(trigger.wrong or "its frequency is none that is known")
    advance = timedelta(days=_days(config, "create_advance_days"))
    first = read + advance
    if frequency == "ONE_TIME":
        yield Firing(trigger=trigger, period=read, due_date=first, base_date=first)
        return
    day = config.get("day_of_month")
    if day is not None and (not isinstance(day, int) or isinstance(day, bool) or not 1 <= day <= _LAST_DAY):
        raise BadInput("its day_of_month is no day")
    keeps = day or (int(carried) if carried is not None and carried.isdecimal() else first.day)
    if frequency in _MONTHS and _day_of(first.year, first.month, keeps) < first:
        first = _due("MONTHLY", first, keeps, 1)
    for place in count():
        due = _due(frequency, first, keeps, place)
        following = _due(frequency, first, keeps, place + 1) - advance
        yield Firing(
            trigger=trigger,
            period=due - advance if place else read,
            due_date=due,
            previous=_due(frequency, first, keeps, place - 1),
            base_date=_base_of(frequency, first, keeps, place),
            series={"day_of_month": keeps, "next_execution_date": following.isoformat()},
        )


def _base_of(frequency: str, first: date, day: int, place: int) -> date:
    """Return the due date that the others follow from: the last one that no short month has clamped."""
    if frequency in _DAYS:
        return _due(frequency, first, day, place)
    back = (_due(frequency, first, day, place - n) for n in range(_LEAP_YEARS_APART + 1))
    return next((due for due in back if due.day == day), first)


def _due(frequency: str, first: date, day: int, place: int) -> date:
    if frequency in _DAYS:
        return first + timedelta(days=place * _DAYS[frequency])
    months = first.year * 12 + first.month - 1 + place * _MONTHS[frequency]
    return _day_of(months // 12, months % 12 + 1, day)


def _day_of(year: int, month: int, day: int) -> date:
    return date(year, month, min(day, calendar.monthrange(year, month)[1]))


def _days(config: Mapping[str, Any], key: str) -> int:
    given = config.get(key, 0)
    if not isinstance(given, int) or isinstance(given, bool) or not 0 <= given <= _FARTHEST_DAYS:
        raise BadInput(f"its {key} is no number of days up to {_FARTHEST_DAYS:,}")
    return given


def _by_events(evaluator: Evaluator, pairs: Sequence[tuple[Trigger, Row[Any]]]) -> list[Firing]:
    """Evaluate the conditions before any transaction is open; an event that meets none is used up all the same."""
    firings: list[Firing] = []
    questions: dict[int, Asked] = {}
    for trigger, event in pairs:
        firing = Firing(trigger=trigger, event=event)
        try:
            firing = replace(firing, due_date=_after(trigger, event))
            if trigger.type == CONDITIONAL:
                questions[len(firings)] = Asked(trigger.config.get("condition"), _fields(trigger, event))
        except (BadInput, OverflowError) as error:
            firing = firing.ends(FAILED, _wrong(error))
        firings.append(firing)
    for place, answer in zip(questions, evaluator.answers(list(questions.values())), strict=True):
        firings[place] = _judged(firings[place], answer)
    return firings


def _after(trigger: Trigger, event: Row[Any]) -> date:
    if trigger.wrong is not None:
        raise BadInput(trigger.wrong)
    occurred_at = reckonable(event.occurred_at, "the event's occurred_at")
    return occurred_at.astimezone(UTC).date() + timedelta(days=_days(trigger.config, "delay_days"))


def _judged(firing: Firing, answer: Answer) -> Firing:
    if answer.met is None:
        return firing.ends(FAILED, f"its condition could not be evaluated: {answer.reason}")
    return firing if answer.met else firing.ends(SKIPPED, "its condition is not met")


def _fields(trigger: Trigger, event: Row[Any]) -> dict[str, Any]:
    data = read_json(event.event_data)
    given: dict[str, Any] = {"event": data, "event_type": event.event_type}
    if isinstance(data, Mapping):
        given = dict(data) | given
    if (threshold := trigger.config.get("threshold_value")) is not None:
        given["threshold"] = threshold
    return given


def _resolve(run: Run, groups: Sequence[Group]) -> list[Group]:
    """Find the obligation of each firing: one of the rule's company, that is applicable."""
    named = {group.trigger.id: _obligation_id(group.trigger) for group in groups}
    with run.transaction() as tx:
        ids = sorted({one for one in named.values() if isinstance(one, UUID)})
        found = {row.id: row for row in tx.rows(statement(PACKAGE, "trigger_obligations"), ids=ids)}
    resolved = []
    for group in groups:
        firings = [_aimed(one, named[group.trigger.id], found) for one in group.firings]
        failed = next((place for place, one in enumerate(firings) if one.result == FAILED), None)
        if group.read is not None and failed is not None:
            # It waits at this date until somebody mends it, and then makes up for all that it missed.
            resolved.append(replace(group, firings=firings[: failed + 1], following=firings[failed].period))
        else:
            resolved.append(replace(group, firings=firings))
    return resolved


def _obligation_id(trigger: Trigger) -> UUID | str | None:
    given = trigger.template.get("obligation_id")
    try:
        return None if given is None else UUID(str(given))
    except ValueError:
        return str(given)


def _aimed(firing: Firing, named: UUID | str | None, found: Mapping[UUID, Row[Any]]) -> Firing:
    if firing.result != SUCCESS:
        return firing
    if named is None:
        return firing.ends(SKIPPED, "its template has no obligation_id")
    obligation = found.get(named) if isinstance(named, UUID) else None
    if obligation is None or obligation.company_id != firing.trigger.company_id:
        return firing.ends(FAILED, "its obligation is none of the company's", again=True)
    if not obligation.applicable:
        return firing.ends(SKIPPED, "the obligation is not applicable")
    template = firing.trigger.template
    frequency = template.get("frequency") or firing.trigger.config.get("frequency") or obligation.frequency
    if firing.trigger.target == "SCHEDULE" and frequency not in FREQUENCIES:
        return firing.ends(SKIPPED, "its template has no frequency that is known")
    base = _date(template.get("base_date")) or firing.base_date or firing.due_date
    return replace(firing, obligation_id=obligation.id, frequency=frequency, base_date=base)


def _date(given: Any) -> date | None:
    try:
        return date.fromisoformat(given) if isinstance(given, str) else None
    except ValueError:
        return None


def _write(run: Run, groups: Sequence[Group], record: str, size: int) -> list[Group]:
    """Make what the firings make, record them and move the rules, a transaction a chunk; return what was refused."""

    def write(tx: Transaction, chunk: Sequence[Group]) -> None:
        held = _held(run, tx, chunk)
        firings = [one for group in held for one in group.firings]
        binds = {"firings": msgspec.json.encode([_row(one) for one in firings], enc_hook=as_text).decode()}
        run.count(
            "deadlines", tx.execute(statement(PACKAGE, "make_trigger_deadlines"), today=run.today, **binds)
        )
        run.count("schedules", tx.execute(statement(PACKAGE, "upsert_trigger_schedules"), **binds))
        tx.execute(statement(PACKAGE, record), as_of=run.as_of, **binds)
        _advance(run, tx, held)
        _count(run, firings)

    bad = each_chunk(run, groups, write, size)
    again = [replace(one, firings=[_refused(one)], following=one.read) for one in bad]
    each_chunk(run, again, lambda tx, chunk: _record_refused(run, tx, chunk, record), size)
    return bad


def _refused(group: Group) -> Firing:
    return group.firings[0].ends(FAILED, "the database refused what it makes", again=True)


def _record_refused(run: Run, tx: Transaction, chunk: Sequence[Group], record: str) -> None:
    rows = [_row(group.firings[0]) for group in _held(run, tx, chunk)]
    firings = msgspec.json.encode(rows, enc_hook=as_text).decode()
    tx.execute(statement(PACKAGE, record), as_of=run.as_of, firings=firings)


def _held(run: Run, tx: Transaction, chunk: Sequence[Group]) -> list[Group]:
    """Hold the rules, and return what is still to be fired: the world moved meanwhile."""
    ids = sorted({group.trigger.id for group in chunk})
    held = {row.id: row for row in tx.rows(statement(PACKAGE, "hold_trigger_rules"), ids=ids)}
    by_event = [one for group in chunk for one in group.firings if one.event is not None]
    fired = {
        (row.trigger_rule_id, row.event_id)
        for row in tx.rows(
            statement(PACKAGE, "events_fired"),
            rules=[one.trigger.id for one in by_event],
            events=[one.event.id for one in by_event if one.event is not None],
        )
    }
    left = [
        group
        for group in chunk
        if group.trigger.id in held
        and (group.read is None or held[group.trigger.id].next_execution_date == group.read)
        and all(one.event is None or (one.trigger.id, one.event.id) not in fired for one in group.firings)
    ]
    run.count("skipped", len(chunk) - len(left))
    return left


def _advance(run: Run, tx: Transaction, groups: Sequence[Group]) -> None:
    fired: Counter[UUID] = Counter()
    moves: dict[UUID, Group] = {}
    for group in groups:
        fired[group.trigger.id] += sum(one.result == SUCCESS for one in group.firings)
        if group.read is not None:
            moves[group.trigger.id] = group
    rules: list[dict[str, Any]] = [
        {
            "rule": rule,
            "fired": number,
            "moves": rule in moves,
            "next_execution_date": moves[rule].following if rule in moves else None,
        }
        for rule, number in fired.items()
    ]
    tx.execute(
        statement(PACKAGE, "advance_trigger_rules"),
        rules=msgspec.json.encode(rules, enc_hook=as_text).decode(),
        ids=list(fired),
        as_of=run.as_of,
    )


def _row(one: Firing) -> dict[str, Any]:
    context = {"rule_name": one.trigger.name, "trigger_type": one.trigger.type}
    if one.event is not None:
        context["event_type"] = one.event.event_type
    data = {"created_entity_type": one.trigger.target, "execution_context": context, **one.series}
    if one.reason is not None:
        data["reason"] = one.reason
    if one.again:
        data["again"] = True
    return {
        "rule": one.trigger.id,
        "event": None if one.event is None else one.event.id,
        "period": one.period,
        "company_id": one.trigger.company_id,
        "obligation_id": one.obligation_id,
        "due_date": one.due_date,
        "previous": one.previous,
        "base_date": one.base_date,
        "frequency": one.frequency,
        "target": one.trigger.target,
        "result": one.result,
        "data": data,
    }


def _count(run: Run, firings: Sequence[Firing]) -> None:
    said: dict[UUID, set[str]] = defaultdict(set)
    for one in firings:
        run.count("processed")
        run.count(one.trigger.type.lower())
        run.count({SUCCESS: "succeeded", SKIPPED: "skipped"}.get(one.result, "failed"))
        if one.reason is not None and one.reason not in said[one.trigger.id]:
            said[one.trigger.id].add(one.reason)
            level = run.log.warning if one.result == FAILED else run.log.info
            level(
                "trigger rule: job=%s recordId=%s result=%s err=%s",
                run.job,
                one.trigger.id,
                one.result,
                one.reason,
                extra={"job": run.job, "recordId": str(one.trigger.id), "err": one.reason},
            )
