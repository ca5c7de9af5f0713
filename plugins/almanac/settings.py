"""Airflow Variables as the jobs' settings, readable in every process."""

from __future__ import annotations

import contextvars
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from airflow.sdk import Variable


def settings(names: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return the Variables of these names, each with its default where it is not set or empty."""
    if os.environ.get("_AIRFLOW_PROCESS_CONTEXT") == "server":
        # Airflow's look-up commits its thread's session, and the scheduler forbids that around its locks.
        with ThreadPoolExecutor(max_workers=1) as own_session:
            inherited = contextvars.copy_context()
            return own_session.submit(lambda: inherited.run(_look_up, names)).result()
    return _look_up(names)


def _look_up(names: Mapping[str, str | None]) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for name, default in names.items():
        value = Variable.get(name, default=None)
        found[name] = str(value) if value not in (None, "") else default
    return found
