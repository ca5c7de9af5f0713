"""Instants and local dates: what is read, what is refused, and whose zone data counts."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import zoneinfo
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from importlib import resources
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from include import as_of
from include.as_of import check_zone_data, instant, local_date, local_midnight, not_later_than
from include.errors import BadInput
from include.odd_dates import OddDate

EDMONTON = ZoneInfo("America/Edmonton")
ZONES = sorted(zoneinfo.available_timezones() - {"localtime", "Factory"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2027-03-10T02:00:00Z", datetime(2027, 3, 10, 2, tzinfo=UTC)),
        ("2027-03-10t02:00:00z", datetime(2027, 3, 10, 2, tzinfo=UTC)),
        ("2027-03-10 02:00:00+00:00", datetime(2027, 3, 10, 2, tzinfo=UTC)),
        ("2027-03-09T20:00:00-06:00", datetime(2027, 3, 10, 2, tzinfo=UTC)),
        ("2027-03-10T02:00Z", datetime(2027, 3, 10, 2, tzinfo=UTC)),
        ("2027-03-10T02:00:00.123456Z", datetime(2027, 3, 10, 2, 0, 0, 123456, tzinfo=UTC)),
        ("2027-03-10T02:00:00.123456789Z", datetime(2027, 3, 10, 2, 0, 0, 123456, tzinfo=UTC)),
        ("2028-02-29T23:59:59+14:00", datetime(2028, 2, 29, 9, 59, 59, tzinfo=UTC)),
    ],
)
def test_an_instant(text: str, expected: datetime) -> None:
    """RFC 3339 in all its forms, and always handed on in UTC."""
    found = instant(text)
    assert found == expected
    assert found.tzinfo is UTC


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "now", "2027-03-10", "2027-03-10T02:00:00", "2027-W10-3", "20270310T020000Z", "02:00Z",
        "2027-02-29T02:00:00Z", "2027-13-01T02:00:00Z", "2027-03-10T25:00:00Z", "2027-03-10T02:60:00Z",
        "2027-03-10T02:00:00+99:00", "2027-03-10T02:00:00 Europe/Madrid", "2027-03-10T02:00:00Z\n",
        " 2027-03-10T02:00:00Z", "0000-01-01T00:00:00Z", "1741572000", "2027-03-10T02:00:00ZZ",
        "\uff12\uff10\uff12\uff17-03-10T02:00:00Z", "2027-03-10T02:00:00Z; DROP TABLE users",
    ],
)  # fmt: skip
def test_no_instant(text: str) -> None:
    """A date, a local time or garbage would be read in some zone by somebody: it is refused, with its name."""
    with pytest.raises(BadInput, match="since: "):
        instant(text, "since")


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Input from outside is hostile: no text brings another error than ours."""
    with suppress(BadInput):
        assert instant(text).tzinfo is UTC


@given(st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1), timezones=st.timezones()))  # noqa: DTZ001
def test_an_instant_comes_back(moment: datetime) -> None:
    """What we write as an instant is read as the same one."""
    utc = moment.astimezone(UTC)
    assert instant(utc.isoformat()) == utc


@pytest.mark.parametrize(("ahead", "refused"), [(-1, False), (0, False), (1, True)])
def test_later_than_now(ahead: int, *, refused: bool) -> None:
    """A run as of the future would work on what has not happened."""
    now = datetime(2027, 3, 10, tzinfo=UTC)
    moment = now + timedelta(seconds=ahead)
    if refused:
        with pytest.raises(BadInput, match="later than now"):
            not_later_than(moment, now)
    else:
        not_later_than(moment, now)


@pytest.mark.parametrize(
    ("moment", "zone", "day"),
    [
        # T4, as it is told.
        ("2027-03-10T02:00:00Z", "America/Edmonton", date(2027, 3, 9)),
        ("2027-03-10T02:00:00Z", "Europe/Madrid", date(2027, 3, 10)),
        ("2027-03-10T05:59:59Z", "America/Edmonton", date(2027, 3, 9)),
        ("2027-03-10T06:00:00Z", "America/Edmonton", date(2027, 3, 10)),
        # T7: UTC-6 in winter too; by data from 2025 this was still the day before.
        ("2027-01-15T06:30:00Z", "America/Edmonton", date(2027, 1, 15)),
        ("2028-02-29T23:30:00Z", "Pacific/Kiritimati", date(2028, 3, 1)),
        ("2027-01-01T00:30:00Z", "America/Chicago", date(2026, 12, 31)),
    ],
)
def test_a_local_date(moment: str, zone: str, day: date) -> None:
    """T4: the day is that of the system's zone."""
    assert local_date(instant(moment), ZoneInfo(zone)) == day


