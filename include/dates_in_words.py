"""Dates and instants as a sentence says them, in English whatever the process's locale."""

from __future__ import annotations

import re
from datetime import date, datetime
from zoneinfo import ZoneInfo

from include.odd_dates import OddDate

_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_ISO_DAY = re.compile(r"(?<![\w-])(\d{4})-(\d{2})-(\d{2})(?![\w-])", re.ASCII)


def day(value: date | OddDate) -> str:
    """Return a day as in `3 March 2027`; what Python's calendar lacks as Postgres writes it."""
    if isinstance(value, OddDate):
        return str(value)
    return f"{value.day} {_MONTHS[value.month - 1]} {value.year}"


def instant(value: datetime | OddDate, zone: ZoneInfo) -> str:
    """Return an aware instant in a zone as in `3 March 2027, 14:05`; what has none there as it is."""
    if isinstance(value, OddDate):
        return str(value)
    try:
        local = value.astimezone(zone)
    except OverflowError:
        return value.isoformat(sep=" ")
    return f"{day(local)}, {local:%H:%M}"


def days_spelled_out(text: str) -> str:
    """Return the text with each `2027-03-03` in it as `3 March 2027`; what is no real day stays."""

    def spelled(found: re.Match[str]) -> str:
        try:
            return day(date.fromisoformat(found.group()))
        except ValueError:
            return found.group()

    return _ISO_DAY.sub(spelled, text)
