"""Schedules: what is refused when it is saved, and when a job runs, in every zone and over every clock change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from importlib import resources
from itertools import islice, pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from include.errors import BadInput
from include.nifya.schedules import Schedule, first_after, next_after, parse

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
FIRST, LAST = datetime(2026, 1, 1, tzinfo=UTC), datetime(2037, 1, 1, tzinfo=UTC)
"""Eleven years, so that ten years of changes lie within whatever the season."""

DAILY = {"type": "daily", "hourOfDay": 9}
CRON = {"type": "cron", "expression": "0 9 * * *"}


def at(text: str) -> datetime:
    """Read an instant."""
    return datetime.fromisoformat(text).astimezone(UTC)


def runs(schedule: Schedule, since: datetime) -> Iterator[datetime]:
    """Yield the runs of a job that is never late."""
    now = since
    while True:
        following = next_after(schedule, now, now)
        assert following > now
        now = following
        yield now


def daily(hour: int, minute: int, zone: str) -> Schedule:
    """Return a daily schedule."""
    return parse({"type": "daily", "hourOfDay": hour, "minuteOfHour": minute, "timezone": zone})


def cron(expression: str, zone: str = "Europe/Madrid") -> Schedule:
    """Return a cron schedule."""
    return parse({"type": "cron", "expression": expression, "timezone": zone})


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "Expected `object`, got `null`"),
        ([], "Expected `object`, got `array`"),
        ({}, "`type`"),
        ({"type": "monthly"}, "Invalid value 'monthly' in `type`"),
        ({"type": None}, "`type`"),
        ({"type": "cron"}, "required field `expression`"),
        (CRON | {"expression": 5}, "in `expression`"),
        (CRON | {"expression": ""}, "in `expression`"),
        (CRON | {"expression": "0 9 * * *" + " " * 300}, "in `expression`"),
        (CRON | {"expression": "0 0 31 2 *"}, "names a date that never comes"),
        (CRON | {"expression": "0 0 30 2 *"}, "names a date that never comes"),
        (CRON | {"expression": "0 0 31 4,6,9,11 *"}, "names a date that never comes"),
        (CRON | {"expression": "61 9 * * *"}, "out of range"),
        (CRON | {"expression": "0 24 * * *"}, "out of range"),
        (CRON | {"expression": "0 9 0 * *"}, "out of range"),
        (CRON | {"expression": "0 9 * 13 *"}, "out of range"),
        (CRON | {"expression": "0 9 * * 8"}, "out of range"),
        (CRON | {"expression": "* * * *"}, "has 4 fields"),
        (CRON | {"expression": "* * * * * *"}, "has 6 fields"),
        (CRON | {"expression": "@reboot"}, "can't be read"),
        (CRON | {"expression": "5-1 9 * * *"}, "minute '5-1' runs backwards"),
        (CRON | {"expression": "*/100 9 * * *"}, "has a step"),
        (CRON | {"expression": "*/0 9 * * *"}, "has a step"),
        (CRON | {"expression": "R 9 * * *"}, "can't be read"),
        (CRON | {"expression": "H 9 * * *"}, "can't be read"),
        (CRON | {"expression": "٣ 9 * * *"}, "can't be read"),
        (CRON | {"expression": "0 9 1,,2 * *"}, "can't be read"),
        (CRON | {"expression": "0 9 * * mon#9"}, "can't be read"),
        (CRON | {"expression": "0; DROP TABLE users"}, "has 4 fields"),
        (CRON | {"timezone": "Europe/Atlantis"}, "'Europe/Atlantis' is not an IANA time zone"),
        (CRON | {"timezone": "../../etc/passwd"}, "is not an IANA time zone"),
        (CRON | {"timezone": ""}, "is not an IANA time zone"),
        (CRON | {"timezone": "CET+1"}, "is not an IANA time zone"),
        (CRON | {"timezone": 1}, "in `timezone`"),
        (CRON | {"hourOfDay": 9}, "unknown field `hourOfDay`"),
        ({"type": "interval"}, "required field `intervalMs`"),
        ({"type": "interval", "intervalMs": 59_999}, ">= 60000"),
        ({"type": "interval", "intervalMs": -3_600_000}, ">= 60000"),
        ({"type": "interval", "intervalMs": 10**15}, "<= "),
        ({"type": "interval", "intervalMs": 10**30}, "intervalMs"),
        ({"type": "interval", "intervalMs": "3600000"}, "in `intervalMs`"),
        ({"type": "interval", "intervalMs": 3_600_000.5}, "in `intervalMs`"),
        ({"type": "interval", "intervalMs": float("nan")}, "in `intervalMs`"),
        ({"type": "interval", "intervalMs": True}, "got `bool`"),
        (DAILY | {"hourOfDay": 24}, "<= 23"),
        (DAILY | {"hourOfDay": -1}, ">= 0"),
        (DAILY | {"hourOfDay": "9"}, "got `str`"),
        (DAILY | {"minuteOfHour": 60}, "<= 59"),
        ({"type": "daily"}, "required field `hourOfDay`"),
        ({"type": "weekly", "hourOfDay": 9}, "required field `daysOfWeek`"),
        ({"type": "weekly", "hourOfDay": 9, "daysOfWeek": []}, "length >= 1"),
        ({"type": "weekly", "hourOfDay": 9, "daysOfWeek": [7]}, "<= 6"),
        ({"type": "weekly", "hourOfDay": 9, "daysOfWeek": ["monday"]}, "got `str`"),
        ({"type": "weekly", "hourOfDay": 9, "daysOfWeek": [1, 1]}, "names a day twice"),
        ({"type": "weekly", "hourOfDay": 9, "daysOfWeek": [0, 1, 2, 3, 4, 5, 6, 0]}, "length <= 7"),
    ],
)
def test_an_impossible_schedule_is_refused(value: Any, words: str) -> None:
    """A schedule that can't run must be refused when it is saved: later nobody looks."""
    with pytest.raises(BadInput, match="schedule: ") as refused:
        parse(value)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("value", "first"),
    [
        (CRON, "2026-11-28T09:00+01:00"),
        (CRON | {"timezone": "UTC"}, "2026-11-28T09:00Z"),
        (CRON | {"expression": "@daily"}, "2026-11-29T00:00+01:00"),
        (CRON | {"expression": "0 9 ? * ?"}, "2026-11-28T09:00+01:00"),
        (CRON | {"expression": "0 9 * JAN-MAR MON-FRI"}, "2027-01-01T09:00+01:00"),
        (CRON | {"expression": "0 9 L * *"}, "2026-11-30T09:00+01:00"),
        (CRON | {"expression": "0 9 * * 7"}, "2026-11-29T09:00+01:00"),
        (DAILY, "2026-11-28T09:00+01:00"),
        (DAILY | {"minuteOfHour": 30, "timezone": "Asia/Kolkata"}, "2026-11-28T09:30+05:30"),
        ({"type": "weekly", "hourOfDay": 9, "daysOfWeek": [0]}, "2026-11-29T09:00+01:00"),
        ({"type": "weekly", "hourOfDay": 9, "daysOfWeek": [1, 6]}, "2026-11-28T09:00+01:00"),
        ({"type": "interval", "intervalMs": 43_200_000}, "2026-11-28T13:00+01:00"),
    ],
)
def test_the_first_run(value: Any, first: str) -> None:
    """Each kind means what the specification's examples mean; Sunday is 0 in both its cron and its list."""
    assert first_after(parse(value), at("2026-11-28T01:00+01:00")) == at(first)


