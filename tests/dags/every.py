"""Every DAG, from the folder: its file, its job's module, and the world that its system's tests provide."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DAGS = ROOT / "dags"


@dataclass(frozen=True)
class DagFile:
    """One DAG file; the stem is the address of all else."""

    path: Path

    @property
    def dag_id(self) -> str:
        return self.path.stem

    @property
    def system(self) -> str:
        return self.path.parent.name

    @property
    def job(self) -> Any:
        return importlib.import_module(f"include.{self.system}.{self.dag_id.removeprefix(self.system + '_')}")

    @property
    def tables(self) -> ModuleType:
        """The module include/<system>/tables.py."""
        return importlib.import_module(f"include.{self.system}.tables")

    @property
    def world(self) -> Any:
        """What tests/<system>/world.py provides: `seed`, `world`, `grow`, `outside`, and the constants beside them.

        Where the system is too large for one world, a job's own things stand in tests/<system>/worlds/<job>.py.
        """
        of_system = importlib.import_module(f"tests.{self.system}.world")
        own = f"tests.{self.system}.worlds.{self.dag_id.removeprefix(self.system + '_')}"
        if importlib.util.find_spec(f"tests.{self.system}.worlds") is None:
            return of_system
        return SimpleNamespace(**{**vars(of_system), **vars(importlib.import_module(own))})

    def __str__(self) -> str:
        return self.dag_id


@cache
def dag_files() -> tuple[DagFile, ...]:
    """Return every DAG file; there is at least one, or the tests over all of them would say nothing."""
    found = tuple(DagFile(path) for path in sorted(DAGS.glob("*/*.py")) if path.stem != "__init__")
    assert found, f"no DAG file under {DAGS}"
    return found
