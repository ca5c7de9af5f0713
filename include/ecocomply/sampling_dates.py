"""When a parameter is sampled next: by its frequency, counted from the last sample.

Business days are those of the site's country and region.
"""

from __future__ import annotations

from datetime import date, timedelta
from functools import cache

import holidays
from dateutil.relativedelta import relativedelta, weekdays

from include.errors import BadInput

_WEEK = timedelta(days=7)


def next_sample_date(frequency: str, weekday: int, base: date, country: str, region: str) -> date:
    """Return the first day to sample on after `base`, the last sample or the day that the parameter was made.

    `weekday` is 1 for Monday. Raises BadInput for a frequency or a place that there is not.
    """
    match frequency:
        case "DAILY":
            return _next_working_day(country, region, base)
        case "WEEKLY":
            return base + relativedelta(days=1, weekday=weekdays[weekday - 1])
        case "MONTHLY":
            return base + relativedelta(day=1, months=1)
        case "QUARTERLY":
            return base + relativedelta(day=1, months=3 - (base.month - 1) % 3)
        case "ANNUAL":
            return base + relativedelta(years=1)
        case _:
            raise BadInput(f"sampling frequency {frequency!r} is unknown")


def week_after(base: date) -> date:
    """Return the day to sample on where no rule can say one."""
    return base + _WEEK


@cache
def _next_working_day(country: str, region: str, day: date) -> date:
    # Many parameters of one place were last sampled on the same day.
    return _calendar(country.upper(), region.upper()).get_nth_working_day(day, 1)


@cache
def _calendar(country: str, region: str) -> holidays.HolidayBase:
    try:
        return holidays.country_holidays(country, subdiv=region or None)
    except NotImplementedError as error:
        raise BadInput(f"public holidays of {country!r}, region {region!r}, are unknown") from error
