"""Timing two things by turns, and what their times say of each other and of the machine."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum


class Goal(Enum):
    """How a ratio is read: the job may take so many times its limit's time, or must be so many times faster."""

    AT_MOST = "≤"
    AT_LEAST = "≥"


@dataclass(frozen=True, slots=True)
class Spread:
    """The middle of several values, with the lowest and the highest."""

    middle: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(statistics.median(values), min(values), max(values))


@dataclass(slots=True)
class Comparison:
    """A job against its limit: seconds of every round, in the order in which they were taken.

    `job` and `limit` say what was timed. `scale` is by how much the limit's seconds were extrapolated. `unit` is
    of both, where it isn't seconds.
    """

    name: str
    job: str
    limit: str
    goal: Goal
    goal_ratio: float
    scale: float = 1
    unit: str = ""
    job_seconds: list[float] = field(default_factory=list)
    limit_seconds: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """The job's middle time over the limit's; for a speed-up, the other way round."""
        return self._ratio(statistics.median(self.job_seconds), statistics.median(self.limit_seconds))

    @property
    def ratios(self) -> Spread:
        """The ratio of every round, each from two times that were taken one after the other."""
        return Spread.of(
            [self._ratio(job, limit) for job, limit in zip(self.job_seconds, self.limit_seconds, strict=True)]
        )

    @property
    def noise(self) -> Spread:
        """The limit's times over their own middle: what this machine does to a ratio of 1."""
        middle = statistics.median(self.limit_seconds)
        return Spread.of([seconds / middle for seconds in self.limit_seconds])

    @property
    def met(self) -> bool:
        if self.goal is Goal.AT_MOST:
            return self.ratio <= self.goal_ratio
        return self.ratio >= self.goal_ratio

    def _ratio(self, job: float, limit: float) -> float:
        return job / limit if self.goal is Goal.AT_MOST else limit / job


Taking = Callable[[], float]
"""Prepares, works, tidies up, and returns the seconds of the work alone."""


def by_turns(comparison: Comparison, job: Taking, limit: Taking, rounds: int) -> Comparison:
    """Take job and limit once a round; who goes first changes from round to round."""
    for number in range(rounds):
        if number % 2:
            comparison.job_seconds.append(job())
        comparison.limit_seconds.append(limit() * comparison.scale)
        if not number % 2:
            comparison.job_seconds.append(job())
    return comparison


def seconds_of(work: Callable[[], object]) -> float:
    """Return how long `work` takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
