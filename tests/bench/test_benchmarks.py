"""The benchmarks run, at a size at which their ratios mean nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from bench import report
from bench.__main__ import BENCHMARKS
from bench.databases import open_databases
from bench.measure import Comparison, Goal

WITH_A_STACK = ("dispatch_run", "queue_start")
"""Those boot Airflow: `make bench` alone runs them."""


@pytest.mark.parametrize("name", [name for name in BENCHMARKS if name not in WITH_A_STACK])
def test_it_runs(name: str, fast_folder: Path) -> None:
    """Each does its work to the end, which it checks itself, and times both sides in every round."""
    benchmark = BENCHMARKS[name]
    with open_databases(fast_folder) as databases:
        found = benchmark.measure(databases, benchmark.TINY)
    assert found
    for compared in found:
        assert compared.job_seconds
        assert len(compared.job_seconds) == len(compared.limit_seconds)
        assert min(*compared.job_seconds, *compared.limit_seconds, 1) > 0


def test_the_page() -> None:
    """A ratio is the quotient of the middle times, and a shortfall is named with its reason."""
    slow = Comparison("two workers against one", "all of it", "its limit", Goal.AT_MOST, 1.3)
    slow.job_seconds, slow.limit_seconds = [2.0, 4.0, 3.0], [1.0, 2.0, 1.5]
    fast = Comparison("a rate", "ours", "theirs", Goal.AT_LEAST, 2)
    fast.job_seconds, fast.limit_seconds = [0.1], [0.5]
    large = Comparison("a memory", "all rows", "few", Goal.AT_MOST, 1.5, unit="MB")
    large.job_seconds, large.limit_seconds = [12.0], [10.0]
    machine: Mapping[str, str] = {"Memory": "24 GB"}
    page = report.page([slow, fast, large], machine)
    assert (
        "| two workers against one | 2.00 | ≤ 1.3 | no | 2.00 to 2.00 | 0.67 to 1.33 | 3.0 s | 1.5 s |"
        in page
    )
    assert "| a rate | 5.00 | ≥ 2 | yes |" in page
    assert "| a memory | 1.20 | ≤ 1.5 | yes | 1.20 to 1.20 | 1.00 to 1.00 | 12.0 MB | 10.0 MB |" in page
    reason = report.reason_of("two workers against one")
    assert f"- **two workers against one**: 2.00 instead of ≤ 1.3. {reason}" in page
    assert "\n" not in reason
    assert report.reason_of("another") == "Why is not known."
    assert report.reason_of("parsing another file") != report.reason_of(
        "parsing clearpath_email_queue_dispatch, x"
    )
    assert "**a rate**: 5.00" not in page
    assert "| Memory | 24 GB |" in page
