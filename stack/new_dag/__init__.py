"""`make new-dag ID=clearpath_my_job`: the files that a job begins with, in the places that its name gives."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from stack.errors import StackError
from stack.home import PROJECT

_ID = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)+")


def begin(dag_id: str, project: Path = PROJECT) -> list[Path]:
    """Write the files of a new job and return their paths, relative to the project.

    Raises StackError, before anything is written, for an id that can't be one, a system that does not exist,
    or a file that stands already.
    """
    if not dag_id:
        raise StackError("say which: make new-dag ID=<system>_<job>")
    if not _ID.fullmatch(dag_id):
        raise StackError(
            f"{dag_id!r} is no id: lower-case words with _ between them, the system's name first"
        )
    system = _system(dag_id, project)
    job = dag_id.removeprefix(f"{system}_")
    files = {
        Path("include") / system / f"{job}.py": "job.py.j2",
        Path("include") / system / "sql" / f"{job}_due.sql": "due.sql.j2",
        Path("dags") / system / f"{dag_id}.py": "dag.py.j2",
        Path("tests") / system / f"test_{job}.py": "test.py.j2",
    }
    for path in files:
        if (project / path).exists():
            raise StackError(f"{path} stands already")
    for path, template in files.items():
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        text = _text(template, **_names(dag_id, system, project))
        (project / path).write_text(text, encoding="utf-8")
    # Where the system's import stands among the others depends on its name.
    sort = [sys.executable, "-m", "ruff", "check", "--select", "I", "--fix", "--quiet"]
    python = [str(path) for path in files if path.suffix == ".py"]
    subprocess.run([*sort, *python], cwd=project, check=True)
    return list(files)


def left_to_do(dag_id: str, project: Path = PROJECT) -> str:
    """Return what a person still has to do for a job that was begun, as a list to tick off."""
    system = _system(dag_id, project)
    zone = importlib.import_module(f"include.{system}").ZONE
    demo = (project / "include" / system / "demo.py").exists()
    return _text("left_to_do.j2", **_names(dag_id, system, project), zone=str(zone), demo=demo)


def _names(dag_id: str, system: str, project: Path) -> dict[str, Any]:
    job = dag_id.removeprefix(f"{system}_")
    notes_runs = (project / "include" / system / "jobs_state.py").exists()
    first, *others = job.split("_")
    return {
        "system": system,
        "job": job,
        "dag_id": dag_id,
        "words": job.replace("_", " "),
        "name": first + "".join(word.capitalize() for word in others),
        "notes_runs": notes_runs,
        "last": "note_run" if notes_runs else "report_run",
        "has_rows": (project / "tests" / system / "rows.py").exists(),
    }


def _system(dag_id: str, project: Path) -> str:
    systems = sorted(folder.name for folder in (project / "dags").iterdir() if folder.is_dir())
    systems = [name for name in systems if (project / "include" / name / "__init__.py").exists()]
    found = [name for name in systems if dag_id.startswith(f"{name}_")]
    if not found:
        raise StackError(f"{dag_id}: begins with no system; there are {', '.join(systems)}")
    return found[0]


def _text(template: str, **values: Any) -> str:
    source = resources.files("stack.new_dag").joinpath(template).read_text(encoding="utf-8")
    # Python and SQL, no page: there is nothing to escape.
    form: dict[str, Any] = {"keep_trailing_newline": True, "trim_blocks": True}
    environment = Environment(undefined=StrictUndefined, autoescape=False, **form)  # noqa: S701
    return environment.from_string(source).render(values)