@pytest.mark.parametrize(
    ("zone", "hour", "minute", "day", "when"),
    [
        ("Europe/Madrid", 2, 30, "2027-03-27", "2027-03-27T01:30Z"),
        ("Europe/Madrid", 2, 30, "2027-03-28", "2027-03-28T01:00Z"),
        ("Europe/Madrid", 2, 30, "2027-03-29", "2027-03-29T00:30Z"),
        ("Europe/Madrid", 2, 30, "2027-10-31", "2027-10-31T00:30Z"),
        ("Europe/Madrid", 2, 30, "2027-11-01", "2027-11-01T01:30Z"),
        # Manitoba and Alberta keep their summer time from 2026 on by the pinned data; older data say otherwise.
        ("America/Winnipeg", 2, 0, "2027-03-14", "2027-03-14T07:00Z"),
        ("America/Winnipeg", 2, 0, "2027-11-07", "2027-11-07T07:00Z"),
        ("America/Chicago", 2, 0, "2027-03-14", "2027-03-14T08:00Z"),
        ("America/Chicago", 1, 0, "2027-11-07", "2027-11-07T06:00Z"),
        ("America/Edmonton", 2, 0, "2026-11-02", "2026-11-02T08:00Z"),
        ("America/Edmonton", 2, 0, "2027-01-15", "2027-01-15T08:00Z"),
        # Saturday's last hour is skipped, so its run is Sunday's first instant.
        ("America/Nuuk", 23, 30, "2027-03-27", "2027-03-28T01:00Z"),
        ("Australia/Lord_Howe", 2, 15, "2027-10-03", "2027-10-02T15:30Z"),
    ],
)
def test_a_clock_change(zone: str, hour: int, minute: int, day: str, when: str) -> None:
    """T1, T7: each local date has its one run, at the first instant after a gap and the first of two."""
    on = date.fromisoformat(day)
    weekday = on.isoweekday() % 7
    before = at(when) - 23 * HOUR
    for value in (
        {"type": "daily", "hourOfDay": hour, "minuteOfHour": minute},
        {"type": "weekly", "daysOfWeek": [weekday], "hourOfDay": hour, "minuteOfHour": minute},
        {"type": "cron", "expression": f"{minute} {hour} * * *"},
        {"type": "cron", "expression": f"{minute} {hour} {on.day} {on.month} *"},
    ):
        schedule = parse(value | {"timezone": zone})
        first, second = islice(runs(schedule, before), 2)
        assert (first, second >= at(when) + 22 * HOUR) == (at(when), True), value


