"""Dates as sentences say them."""

from __future__ import annotations

import locale
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest

from include.dates_in_words import day, days_spelled_out, instant
from include.odd_dates import OddDate


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (date(2027, 3, 3), "3 March 2027"),
        (date(2028, 2, 29), "29 February 2028"),
        (date(999, 12, 1), "1 December 999"),
    ],
)
def test_a_day(value: date, words: str) -> None:
    """No leading zero, and the month in full."""
    assert day(value) == words


def test_an_instant_is_local() -> None:
    """Case T4: Edmonton is on UTC-6 in March 2027, so the day is the ninth."""
    moment = datetime(2027, 3, 10, 2, 5, tzinfo=UTC)
    assert instant(moment, ZoneInfo("America/Edmonton")) == "9 March 2027, 20:05"
    assert instant(moment, ZoneInfo("UTC")) == "10 March 2027, 02:05"


def test_the_processs_locale_changes_nothing() -> None:
    """A server in Quebec writes the same sentences; strftime would not."""
    before = locale.setlocale(locale.LC_TIME)
    try:
        for name in ("fr_CA.UTF-8", "C.UTF-8", "C"):
            try:
                locale.setlocale(locale.LC_TIME, name)
            except locale.Error:
                continue
            assert day(date(2027, 8, 1)) == "1 August 2027"
    finally:
        locale.setlocale(locale.LC_TIME, before)


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("session cancelled on 2027-03-03", "session cancelled on 3 March 2027"),
        ("from 2027-03-03 to 2027-04-01.", "from 3 March 2027 to 1 April 2027."),
        ("no such day 2027-02-30", "no such day 2027-02-30"),
        ("part of a number CP-2027-03-03 or 2027-03-03-7", "part of a number CP-2027-03-03 or 2027-03-03-7"),
        ("other digits \u0662\u0660\u0662\u0667-03-03", "other digits \u0662\u0660\u0662\u0667-03-03"),
        ("", ""),
    ],
)
def test_days_in_a_text_are_spelled_out(text: str, spelled: str) -> None:
    """Reasons are stored with ISO days and read by people; what only looks like a day is left alone."""
    assert days_spelled_out(text) == spelled


@pytest.mark.parametrize("text", ["infinity", "0044-03-15 BC"])
def test_what_python_lacks_is_shown_as_it_is(text: str) -> None:
    """A person who looks for the bad row must see it."""
    assert day(OddDate(text)) == instant(OddDate(text), ZoneInfo("UTC")) == text


def test_an_instant_before_the_zones_first_day() -> None:
    """The first hours of the year 1 were yet to come in Edmonton."""
    moment = datetime(1, 1, 1, 2, tzinfo=UTC)
    assert instant(moment, ZoneInfo("America/Edmonton")) == "0001-01-01 02:00:00+00:00"
