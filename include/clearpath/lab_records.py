"""A lab's record, read and checked: what can't be a result is set aside with its reason."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from include.as_of import instant, within_reach
from include.clearpath.units import reported
from include.errors import BadInput

EXCERPT = 500
_TEXT = 200
_DEEPEST = 50
# A null character as JSON writes it, which is not a backslash that happens to stand before "u0000".
_NULL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


@dataclass(frozen=True, slots=True)
class LabRecord:
    """One result: a concentration in Bq/m³ for the session that an order or a kit names."""

    key: str
    lab_id: str | None
    order_id: str | None
    kit_serial_number: str | None
    value_bq_m3: Decimal
    below_detection: bool
    reported_value: str
    reported_unit: str
    measured_at: datetime | None
    source: Any

    def __str__(self) -> str:
        return self.key


@dataclass(frozen=True, slots=True)
class SetAside:
    """A record that can't be saved as it is, for a person to look at; `kept` to be tried again."""

    key: str
    reason_code: str
    reason: str
    source: Any
    kept: bool = True

    def __str__(self) -> str:
        return self.key

    @property
    def excerpt(self) -> str:
        return _printable(json.dumps(self.source, ensure_ascii=False, default=str))[:EXCERPT]

    @property
    def record(self) -> str | None:
        """The record as JSON that Postgres can hold, else None."""
        if not self.kept:
            return None
        try:
            stored = json.dumps(self.source, allow_nan=False, ensure_ascii=False)
            stored.encode()
        except ValueError:
            return None
        return None if _NULL.search(stored) else stored


def record_key(source: Any) -> str:
    """Return what tells a record from all others: its id, else the hash of all of it."""
    if isinstance(source, Mapping):
        own = source.get("id")
        if isinstance(own, str | int) and not isinstance(own, bool) and 0 < len(str(own)) <= _TEXT:
            text = str(own).strip()
            if text and _printable(text) == text:
                return text
    canonical = json.dumps(source, sort_keys=True, default=str).encode()
    return f"sha256:{hashlib.sha256(canonical).hexdigest()}"


def created_at(source: Any) -> datetime | None:
    """Return when the lab made a record, or None if it doesn't say so readably."""
    try:
        return within_reach(instant(source["created_at"], "created_at"), "created_at")
    except (BadInput, KeyError, TypeError):
        return None


def read(source: Any, key: str | None = None) -> LabRecord | SetAside:
    """Read a record as the lab sent it; `key` is the one that it was set aside under."""
    if _deeper(source, _DEEPEST):
        own = source.get("id") if isinstance(source, Mapping) else None
        part = {"id": own, "…": "…"} if isinstance(own, str | int) else "…"
        reason = f"it is nested more than {_DEEPEST} deep"
        return SetAside(record_key(part), "malformed", reason, part, kept=False)
    key = key or record_key(source)
    if not isinstance(source, Mapping):
        return SetAside(
            key, "malformed", f"a result is a JSON object, this is {type(source).__name__}", source
        )
    try:
        order_id, serial = _names(source)
        measured = source.get("measured_at")
        measured_at = None if measured is None else _instant(measured, "measured_at")
        _instant(source.get("created_at"), "created_at")
    except BadInput as error:
        return SetAside(key, "malformed", str(error), source)
    try:
        value = reported(source.get("value"), source.get("unit"))
    except BadInput as error:
        return SetAside(key, "bad_value", str(error), source)
    return LabRecord(
        key=key,
        lab_id=None if key.startswith("sha256:") else key,
        order_id=order_id,
        kit_serial_number=serial,
        value_bq_m3=value.value_bq_m3,
        below_detection=value.below_detection,
        reported_value=str(source["value"]),
        reported_unit=str(source["unit"]),
        measured_at=measured_at,
        source=source,
    )


def _instant(given: Any, name: str) -> datetime:
    return within_reach(instant(str(given)[:60], name), name)


def _names(source: Mapping[str, Any]) -> tuple[str | None, str | None]:
    order_id, serial = _text(source, "order_id"), _text(source, "kit_serial_number")
    if order_id is None and serial is None:
        raise BadInput("neither order_id nor kit_serial_number is given")
    return order_id, serial


def _deeper(source: Any, depth: int) -> bool:
    """Say whether a record holds more than `depth` levels, without a call for each of them."""
    level = [source]
    for _ in range(depth):
        level = [
            inner
            for outer in level
            if isinstance(outer, Mapping | list)
            for inner in (outer.values() if isinstance(outer, Mapping) else outer)
        ]
        if not level:
            return False
    return True


def _text(source: Mapping[str, Any], name: str) -> str | None:
    value = source.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str) or len(value) > _TEXT or _printable(value) != value:
        raise BadInput(f"{name}: {str(value)[:60]!r} is not a plain text of at most {_TEXT} characters")
    return value


def _printable(text: str) -> str:
    """Return the text without what neither a page nor Postgres takes: control characters, lone surrogates."""
    return "".join(c for c in text if c.isprintable())
