"""The lab partner's results as the polling job sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class LabPage:
    """One page of results as the lab sent them, unchecked; `next_cursor` is None on the last page.

    A record that is not a JSON object stays as it came: the job sets it aside with its reason.
    """

    records: tuple[Mapping[str, Any] | Any, ...]
    next_cursor: str | None


class Lab(Protocol):
    """Where results come from."""

    def results_since(self, since: datetime | None, cursor: str | None = None) -> LabPage:
        """Return one page of the results created at or after `since` (aware; None: all), oldest first.

        Raises Outage if the lab can't be reached, answers 401, 403, 408, 429 or 5xx, or sends something
        that is not a page; Refused for any other 4xx.
        """
        ...