def test_a_cron_for_every_hour_follows_elapsed_time() -> None:
    """Every quarter of an hour means every quarter, in the repeated hour too; a skipped one has none."""
    quarters = cron("*/15 * * * *")
    for since in ("2027-03-28T00:00Z", "2027-10-30T23:00Z"):
        found = list(islice(runs(quarters, at(since)), 20))
        assert found == [at(since) + n * 15 * MINUTE for n in range(1, 21)]


def test_a_day_that_a_country_skips_has_no_run() -> None:
    """Samoa had no 30 December 2011: the 29th and the 31st have one run each, and no third."""
    found = list(islice(runs(daily(9, 0, "Pacific/Apia"), at("2011-12-29T00:00-10:00")), 3))
    assert found == [at("2011-12-29T09:00-10:00"), at("2011-12-31T09:00+14:00"), at("2012-01-01T09:00+14:00")]


@pytest.mark.parametrize(
    ("expression", "days"),
    [
        ("0 9 31 * *", ["2027-01-31", "2027-03-31", "2027-05-31", "2027-07-31", "2027-08-31"]),
        ("0 9 L * *", ["2027-01-31", "2027-02-28", "2027-03-31", "2027-04-30", "2027-05-31"]),
        ("0 9 29 2 *", ["2028-02-29", "2032-02-29", "2036-02-29", "2040-02-29", "2044-02-29"]),
        ("0 9 30 11,2,5,8 *", ["2027-05-30", "2027-08-30", "2027-11-30", "2028-05-30", "2028-08-30"]),
    ],
)
def test_months_do_not_drift(expression: str, days: list[str]) -> None:
    """T5: the 31st and the 29th of February come back; a short month doesn't move the later ones."""
    madrid = ZoneInfo("Europe/Madrid")
    found = islice(runs(cron(expression), at("2027-01-01T00:00Z")), 5)
    assert [run.astimezone(madrid).isoformat()[:16] for run in found] == [f"{day}T09:00" for day in days]


@pytest.mark.parametrize(
    ("planned", "now", "following"),
    [
        ("2027-01-01T00:00Z", "2027-01-01T00:00:07Z", "2027-01-01T12:00Z"),
        ("2027-01-01T00:00Z", "2027-01-01T11:59:59Z", "2027-01-01T12:00Z"),
        ("2027-01-01T00:00Z", "2027-01-01T12:00Z", "2027-01-02T00:00Z"),
        ("2027-01-01T00:00Z", "2027-01-09T07:30Z", "2027-01-09T12:00Z"),
        # Run by hand before its time: that occurrence is done.
        ("2027-01-01T00:00Z", "2026-12-31T20:00Z", "2027-01-01T12:00Z"),
    ],
)
def test_an_interval_is_anchored_on_the_planned_time(planned: str, now: str, following: str) -> None:
    """T5: counted from when it was planned, not from when it ran, or every late run would shift the rest."""
    schedule = parse({"type": "interval", "intervalMs": 12 * 3_600_000})
    assert next_after(schedule, at(planned), at(now)) == at(following)


