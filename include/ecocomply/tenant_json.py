"""JSON that tenants wrote: read as a text, so that one that nobody can read is a fault of its row alone."""

from __future__ import annotations

import json
from typing import Any

from include.errors import BadInput


def read_json(given: str | None) -> Any:
    """Return what a JSON text says. Raises BadInput for numbers of thousands of digits, or lists as deep."""
    if given is None:
        return None
    try:
        return json.loads(given)
    except (ValueError, RecursionError):
        raise BadInput("its JSON can't be read") from None
