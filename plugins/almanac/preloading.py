"""What a process that forks loads beforehand, so that none of its children pays for it.

The scheduler forks a process for every task, the DAG processor one for every file. Each would import the same
modules again, which takes several times as long as the work of a short task. Code that is edited is still seen
without a restart: a child forgets what was loaded before the edit.
"""

from __future__ import annotations

import ast
import importlib
import logging
import os
import sys
from collections.abc import Iterable, Iterator
from datetime import timedelta
from pathlib import Path

import include

_LOG = logging.getLogger("almanac")
_PROJECT = Path(include.__file__).parent.parent
_ROOTS = (_PROJECT, _PROJECT / "plugins")
_FOLDERS = (_PROJECT / "include", _PROJECT / "plugins")

_loaded: dict[str, tuple[str, int]] = {}


def preload(dags: Path) -> None:
    """Load what the DAG files beneath a folder import, at their top or in their tasks, and what Airflow does.

    A module that can't be loaded is left to the file that wants it, which says so.
    """
    for name in sorted(_imported_by(dags.rglob("*.py"))):
        try:
            importlib.import_module(name)
        except Exception as error:  # noqa: BLE001 - whatever a module does when it is imported
            _LOG.warning("preload: %s is left to who needs it: %s", name, type(error).__name__)
    _use_airflow()
    _note_what_is_loaded()


def _imported_by(dags: Iterable[Path]) -> set[str]:
    """Return the modules that DAG files name, and those of the project that these name in turn."""
    found: set[str] = set()
    waiting = [(file, True) for file in dags]
    while waiting:
        file, is_dag = waiting.pop()
        for name in _named_in(file):
            source = _source_of(name)
            if name in found or not (is_dag or source):
                continue
            found.add(name)
            if source:
                waiting.append((source, False))
    return found


def _named_in(file: Path) -> Iterator[str]:
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            # What is imported from a package of ours may be a module itself.
            yield from (name for a in node.names if _source_of(name := f"{node.module}.{a.name}"))


def _source_of(name: str) -> Path | None:
    """Return the file of a module of this project, or None."""
    places = [root.joinpath(*name.split(".")) for root in _ROOTS]
    files = [file for place in places for file in (place.with_suffix(".py"), place / "__init__.py")]
    return next((file for file in files if file.is_file()), None)


def _use_airflow() -> None:
    """Make and serialize a DAG: Airflow loads most of what that takes when it is first done."""
    from airflow.sdk import CronTriggerTimetable, Param, dag, task  # noqa: PLC0415 - only who forks gets here
    from airflow.serialization.serialized_objects import DagSerialization  # noqa: PLC0415 - as above

    @dag(
        schedule=CronTriggerTimetable("0 0 * * *", timezone="UTC"),
        dagrun_timeout=timedelta(minutes=1),
        params={"param": Param(None, type=["null", "string"], format="date-time")},
    )
    def preloaded() -> None:
        @task.short_circuit
        def first() -> None: ...

        @task
        def second(given: object) -> None: ...

        second(first())

    DagSerialization.to_dict(preloaded())


def _note_what_is_loaded() -> None:
    if not _loaded:
        os.register_at_fork(after_in_child=forget_what_was_edited)
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and any(folder in Path(file).parents for folder in _FOLDERS):
            _loaded[name] = (file, _edited_at(file))


def forget_what_was_edited() -> None:
    """Unload all of the project's modules if one of their files has changed since it was loaded."""
    if any(_edited_at(file) != at for file, at in _loaded.values()):
        # All of them: old and new code that call each other would be neither.
        for name in _loaded:
            sys.modules.pop(name, None)
        _loaded.clear()


def _edited_at(file: str) -> int:
    try:
        return os.stat(file).st_mtime_ns  # noqa: PTH116 - once a module and fork; a Path would take twice as long
    except OSError:
        return 0