@pytest.mark.parametrize("value", [DAILY, CRON, {"type": "weekly", "daysOfWeek": [5], "hourOfDay": 9}])
def test_what_was_missed_is_one_run(value: Any) -> None:
    """A platform that was down for a month owes one run, not thirty: the next is in the future."""
    now = at("2027-02-05T08:00+01:00")
    assert next_after(parse(value), at("2027-01-01T09:00+01:00"), now) == at("2027-02-05T09:00+01:00")


def test_there_is_no_run_after_the_calendar_ends() -> None:
    """A planned time that an application wrote far beyond any calendar is refused, not a crash."""
    far = datetime(9999, 12, 31, 12, tzinfo=UTC)
    for value in (
        DAILY,
        CRON,
        CRON | {"expression": "* * * * *"},
        {"type": "interval", "intervalMs": 86_400_000},
    ):
        with pytest.raises(BadInput, match="no run after"):
            next_after(parse(value), far, FIRST)


Changes = tuple[tuple[datetime, timedelta], ...]


@cache
def zones_by_changes() -> dict[Changes, list[str]]:
    """Return every zone of the pinned data, those with the same changes of the clock together."""
    found: dict[Changes, list[str]] = defaultdict(list)
    for name in resources.files("tzdata").joinpath("zones").read_text().split():
        zone = ZoneInfo(name)
        changes = [(FIRST, offset(FIRST, zone))]
        moment = FIRST
        while moment < LAST:
            if offset(moment + DAY, zone) != changes[-1][1]:
                minute = next(
                    n for n in range(1, 1441) if offset(moment + n * MINUTE, zone) != changes[-1][1]
                )
                changes.append((moment + minute * MINUTE, offset(moment + minute * MINUTE, zone)))
            moment += DAY
        found[tuple(changes)].append(name)
    return found


def offset(moment: datetime, zone: ZoneInfo) -> timedelta:
    """Return a zone's offset at an instant."""
    return moment.astimezone(zone).utcoffset() or timedelta(0)


def test_every_zone_and_every_change_of_ten_years() -> None:
    """T1: minute by minute, what a clock on the wall shows decides; every date has one run, whatever its zone.

    The times that are tried lie around the change: before it, at its edges, in what is skipped or repeated.
    """
    by_changes = zones_by_changes()
    assert sum(map(len, by_changes.values())) > 590
    tried = 0
    for changes, names in by_changes.items():
        zone = names[0]
        for (_, old), (change, new) in pairwise(changes):
            wall = walls(change, old, new)
            edges = {change + old, change + new}
            times = {
                (moment + shift).time()
                for moment in edges
                for shift in (-HOUR, -MINUTE, timedelta(0), 20 * MINUTE, 59 * MINUTE, HOUR)
            }
            for clock in times:
                days = {(change + old).date(), (change + new).date()}
                expected = sorted({wall_run(wall, change, datetime.combine(day, clock)) for day in days})
                for schedule in (
                    daily(clock.hour, clock.minute, zone),
                    cron(f"{clock.minute} {clock.hour} * * *", zone),
                ):
                    since = wall_run(wall, change, datetime.combine(min(days) - DAY, clock))
                    assert list(islice(runs(schedule, since), len(expected))) == expected, (zone, clock)
                    tried += 1
    assert tried > 5_000


def walls(change: datetime, old: timedelta, new: timedelta) -> dict[datetime, datetime]:
    """Return the first instant at which a clock shows each local minute, around a change."""
    first: dict[datetime, datetime] = {}
    for n in range(-3 * 1440, 3 * 1440):
        moment = change + n * MINUTE
        shown = (moment + (old if moment < change else new)).replace(tzinfo=None)
        first.setdefault(shown, moment)
    return first


def wall_run(wall: dict[datetime, datetime], change: datetime, local: datetime) -> datetime:
    """Return the instant of a local time; of one that no clock shows, the change that skips it."""
    return wall.get(local, change)


