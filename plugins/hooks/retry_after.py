"""When a service wants to be asked again: the Retry-After header of HTTP."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

LONGEST = timedelta(days=7)
"""A header that asks for more is read as this much: no service may put us off for ever."""


def retry_at(header: str | None, now: datetime) -> datetime | None:
    """Read seconds or an HTTP date and return an instant (UTC) between `now` and `now` + LONGEST.

    None if there is no header, or nobody can read it.
    """
    text = (header or "").strip()
    if re.fullmatch(r"[0-9]{1,18}(\.[0-9]{1,9})?", text):
        return now + timedelta(seconds=min(float(text), LONGEST.total_seconds()))
    try:
        when = parsedate_to_datetime(text)
        when = when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return min(max(when, now), now + LONGEST)
