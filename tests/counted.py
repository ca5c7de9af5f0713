"""What a run of the tests says at the end: where each DAG was killed, and how much the queues went through.

A plugin, since the process that gathers what several others tested reads no folder's own conftest.
"""

from __future__ import annotations

import pytest

SECTIONS = {"crash points": "killed anywhere", "queues": "queues"}
"""By the property that a test records, the heading under which its lines are printed."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what the tests that passed have recorded."""
    recorded = [
        (name, value)
        for report in terminalreporter.stats.get("passed", [])
        for name, value in getattr(report, "user_properties", [])
    ]
    for name, heading in SECTIONS.items():
        if lines := sorted(value for of, value in recorded if of == name):
            terminalreporter.section(heading)
            for line in lines:
                terminalreporter.line(line)
