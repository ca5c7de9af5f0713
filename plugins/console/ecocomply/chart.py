"""A site's scores as a line: where each day and each band stands in the picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise

WIDTH, HEIGHT = 720, 240
LEFT, RIGHT, TOP, BOTTOM = 40, 12, 10, 26
HIGHEST = 100

BANDS = (("LOW", 0, 25), ("MEDIUM", 25, 50), ("HIGH", 50, 75), ("CRITICAL", 75, HIGHEST))
"""From which score to which each band goes."""


@dataclass(frozen=True, slots=True)
class Point:
    """One day's score and where it stands."""

    day: date
    score: float
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Band:
    """One band, from its upper edge down."""

    name: str
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Chart:
    """Days from `first` to `last`; a day without a score breaks the line, so there may be several."""

    first: date
    last: date
    points: Sequence[Point]
    lines: Sequence[str]
    bands: Sequence[Band]
    marks: Sequence[tuple[int, float]]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    bottom: int = HEIGHT - BOTTOM

    @classmethod
    def of(cls, scores: Sequence[tuple[date, float]], last: date, days: int) -> Chart:
        """Place the scores of `days` days up to `last`; `scores` come in the order of their days."""
        first = last - timedelta(days=days - 1)
        points = [Point(day, score, _across(day, first, days), _down(score)) for day, score in scores]
        return cls(
            first=first,
            last=last,
            points=points,
            lines=[" ".join(f"{one.x},{one.y}" for one in run) for run in _unbroken(points) if len(run) > 1],
            bands=[Band(name, _down(high), round(_down(low) - _down(high), 1)) for name, low, high in BANDS],
            marks=[(score, _down(score)) for score in (0, 25, 50, 75, HIGHEST)],
        )

    @property
    def said(self) -> str:
        """The picture in one sentence."""
        if not self.points:
            return "There is no score in these days."
        scores = [one.score for one in self.points]
        return (
            f"From {self.points[0].score} to {self.points[-1].score}, "
            f"the lowest {min(scores)}, the highest {max(scores)}, on {len(scores)} of "
            f"{(self.last - self.first).days + 1} days."
        )


def _unbroken(points: Sequence[Point]) -> list[list[Point]]:
    runs = [[points[0]]] if points else []
    for before, one in pairwise(points):
        if one.day - before.day > timedelta(days=1):
            runs.append([])
        runs[-1].append(one)
    return runs


def _across(day: date, first: date, days: int) -> float:
    return round(LEFT + (day - first).days / max(days - 1, 1) * (WIDTH - LEFT - RIGHT), 1)


def _down(score: float) -> float:
    return round(TOP + (HIGHEST - score) / HIGHEST * (HEIGHT - TOP - BOTTOM), 1)
