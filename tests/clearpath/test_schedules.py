"""When ClearPath's DAGs run, on ordinary days and on those on which clocks change (T1)."""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pendulum
import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.timetables import trigger
from airflow.timetables.base import DataInterval, TimeRestriction
from airflow.timetables.trigger import CronTriggerTimetable

from tests.dags.every import DAGS

DAILY = {
    "clearpath_session_expiry": "0 2 * * *",
    "clearpath_certificate_expiry": "0 2 * * *",
    "clearpath_cnrpp_expiry_alert": "0 2 * * *",
    "clearpath_lab_result_polling": "0 6 * * *",
}
DAY = timedelta(days=1)


@pytest.fixture(scope="module")
def schedules() -> dict[str, Any]:
    """Return what each of ClearPath's DAGs says of its schedule."""
    bag = DagBag(str(DAGS / "clearpath"))
    assert bag.import_errors == {}
    return {dag_id: dag.timetable for dag_id, dag in bag.dags.items()}


def runs(timetable: CronTriggerTimetable, first: datetime, last: datetime) -> Iterator[datetime]:
    """Yield the instants of all runs between two instants, each asked for from the one before."""
    everything = TimeRestriction(earliest=pendulum.instance(first), latest=None, catchup=True)
    before: DataInterval | None = None
    while True:
        info = timetable.next_dagrun_info(last_automated_data_interval=before, restriction=everything)
        assert info is not None
        assert before is None or info.run_after > before.end
        if info.run_after > last:
            return
        yield info.run_after
        before = info.data_interval


def midnight(day: date, zone: str) -> datetime:
    """Return the beginning of a local day."""
    return datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(zone))


def test_what_the_dags_say(schedules: dict[str, Any]) -> None:
    """Mountain Time, and the specification's crons; a start date's zone must not decide by accident."""
    said = {
        dag_id: (timetable.expression, str(timetable.timezone))
        for dag_id, timetable in schedules.items()
        if dag_id != "clearpath_certificate_rendering"
    }
    zone = "America/Edmonton"
    daily = {dag_id: (cron, zone) for dag_id, cron in DAILY.items()}
    assert said == daily | {"clearpath_email_queue_dispatch": ("*/15 * * * *", zone)}


@pytest.mark.parametrize(
    ("cron", "zone", "day", "at"),
    [
        # Skipped: an hour later, the same day. Repeated: once, the second time.
        ("30 2 * * *", "Europe/Madrid", date(2027, 3, 28), "2027-03-28T01:30:00Z"),
        ("30 2 * * *", "Europe/Madrid", date(2027, 10, 31), "2027-10-31T01:30:00Z"),
        ("0 2 * * *", "America/Chicago", date(2027, 3, 14), "2027-03-14T08:00:00Z"),
        ("0 2 * * *", "America/Chicago", date(2027, 11, 7), "2027-11-07T08:00:00Z"),
        # By the pinned zone data Manitoba changes no clocks in 2027.
        ("0 2 * * *", "America/Winnipeg", date(2027, 3, 14), "2027-03-14T07:00:00Z"),
        ("0 2 * * *", "America/Winnipeg", date(2027, 11, 7), "2027-11-07T07:00:00Z"),
        # T7: Alberta changes no clocks any more: 08:00Z in winter as in summer.
        ("0 2 * * *", "America/Edmonton", date(2026, 11, 2), "2026-11-02T08:00:00Z"),
        ("0 2 * * *", "America/Edmonton", date(2027, 1, 15), "2027-01-15T08:00:00Z"),
        ("0 2 * * *", "America/Edmonton", date(2027, 7, 15), "2027-07-15T08:00:00Z"),
        ("0 6 * * *", "America/Edmonton", date(2027, 3, 14), "2027-03-14T12:00:00Z"),
    ],
)
def test_one_run_on_the_day(cron: str, zone: str, day: date, at: str) -> None:
    """T1: one run per local date over the days on which clocks change, with its instant on the day itself."""
    timetable = CronTriggerTimetable(cron, timezone=zone)
    found = list(runs(timetable, midnight(day - 3 * DAY, zone), midnight(day + 4 * DAY, zone)))
    dates = [run.astimezone(ZoneInfo(zone)).date() for run in found]
    assert dates == [day + n * DAY for n in range(-3, 4)]
    assert found[3] == datetime.fromisoformat(at)


