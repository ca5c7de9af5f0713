"""The instant that a run decides by, and the local dates that follow from it.

Every process takes its zone data from the pinned `tzdata` package: the system's copy can be years old.
"""

from __future__ import annotations

import importlib.metadata
import importlib.resources
import re
import zoneinfo
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

from include.errors import BadInput
from include.odd_dates import OddDate

ZONE_DATA = "2026.6"
"""Release of the `tzdata` package that requirements.txt pins."""

# RFC 3339 with an offset; `datetime.fromisoformat` alone also takes dates, weeks and zoneless times.
_INSTANT = re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?([Zz]|[+-]\d{2}:\d{2})")

_EARLIEST, _TOO_LATE = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)


def check_zone_data() -> str:
    """Return the release of the zone data in use.

    Raises BadInput if this process would read any other than the pinned package.
    """
    installed = importlib.metadata.version("tzdata")
    if installed != ZONE_DATA:
        raise BadInput(f"zone data: tzdata {installed} is installed, {ZONE_DATA} is pinned")
    if zoneinfo.TZPATH:
        raise BadInput(
            f"zone data: the system's copy at {':'.join(zoneinfo.TZPATH)} would be read before tzdata "
            f'{installed}; set PYTHONTZPATH=""'
        )
    return installed


def instant(text: str, name: str = "as_of") -> datetime:
    """Read an RFC 3339 instant and return it in UTC.

    Raises BadInput for anything without an offset or not a real instant.
    """
    if not _INSTANT.fullmatch(text):
        raise BadInput(f"{name}: {text!r} is not an instant with an offset, as in 2027-03-10T02:00:00Z")
    try:
        return datetime.fromisoformat(text.upper().replace(" ", "T")).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise BadInput(f"{name}: {text!r} is not an instant: {error}") from None


def within_reach(moment: datetime, name: str = "as_of") -> datetime:
    """Return an aware instant that a run can decide by, with days and years before and after it.

    Raises BadInput for one before 1970 or after 8999.
    """
    if not _EARLIEST <= moment < _TOO_LATE:
        raise BadInput(f"{name}: {moment.isoformat()} is not between the years 1970 and 8999")
    return moment


def not_later_than(as_of: datetime, now: datetime) -> None:
    """Raise BadInput if `as_of` lies in the future."""
    if as_of > now:
        raise BadInput(f"as_of: {as_of.isoformat()} is later than now ({now.isoformat(timespec='seconds')})")


def local_date(as_of: datetime | OddDate, zone: ZoneInfo) -> date:
    """Return the calendar day of an aware instant in a zone. Raises BadInput if it has none there."""
    try:
        if not isinstance(as_of, OddDate):
            return as_of.astimezone(zone).date()
    except OverflowError:
        pass
    raise BadInput(f"{as_of.isoformat()} has no day in the calendar of {zone.key}")


def local_midnight(day: date, zone: ZoneInfo) -> datetime:
    """Return the instant (UTC) at which a local day begins. Raises BadInput if that can't be told."""
    try:
        return datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC)
    except OverflowError:
        raise BadInput(f"{day.isoformat()} has no beginning in UTC") from None
