"""What the benchmarks found: a table for the terminal, and docs/benchmarks.md."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from bench.measure import Comparison, Spread
from stack.home import PROJECT

REASONS = Path(__file__).with_name("reasons.toml")
PAGE = PROJECT / "docs" / "benchmarks.md"

HEADING = ("what", "ratio", "goal", "met", "rounds", "limit against itself", "job", "limit")

_TWO_DIGITS = 10

_HEAD = """\
# Benchmarks

Written by `make bench`. Each job is timed beside its limit, in one run and by turns, on the same machine; what
counts is the ratio of the two middle times, since seconds are the machine's. "Rounds" is the lowest and the
highest ratio of a single round. "Limit against itself" is how far the limit's own times lie from their middle:
a ratio that is closer to its goal than that says little. Postgres runs with fsync and synchronous_commit on.

"""


def row(compared: Comparison) -> list[str]:
    """Return a comparison's line in the table, under HEADING."""
    return [
        compared.name,
        _times(compared.ratio),
        _goal(compared),
        "yes" if compared.met else "no",
        _range(compared.ratios),
        _range(compared.noise),
        _taken(compared.job_seconds, compared.unit),
        _taken(compared.limit_seconds, compared.unit),
    ]


def page(found: Sequence[Comparison], machine: Mapping[str, str]) -> str:
    """Return the page in docs for what was found on a machine."""
    return "".join(
        [
            _HEAD,
            _table(HEADING, [row(compared) for compared in found]),
            "\n## What is timed\n\n",
            *(f"- **{compared.name}**: {compared.job}; against {compared.limit}.\n" for compared in found),
            "\n## Shortfalls\n\n",
            *(_shortfalls(found) or ["None.\n"]),
            "\n## The machine\n\n",
            _table(("", ""), [[name, value] for name, value in machine.items()]),
        ]
    )


def _shortfalls(found: Sequence[Comparison]) -> list[str]:
    return [
        f"- **{compared.name}**: {_times(compared.ratio)} instead of {_goal(compared)}. "
        f"{reason_of(compared.name)}\n"
        for compared in found
        if not compared.met
    ]


def reason_of(name: str) -> str:
    """Return what keeps a comparison from its goal, where that is known; the longest beginning of its name counts."""
    known = [begin for begin in _reasons() if name.startswith(begin)]
    return " ".join(_reasons()[max(known, key=len)].split()) if known else "Why is not known."


@cache
def _reasons() -> Mapping[str, str]:
    return tomllib.loads(REASONS.read_text(encoding="utf-8"))


def _table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heading, ["---"] * len(heading), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _range(spread: Spread) -> str:
    return f"{_times(spread.low)} to {_times(spread.high)}"


def _times(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < _TWO_DIGITS else f"{ratio:.0f}"


def _goal(compared: Comparison) -> str:
    return f"{compared.goal.value} {compared.goal_ratio:g}"


def _taken(taken: Sequence[float], unit: str) -> str:
    middle = Spread.of(taken).middle
    if unit:
        return f"{middle:,.1f} {unit}"
    return f"{middle * 1000:.0f} ms" if middle < 1 else f"{middle:,.1f} s"
