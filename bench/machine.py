"""The machine and the versions that a figure belongs to."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path

import psutil

_PACKAGES = ("apache-airflow", "sqlalchemy", "psycopg", "aiohttp", "jinja2")


def describe(postgres: str) -> dict[str, str]:
    """Return what a reader needs to compare figures: processor, memory, system, versions."""
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return {
        "Processor": f"{os.cpu_count()} of {_processor()}",
        "Memory": f"{psutil.virtual_memory().total / 2**30:.0f} GB",
        "System": f"{platform.system()} {platform.release()}",
        "Load before (1, 5, 15 minutes)": load,
        "Python": platform.python_version(),
        "Postgres": postgres,
        **{name: importlib.metadata.version(name) for name in _PACKAGES},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