@pytest.mark.parametrize(
    ("day", "slots"), [(date(2027, 3, 14), 92), (date(2027, 11, 7), 100), (date(2027, 6, 1), 96)]
)
def test_every_quarter_of_an_hour(day: date, slots: int) -> None:
    """T1: the mail queue keeps all slots of a day, of 23 hours and of 25 as well; and no wait is longer."""
    zone = "America/Chicago"
    timetable = CronTriggerTimetable("*/15 * * * *", timezone=zone)
    until = midnight(day + DAY, zone) - timedelta(seconds=1)
    found = list(runs(timetable, midnight(day, zone), until))
    assert len(found) == len(set(found)) == slots
    assert {(b - a).total_seconds() for a, b in pairwise(found)} == {900}


def changing_days(zone: ZoneInfo, year: int) -> list[date]:
    """Return the days on which a zone's offset is another than on the day before, and an ordinary one."""
    first = datetime(year, 1, 1, 12, tzinfo=UTC)
    noons = [first + n * DAY for n in range(366)]
    offsets = [noon.astimezone(zone).utcoffset() for noon in noons]
    changed = [noons[n].date() for n in range(1, 366) if offsets[n] != offsets[n - 1]]
    return [date(year, 6, 15), *changed]


@pytest.mark.parametrize("cron", ["0 2 * * *", "30 2 * * *", "0 0 * * *"])
def test_every_zone(cron: str) -> None:
    """T1: in every IANA zone there is one run per local date, and the next one is always later."""
    zones = sorted(zoneinfo.available_timezones() - {"localtime", "Factory"})
    assert len(zones) > 500
    seen: set[tuple[Any, ...]] = set()
    for name in zones:
        zone = ZoneInfo(name)
        for day in changing_days(zone, 2027):
            first = midnight(day - 2 * DAY, name)
            # Zones that are one and the same need one look.
            key = tuple(
                (first + n * timedelta(hours=1)).astimezone(zone).isoformat() for n in range(0, 120, 6)
            )
            if key in seen:
                continue
            seen.add(key)
            timetable = CronTriggerTimetable(cron, timezone=name)
            dates = [
                run.astimezone(zone).date()
                for run in runs(timetable, first, midnight(day + 2 * DAY, name) - timedelta(seconds=1))
            ]
            assert dates == [day + n * DAY for n in range(-2, 2)], f"{name} around {day}"


@pytest.mark.parametrize(
    "zone", ["America/Edmonton", "America/Chicago", "Europe/Madrid", "Australia/Lord_Howe"]
)
def test_the_next_run_is_later_than_now(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """T1: with catch-up off, at any moment of such a day, the run after the latest that was missed lies ahead."""
    timetable = CronTriggerTimetable("0 2 * * *", timezone=zone)
    restriction = TimeRestriction(earliest=None, latest=None, catchup=False)
    for day in changing_days(ZoneInfo(zone), 2027):
        begin = pendulum.instance(midnight(day, zone)).in_timezone("UTC")
        for minutes in range(0, 26 * 60, 23):
            now = begin.add(minutes=minutes)
            monkeypatch.setattr(trigger, "utcnow", lambda now=now: now)
            days_ago = DataInterval.exact(now.subtract(days=5))
            due = timetable.next_dagrun_info(last_automated_data_interval=days_ago, restriction=restriction)
            assert due is not None
            assert now - timedelta(hours=25) < due.run_after
            following = timetable.next_dagrun_info(
                last_automated_data_interval=due.data_interval, restriction=restriction
            )
            assert following is not None
            assert following.run_after > max(now, due.run_after)


def test_a_queued_row_waits_at_most_a_quarter(schedules: dict[str, Any]) -> None:
    """The specification's own test: a row that is queued at any moment meets a run within 15 minutes."""
    timetable = CronTriggerTimetable(
        schedules["clearpath_email_queue_dispatch"].expression, timezone="America/Edmonton"
    )
    first = datetime(2027, 3, 14, tzinfo=UTC)
    found = list(runs(timetable, first, first + DAY))
    moments = [first + timedelta(minutes=n) for n in range(23 * 60)]
    assert max(next(run for run in found if run >= at) - at for at in moments) <= timedelta(minutes=15)
