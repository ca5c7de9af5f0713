"""Dates that Python's calendar lacks: one row of them must not take its whole result away."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from sqlalchemy import Engine, text

from include.engines import make_engine
from include.odd_dates import OddDate

LONG_AGO = ("-infinity", "0044-03-15 BC", "0044-03-15 00:00:00 BC", "0044-03-15 00:00:00+00 BC")
FAR_AHEAD = ("infinity", "12044-03-15", "12044-03-15 10:00:00.5", "294276-12-31 00:00:00+00")


@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamptz"])
@pytest.mark.parametrize("value", [*LONG_AGO, *FAR_AHEAD])
def test_an_odd_date_comes_beside_others(empty_database: Engine, kind: str, value: str) -> None:
    """The driver refuses the whole result for one of them; here it comes, and can be given back."""
    with empty_database.connect() as connection:
        rows = connection.execute(
            text(
                f"SELECT at FROM (VALUES (1, CAST(:odd AS {kind})), (2, '2026-05-05')) AS v (n, at) ORDER BY n"
            ),
            {"odd": value},
        )
        odd, usual = rows.scalars().all()
        assert isinstance(odd, OddDate)
        assert OddDate.read(odd.isoformat()) == odd
        assert isinstance(usual, date)
        assert odd.before_all is (value in LONG_AGO)
        back = connection.execute(
            text(f"SELECT CAST(:odd AS {kind}) = CAST(:value AS {kind})"), {"odd": odd, "value": value}
        )
        assert back.scalar() is True


def test_an_odd_date_has_its_place_among_others() -> None:
    """What is due is told by comparing, and a queue that is paused until infinity is paused."""
    now, today = datetime.now(UTC), date(2026, 5, 5)
    for text_of in FAR_AHEAD:
        odd = OddDate(text_of)
        assert odd > now
        assert odd >= now
        assert not now >= odd
        assert today < odd
    for text_of in LONG_AGO:
        odd = OddDate(text_of)
        assert odd < now
        assert odd <= now
        assert not now <= odd
        assert today > odd


@pytest.mark.parametrize(
    "given", ["", "Infinity", "2026-05-05", "99999", "infinity; DROP TABLE x", "0044-03-15 AD"]
)
def test_no_odd_date(given: str) -> None:
    """A page's address comes from outside: what is no such date is not bound as one."""
    assert OddDate.read(given) is None


def test_the_drivers_forms_whatever_the_role_says(empty_database: Engine) -> None:
    """A database or role set to German dates would make every date unreadable."""
    url = empty_database.url
    with empty_database.connect() as connection:
        for said in ("DateStyle = 'German'", "IntervalStyle = 'iso_8601'", "TimeZone = 'Asia/Kathmandu'"):
            connection.execute(text(f"ALTER DATABASE {url.database} SET {said}"))
        connection.commit()
    engine = make_engine(url)
    try:
        with engine.connect() as connection:
            row = connection.execute(
                text(
                    "SELECT CAST('2026-05-06' AS date), CAST('2026-05-06T10:00Z' AS timestamptz), interval '1 day 2 h'"
                )
            ).one()
    finally:
        engine.dispose()
    assert row[0] == date(2026, 5, 6)
    assert (row[1], str(row[1].tzinfo)) == (datetime(2026, 5, 6, 10, tzinfo=UTC), "UTC")
    assert row[2].total_seconds() == 26 * 3_600
