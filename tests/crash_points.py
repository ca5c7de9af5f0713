"""What a run of the tests says at the end: at how many points each DAG, and the queue engine, was killed.

A plugin, since the process that gathers what several others tested reads no folder's own conftest.
"""

from __future__ import annotations

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the number of points at which each DAG was killed."""
    points = sorted(
        value
        for report in terminalreporter.stats.get("passed", [])
        for name, value in getattr(report, "user_properties", [])
        if name == "crash points"
    )
    if points:
        terminalreporter.section("killed anywhere")
        for line in points:
            terminalreporter.line(line)