FIELDS = st.sampled_from(["0", "30", "*/20", "5-10", "59", "*"])
HOURS = st.sampled_from(["0", "1", "2", "3", "*/6", "1-3", "23", "*"])
ZONES = st.sampled_from(
    ["Europe/Madrid", "America/Winnipeg", "America/Nuuk", "Australia/Lord_Howe", "Antarctica/Troll",
     "Africa/Casablanca", "America/Havana", "Asia/Gaza", "Pacific/Chatham", "Asia/Kathmandu", "UTC"]
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(minutes=FIELDS, hours=HOURS, zone=ZONES, data=st.data())
def test_any_cron_at_any_moment(minutes: str, hours: str, zone: str, data: st.DataObject) -> None:
    """T1: the next run is later than now, and the wall's clock showed no earlier one."""
    changes = next(changes for changes, names in zones_by_changes().items() if zone in names)
    near = data.draw(st.sampled_from([moment for moment, _ in changes]))
    now = near + timedelta(seconds=data.draw(st.integers(-2 * 86_400, 2 * 86_400)))
    found = next_after(cron(f"{minutes} {hours} * * *", zone), now, now)
    assert found > now
    fits = matching(minutes, hours)
    where = ZoneInfo(zone)
    start = now.replace(second=0) - timedelta(hours=5)
    shown = [(start + n * MINUTE, (start + n * MINUTE).astimezone(where)) for n in range(32 * 60)]
    expected = set()
    seen: set[datetime] = set()
    last = shown[0][1].replace(tzinfo=None)
    for moment, local in shown[1:]:
        wall = local.replace(tzinfo=None, fold=0)
        skipped = [last + n * MINUTE for n in range(1, int((wall - last) / MINUTE))]
        if hours == "*":
            expected |= {moment} if fits(wall) else set()
        else:
            expected |= {moment} if (fits(wall) and wall not in seen) or any(map(fits, skipped)) else set()
        seen.add(wall)
        last = wall
    assert found == min(moment for moment in expected if moment > now)


def matching(minutes: str, hours: str) -> Any:
    """Return what says whether a local minute matches two fields, by a reading of cron of its own."""

    def values(field: str, size: int) -> set[int]:
        if field.startswith("*"):
            return set(range(0, size, int(field[2:] or 1)))
        low, _, high = field.partition("-")
        return set(range(int(low), int(high or low) + 1))

    of_minutes, of_hours = values(minutes, 60), values(hours, 24)
    return lambda wall: wall.minute in of_minutes and wall.hour in of_hours


@settings(max_examples=200, deadline=None)
@given(
    days=st.sets(st.integers(0, 6), min_size=1),
    clock=st.times().map(lambda clock: time(clock.hour, clock.minute)),
    zone=ZONES,
    now=st.datetimes(datetime(2026, 1, 1), datetime(2036, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001 - gains its zone
    late=st.timedeltas(timedelta(0), timedelta(days=40)),
)
def test_any_weekly(days: set[int], clock: time, zone: str, now: datetime, late: timedelta) -> None:
    """A weekly job runs on its days alone, within a week, however late the last run was."""
    value = {
        "type": "weekly",
        "daysOfWeek": sorted(days),
        "hourOfDay": clock.hour,
        "minuteOfHour": clock.minute,
    }
    found = next_after(parse(value | {"timezone": zone}), now - late, now)
    assert now < found <= now + timedelta(days=7, hours=3)
    local = found.astimezone(ZoneInfo(zone))
    if local.time() == clock:
        assert local.isoweekday() % 7 in days


@settings(max_examples=150, deadline=None)
@given(value=st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40)
    | st.sampled_from(["cron", "interval", "daily", "weekly", "* * * * *", "Europe/Madrid", 9, 60_000]),
    lambda inner: st.lists(inner, max_size=8)
    | st.dictionaries(
        st.sampled_from(["type", "expression", "timezone", "intervalMs", "hourOfDay", "daysOfWeek"]) | st.text(),
        inner,
    ),
))  # fmt: skip
def test_any_json_is_read_or_refused(value: Any) -> None:
    """Whatever an API's body holds, the answer is a schedule that runs, or a refusal; never a crash."""
    try:
        schedule = parse(value)
    except BadInput:
        return
    assert first_after(schedule, FIRST) > FIRST


@settings(max_examples=400, deadline=None)
@given(
    expression=st.lists(
        st.text("0123456789*/-,?#LlWwRrHhMONJA", min_size=1, max_size=6), min_size=1, max_size=6
    )
)
def test_any_expression_is_read_or_refused(expression: list[str]) -> None:
    """A cron library has corners; each must end as a refusal or as a next run."""
    try:
        schedule = cron(" ".join(expression))
    except BadInput:
        return
    assert first_after(schedule, FIRST) > FIRST
