"""The Retry-After header."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from hooks.retry_after import LONGEST, retry_at

NOW = datetime(2027, 3, 1, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("120", NOW + timedelta(seconds=120)),
        (" 0 ", NOW),
        ("1.5", NOW + timedelta(seconds=1.5)),
        ("999999999999999999", NOW + LONGEST),
        ("Mon, 01 Mar 2027 09:05:00 GMT", NOW + timedelta(minutes=5)),
        ("Mon, 01 Mar 2027 03:05:00 -0600", NOW + timedelta(minutes=5)),
        ("Monday, 01-Mar-27 09:05:00 GMT", NOW + timedelta(minutes=5)),
        ("Mon, 01 Mar 2027 08:00:00 GMT", NOW),
        ("Fri, 31 Dec 9999 23:59:59 -2300", None),
        ("Mon, 01 Mar 3027 09:05:00 GMT", NOW + LONGEST),
        (None, None),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("NaN", None),
        ("١٢٠", None),
        ("1" * 500, None),
    ],
)
def test_seconds_and_dates_are_read(header: str | None, expected: datetime | None) -> None:
    """E3: nothing goes out earlier than the service asked for, in either form, nor never again by a typo."""
    assert retry_at(header, NOW) == expected
