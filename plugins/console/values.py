"""What rows hold, as data that a person reads: without secrets, and of a length that a page has room for."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_LONGEST_DATA = 20_000
_SECRET = re.compile(
    r"secret|password|passwd|token|api_?key|access_?key|private|credential|authorization", re.IGNORECASE
)


def shown(name: str, value: Any) -> str:
    """Return a value as text; what is named like a secret is `***`."""
    try:
        plain = _without_secrets(name, value)
        text = plain if isinstance(plain, str) else json.dumps(plain, indent=2, ensure_ascii=False)
    except RecursionError:
        return "nests too deep to be shown"
    return text if len(text) <= _LONGEST_DATA else f"{text[:_LONGEST_DATA]}…"


def _without_secrets(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_secrets(key, inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_secrets(name, inner) for inner in value]
    return "***" if value is not None and _SECRET.search(name) else value
