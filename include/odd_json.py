"""JSON as databases hold it: Postgres takes numbers and depths that Python refuses, and one must not stop all rows."""

from __future__ import annotations

import json
import math
from typing import Any

_MOST_DIGITS = 4_000
"""Fewer than Python turns into a number."""


def read(given: str | bytes) -> Any:
    """Return what a JSON text says; a number that is out of reach comes as its text, as does all that nests too deep.

    Raises ValueError if it is no JSON.
    """
    try:
        try:
            return json.loads(given, parse_float=_finite)
        except ValueError:
            # Only here, since it is slow.
            return json.loads(given, parse_int=_whole, parse_float=_finite)
    except RecursionError:
        return given if isinstance(given, str) else given.decode()


def _whole(digits: str) -> int | str:
    return int(digits) if len(digits) <= _MOST_DIGITS else digits


def _finite(digits: str) -> float | str:
    number = float(digits)
    return number if math.isfinite(number) else digits
