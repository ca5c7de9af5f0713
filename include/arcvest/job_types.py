"""The types of job that the worker does: by whom, and how long one may take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from include.arcvest import bloomberg_scan, email_scan, news_scan, score_ideas, select_daily
from include.arcvest.sources import Sources
from include.queues.engine import Claim
from include.run import Run

Handle = Callable[[Run, Claim, Sources], None]
"""Does one job. What it writes is safe to write again; raises Permanent or Transient if it can't be done."""


@dataclass(frozen=True, slots=True)
class JobType:
    """`seconds` is the most that one job may take: none is claimed that could not end in time."""

    handle: Handle
    seconds: int


TYPES: Mapping[str, JobType] = {
    module.JOB_TYPE: JobType(module.handle, module.SECONDS)
    for module in (news_scan, bloomberg_scan, email_scan, score_ideas, select_daily)
}


def types_within(seconds: float) -> list[str]:
    """Return the types of which one job surely ends within that time."""
    return [name for name, one in TYPES.items() if one.seconds <= seconds]


SETTINGS: dict[str, str | None] = {
    **news_scan.SETTINGS,
    **bloomberg_scan.SETTINGS,
    **email_scan.SETTINGS,
    **score_ideas.SETTINGS,
    **select_daily.SETTINGS,
}
