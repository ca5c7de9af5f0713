"""Dates that Postgres holds and Python can't: infinity, years before 1 and after 9999."""

from __future__ import annotations

import re
from datetime import date
from typing import Any, TypeVar

from include.errors import BadInput

_FORM = re.compile(r"-?infinity|\d{5,}-\d\d-\d\d[-+:. \d]*|\d{4,}-\d\d-\d\d[-+:. \d]* BC", re.ASCII)


FIRST_YEAR, LAST_YEAR = 1900, 2999
"""Of the dates that a job reckons with: one outside is a slip of the pen, and its series has no end."""

Day = TypeVar("Day", bound=date)


class OddDate(str):
    """A date or an instant that Python can't hold, as Postgres writes it: `infinity`, `0044-03-15 BC`.

    It compares with dates and instants, and is bound to a statement as it is.
    """

    __slots__ = ()
    __hash__ = str.__hash__

    @classmethod
    def read(cls, text: str) -> OddDate | None:
        """Return the odd date that a text from outside is, or None if it is none."""
        return cls(text) if _FORM.fullmatch(text) else None

    @property
    def before_all(self) -> bool:
        """Whether it lies before every date of Python's; if not, after every one."""
        return self == "-infinity" or self.endswith(" BC")

    def isoformat(self) -> str:
        """Return it as it is: the form in which `read` takes it again."""
        return str(self)

    def __lt__(self, other: Any) -> bool:
        return self.before_all if isinstance(other, date) else super().__lt__(other)

    def __le__(self, other: Any) -> bool:
        return self.before_all if isinstance(other, date) else super().__le__(other)

    def __gt__(self, other: Any) -> bool:
        return not self.before_all if isinstance(other, date) else super().__gt__(other)

    def __ge__(self, other: Any) -> bool:
        return not self.before_all if isinstance(other, date) else super().__ge__(other)


def reckonable(value: Day | OddDate, column: str) -> Day:
    """Return a date or an instant that a job can reckon with.

    Raises BadInput, which names the column, for an OddDate and for a year before 1900 or after 2999.
    """
    if isinstance(value, OddDate) or not FIRST_YEAR <= value.year <= LAST_YEAR:
        raise BadInput(f"{column} {value.isoformat()} is no day between {FIRST_YEAR} and {LAST_YEAR}")
    return value


def as_text(value: Any) -> str:
    """Return an OddDate as its text: how an encoder of JSON writes it. Raises TypeError for anything else."""
    if isinstance(value, OddDate):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON")
