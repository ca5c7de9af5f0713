"""When a recurring job runs next: cron, interval, daily and weekly, each in its time zone.

A job that names hours runs once for each of its local times: where clocks skip one, at the first instant after
the gap; where they repeat one, the first time. A cron for every hour follows elapsed time instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import cache, lru_cache
from importlib import resources
from typing import Annotated, Any, NamedTuple
from zoneinfo import ZoneInfo

import msgspec
from croniter import CroniterBadDateError, CroniterError, croniter

from include.errors import BadInput
from include.nifya import ZONE

SHORTEST_MS = 60_000
LONGEST_MS = 366 * 24 * 60 * 60 * 1_000
_LONGEST_EXPRESSION = 200
_LONGEST_ZONE = 64
_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_DAY = timedelta(days=1)
_SECOND = timedelta(seconds=1)
_CRON_FIELDS = 5
_HOUR_FIELD = 1

# What the application's cron knows too: no seconds, no years, no random or hashed values.
_FIELD = re.compile(r"[0-9A-Za-z*?,/#\-]{1,100}", re.ASCII)
_FIELD_NAMES = ("minute", "hour", "day of month", "month", "day of week")
_LAST = (59, 23, 31, 12, 7)
_RANGE = re.compile(r"(?P<low>\d+)-(?P<high>\d+)(?:/\d+)?", re.ASCII)
_STEP = re.compile(r"[^/]+/(?P<step>\d+)", re.ASCII)
_RANDOM = re.compile(r"(?<![A-Za-z])[rRhH](?![A-Za-z])", re.ASCII)

_Hour = Annotated[int, msgspec.Meta(ge=0, le=23)]
_Minute = Annotated[int, msgspec.Meta(ge=0, le=59)]
_Weekday = Annotated[int, msgspec.Meta(ge=0, le=6, description="0 is Sunday, as in JavaScript")]


class _Schedule(
    msgspec.Struct, frozen=True, tag_field="type", forbid_unknown_fields=True, rename="camel", kw_only=True
):
    timezone: Annotated[str, msgspec.Meta(description="An IANA name; Europe/Madrid if none is given")] = (
        ZONE.key
    )

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.timezone)


class Cron(_Schedule, frozen=True, tag="cron"):
    """Five fields: minute, hour, day of month, month, day of week; or a name such as @daily."""

    expression: Annotated[str, msgspec.Meta(min_length=1, max_length=_LONGEST_EXPRESSION)]


class Interval(_Schedule, frozen=True, tag="interval"):
    """Every so many milliseconds, counted from the planned time, however late a run was."""

    interval_ms: Annotated[int, msgspec.Meta(ge=SHORTEST_MS, le=LONGEST_MS)]


class Daily(_Schedule, frozen=True, tag="daily"):
    """At a local time of every day."""

    hour_of_day: _Hour
    minute_of_hour: _Minute = 0


class Weekly(_Schedule, frozen=True, tag="weekly"):
    """At a local time of some days of the week."""

    days_of_week: Annotated[tuple[_Weekday, ...], msgspec.Meta(min_length=1, max_length=7)]
    hour_of_day: _Hour
    minute_of_hour: _Minute = 0


Schedule = Cron | Interval | Daily | Weekly


def parse(given: Any) -> Schedule:
    """Return the schedule that a JSON value says.

    Raises BadInput, naming the part and the value, for one that is not a schedule or can never run.
    """
    try:
        schedule: Schedule = msgspec.convert(given, type=Schedule)
    except msgspec.ValidationError as error:
        raise BadInput(f"schedule: {_said(error)}") from None
    _check_zone(schedule.timezone)
    if isinstance(schedule, Cron):
        _check_cron(schedule.expression)
    if isinstance(schedule, Weekly) and len(set(schedule.days_of_week)) < len(schedule.days_of_week):
        raise BadInput(f"schedule: daysOfWeek names a day twice: {list(schedule.days_of_week)}")
    return schedule


def next_after(schedule: Schedule, planned: datetime, now: datetime) -> datetime:
    """Return when a job runs that was last planned for `planned`: the first time after both, in UTC.

    Both are aware. What was missed between them is one run, not many. Raises BadInput if there is no such
    time in the calendar.
    """
    after = max(planned, now).astimezone(UTC)
    try:
        if isinstance(schedule, Interval):
            return _next_interval(schedule, planned.astimezone(UTC), after)
        if isinstance(schedule, Cron) and _every_hour(schedule.expression):
            return _next_elapsed(schedule, after)
        return _next_local(_local_times(schedule), schedule.zone, after)
    except (OverflowError, CroniterError) as error:
        raise BadInput(f"schedule: no run after {after.isoformat()}: {error}") from None


def first_after(schedule: Schedule, now: datetime) -> datetime:
    """Return when a job that has never run does so first; an interval is counted from now on."""
    return next_after(schedule, now, now)


def in_words(schedule: Schedule) -> str:
    """Return a schedule as a sentence says it: `every day at 09:00, Europe/Madrid`."""
    match schedule:
        case Cron():
            return f"cron {schedule.expression}, {schedule.timezone}"
        case Interval():
            return f"every {_span(timedelta(milliseconds=schedule.interval_ms))}"
        case Daily():
            return f"every day at {_clock(schedule)}, {schedule.timezone}"
        case Weekly():
            days = " and ".join(_WEEKDAYS[day] for day in schedule.days_of_week)
            return f"every {days} at {_clock(schedule)}, {schedule.timezone}"


def _clock(schedule: Daily | Weekly) -> str:
    return f"{schedule.hour_of_day:02}:{schedule.minute_of_hour:02}"


def _span(step: timedelta) -> str:
    for unit, name in ((_DAY, "days"), (timedelta(hours=1), "hours"), (timedelta(minutes=1), "minutes")):
        if step >= unit and not step % unit:
            return f"{step // unit} {name}" if step > unit else name.removesuffix("s")
    return f"{step.total_seconds():g} seconds"


def _said(error: msgspec.ValidationError) -> str:
    # msgspec's place is a path from the root: `$.hourOfDay`.
    return str(error).replace(" - at `$.", " in `").replace("`$`", "the schedule")


def _check_zone(name: str) -> None:
    if len(name) > _LONGEST_ZONE or name not in _zones():
        raise BadInput(f"schedule: timezone {name[:_LONGEST_ZONE]!r} is not an IANA time zone")


@cache
def _zones() -> frozenset[str]:
    return frozenset(resources.files("tzdata").joinpath("zones").read_text(encoding="ascii").splitlines())


def _check_cron(expression: str) -> None:
    fields = expression.split()
    shown = f"schedule: expression {expression!r}"
    if not (len(fields) == 1 and expression.startswith("@")):
        if len(fields) != _CRON_FIELDS:
            raise BadInput(f"{shown} has {len(fields)} fields, not minute, hour, day, month, weekday")
        for name, last, field in zip(_FIELD_NAMES, _LAST, fields, strict=True):
            _check_field(shown, name, last, field)
    try:
        # The names of months and days could be anything in another script's letters.
        found = croniter(expression.encode("ascii").decode(), datetime(2026, 1, 1)).get_next(datetime)  # noqa: DTZ001 - a local time
    except CroniterBadDateError:
        raise BadInput(f"{shown} names a date that never comes") from None
    except (CroniterError, ValueError, KeyError, IndexError, OverflowError) as error:
        raise BadInput(f"{shown} can't be read: {_first_line(error)}") from None
    if not isinstance(found, datetime):
        raise BadInput(f"{shown} can't be read")


def _check_field(shown: str, name: str, last: int, field: str) -> None:
    if not _FIELD.fullmatch(field) or _RANDOM.search(field):
        raise BadInput(f"{shown}: {name} {field!r} can't be read")
    for part in field.split(","):
        if (span := _RANGE.fullmatch(part)) and int(span["low"]) > int(span["high"]):
            raise BadInput(f"{shown}: {name} {part!r} runs backwards")
        if (step := _STEP.fullmatch(part)) and not 1 <= int(step["step"]) <= last:
            raise BadInput(f"{shown}: {name} {part!r} has a step that is not between 1 and {last}")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _next_interval(schedule: Interval, planned: datetime, after: datetime) -> datetime:
    step = timedelta(milliseconds=schedule.interval_ms)
    return planned + ((after - planned) // step + 1) * step


@lru_cache(maxsize=1_000)
def _every_hour(expression: str) -> bool:
    return bool(croniter(expression).expanded[_HOUR_FIELD] == ["*"])


def _next_elapsed(schedule: Cron, after: datetime) -> datetime:
    """Return the first matching instant, stepping over each change of the clock."""
    zone = schedule.zone
    since, offset = after, _offset(after, zone)
    start = _naive(since) + offset
    while True:
        slot: datetime = croniter(schedule.expression, start).get_next(datetime)
        found = slot.replace(tzinfo=UTC) - offset
        change = _first_change(zone, since, found)
        if change is None:
            return found
        since, offset = change, _offset(change, zone)
        # The changed clock's own first minute counts.
        start = _naive(since) + offset - _SECOND


class _LocalTimes(NamedTuple):
    """Yields the local times (naive) of a schedule, in order, from that of a day on."""

    since: Callable[[date], Iterator[datetime]]


def _local_times(schedule: Cron | Daily | Weekly) -> _LocalTimes:
    if isinstance(schedule, Cron):
        return _LocalTimes(lambda day: _cron_times(schedule.expression, day))
    at = time(schedule.hour_of_day, schedule.minute_of_hour)
    days = frozenset(schedule.days_of_week) if isinstance(schedule, Weekly) else frozenset(range(7))
    return _LocalTimes(lambda day: _times_of_days(days, at, day))


def _cron_times(expression: str, day: date) -> Iterator[datetime]:
    midnight = datetime.combine(day, time.min)
    times = croniter(expression, midnight - _SECOND)
    while True:
        yield times.get_next(datetime)


def _times_of_days(days: frozenset[int], at: time, day: date) -> Iterator[datetime]:
    while True:
        # Python's week begins on Monday with 1 here, so Sunday is 7.
        if day.isoweekday() % 7 in days:
            yield datetime.combine(day, at)
        day += _DAY


def _next_local(times: _LocalTimes, zone: ZoneInfo, after: datetime) -> datetime:
    # From the day before: where midnight is skipped, yesterday's last run may still be to come.
    since = after.astimezone(zone).date() - _DAY
    for local in times.since(since):
        instant = _instant(local, zone)
        if instant is not None and instant > after:
            return instant
    raise OverflowError("the calendar ends")


def _instant(local: datetime, zone: ZoneInfo) -> datetime | None:
    """Return when a local time is: its first time, or the first instant after the gap that skips it.

    None if the whole day is skipped, as where a country crosses the date line.
    """
    first = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if first.astimezone(zone).replace(tzinfo=None) == local:
        return first
    change = _first_change(zone, local.replace(tzinfo=zone, fold=1).astimezone(UTC), first)
    if change is None:
        return first
    before, behind = (at.astimezone(zone).date() for at in (change - _SECOND, change))
    return change if local.date() in (before, behind) else None


def _first_change(zone: ZoneInfo, since: datetime, until: datetime) -> datetime | None:
    """Return the first instant after `since`, up to `until`, with another offset than `since`, or None."""
    offset = _offset(since, zone)
    low = since
    while low < until:
        high = min(low + _DAY, until)
        if _offset(high, zone) != offset:
            return _bisected(zone, low, high)
        low = high
    return None


def _bisected(zone: ZoneInfo, low: datetime, high: datetime) -> datetime:
    offset = _offset(low, zone)
    first, last = int(low.timestamp()), int(high.timestamp())
    while last - first > 1:
        middle = (first + last) // 2
        if _offset(datetime.fromtimestamp(middle, UTC), zone) == offset:
            first = middle
        else:
            last = middle
    return datetime.fromtimestamp(last, UTC)


def _offset(at: datetime, zone: ZoneInfo) -> timedelta:
    return at.astimezone(zone).utcoffset() or timedelta(0)


def _naive(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(tzinfo=None)