@pytest.mark.parametrize(
    ("day", "zone", "begins"),
    [
        (date(2027, 3, 1), "America/Edmonton", "2027-03-01T06:00:00Z"),
        (date(2025, 3, 1), "America/Edmonton", "2025-03-01T07:00:00Z"),
        (date(2027, 3, 1), "Europe/Madrid", "2027-02-28T23:00:00Z"),
        # A day whose midnight was skipped begins at one in the morning.
        (date(2018, 11, 4), "America/Sao_Paulo", "2018-11-04T03:00:00Z"),
    ],
)
def test_a_local_midnight(day: date, zone: str, begins: str) -> None:
    """Where a month or a day begins is an instant, with the offset of that very day."""
    assert local_midnight(day, ZoneInfo(zone)) == instant(begins)


@given(st.dates(date(1971, 1, 1), date(2100, 1, 1)), st.sampled_from(ZONES))
def test_a_day_begins_where_it_begins(day: date, zone: str) -> None:
    """In every zone the instant belongs to that day or, where no such day was, to the next."""
    begins = local_midnight(day, ZoneInfo(zone))
    assert day <= local_date(begins, ZoneInfo(zone)) <= day + timedelta(days=1)


def test_the_pinned_zone_data_is_in_use() -> None:
    """T7: this process reads the pinned package, and says which."""
    assert check_zone_data() == as_of.ZONE_DATA == importlib.metadata.version("tzdata")


@pytest.mark.parametrize(("day", "at"), [((2026, 11, 2), 8), ((2027, 1, 15), 8), ((2025, 1, 15), 9)])
def test_alberta_keeps_utc_6(day: tuple[int, int, int], at: int) -> None:
    """T7: two in the morning is 08:00Z on 2 November 2026 and 15 January 2027."""
    assert datetime(*day, 2, tzinfo=EDMONTON).astimezone(UTC).hour == at


AS_A_MACHINE_SEES_IT = """
from datetime import UTC, datetime
from zoneinfo import ZoneInfo
from include.as_of import check_zone_data
print(datetime(2027, 1, 15, 2, tzinfo=ZoneInfo("America/Edmonton")).astimezone(UTC).hour)
try:
    print(check_zone_data())
except Exception as error:
    print(error)
"""


@pytest.mark.parametrize("pinned", [True, False])
def test_a_machine_with_zone_data_of_its_own(tmp_path: Path, *, pinned: bool) -> None:
    """T7: old data on the machine would be an hour off; a process that would read it is refused."""
    old = tmp_path / "America" / "Edmonton"
    old.parent.mkdir()
    # Phoenix has been on UTC-7 for ever, as Alberta's winters were by data from 2025.
    with resources.as_file(resources.files("tzdata") / "zoneinfo" / "America" / "Phoenix") as phoenix:
        shutil.copy(phoenix, old)
    environment = {**os.environ, "PYTHONTZPATH": "" if pinned else str(tmp_path)}
    said = subprocess.run(
        [sys.executable, "-c", AS_A_MACHINE_SEES_IT],
        env=environment, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    if pinned:
        assert said == ["8", as_of.ZONE_DATA]
    else:
        assert said[0] == "9"
        assert str(tmp_path) in said[1]
        assert 'PYTHONTZPATH=""' in said[1]


def test_another_release_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """T7: an upgrade of tzdata must come with its pin, or dates differ between machines."""
    monkeypatch.setattr(as_of, "ZONE_DATA", "2025.2")
    with pytest.raises(BadInput, match=r"is installed, 2025\.2 is pinned"):
        check_zone_data()


@pytest.mark.parametrize(
    "moment",
    [datetime(1, 1, 1, tzinfo=UTC), OddDate("infinity"), OddDate("0044-03-15 00:00:00+00 BC")],
    ids=str,
)
def test_an_instant_without_a_local_day(moment: datetime | OddDate) -> None:
    """A row from outside the calendar is refused as such, so that the others go on."""
    with pytest.raises(BadInput, match=r"no day in the calendar of America/Edmonton"):
        local_date(moment, EDMONTON)


def test_a_day_without_a_beginning() -> None:
    """The first days of the calendar begin before it, seen from the east."""
    with pytest.raises(BadInput, match="0001-01-01 has no beginning"):
        local_midnight(date(1, 1, 1), ZoneInfo("Asia/Tokyo"))
