"""`make new-dag`: what it writes loads, is in form and passes, and it never writes over anything."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from stack.errors import StackError
from stack.home import PROJECT
from stack.new_dag import begin, left_to_do


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a copy of the project, as far as a job touches it."""
    project = tmp_path / "project"
    unneeded = shutil.ignore_patterns("__pycache__")
    for folder in ("dags", "include", "plugins", "stack", "tests"):
        shutil.copytree(PROJECT / folder, project / folder, ignore=unneeded)
    for file in ("pyproject.toml", "airflow_settings.yaml"):
        shutil.copy(PROJECT / file, project)
    return project


def run(project: Path, *command: str, fails: bool = False) -> str:
    """Run a Python module in the copy, hold that it succeeds (or `fails`), and return what it wrote."""
    paths = os.pathsep.join([str(project), str(project / "plugins")])
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=project,
        env=os.environ | {"PYTHONPATH": paths, "PYTHONTZPATH": "", "AIRFLOW_HOME": str(project / "airflow")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode != 0) is fails, done.stdout + done.stderr
    return done.stdout


# One system has a note of when each job last ran, the other has none.
@pytest.mark.parametrize("system", ["clearpath", "arcvest"])
def test_what_it_writes_is_a_job_that_runs(project: Path, system: str) -> None:
    """A scaffold that doesn't load, or that the checks refuse, is worse than none."""
    written = [str(path) for path in begin(f"{system}_pending_cleanup", project)]
    assert written == [
        f"include/{system}/pending_cleanup.py",
        f"include/{system}/sql/pending_cleanup_due.sql",
        f"dags/{system}/{system}_pending_cleanup.py",
        f"tests/{system}/test_pending_cleanup.py",
    ]
    python = [path for path in written if path.endswith(".py")]
    run(project, "ruff", "check", *python)
    run(project, "ruff", "format", "--check", *python)
    assert "1 passed" in run(
        project, "pytest", "-q", "-p", "no:cacheprovider", f"tests/{system}/test_pending_cleanup.py"
    )
    (project / "docs").mkdir()
    run(project, "stack.docs")
    assert f"## {system}_pending_cleanup" in (project / "docs" / "dags.md").read_text(encoding="utf-8")


def test_what_is_left_to_do_is_said(project: Path) -> None:
    """The checks over all DAGs fail until the catalogue has the row: it is given, and it is right."""
    begin("clearpath_pending_cleanup", project)
    said = left_to_do("clearpath_pending_cleanup", project)
    for file in ("tests/dags/catalogue.yaml", "tests/clearpath/world.py", "include/clearpath/demo.py"):
        assert file in said
    row = re.search(r"^ +clearpath_pending_cleanup:\n.*\n", said, re.MULTILINE)
    assert row is not None
    tests = ["tests/dags/test_declarations.py", "-k", "pending_cleanup"]
    without = run(project, "pytest", "-q", "-p", "no:cacheprovider", *tests, fails=True)
    assert "tests/dags/catalogue.yaml has no row for clearpath_pending_cleanup" in without
    with (project / "tests" / "dags" / "catalogue.yaml").open("a", encoding="utf-8") as catalogue:
        catalogue.write(textwrap.dedent(row[0]))
    assert " passed" in run(project, "pytest", "-q", "-p", "no:cacheprovider", *tests)


def test_it_writes_over_nothing(project: Path) -> None:
    """One file that stands stops all of it: half a job would be a riddle."""
    before = sorted(project.rglob("*"))
    with pytest.raises(StackError, match=r"include/clearpath/session_expiry\.py stands already"):
        begin("clearpath_session_expiry", project)
    assert sorted(project.rglob("*")) == before


@pytest.mark.parametrize(
    ("dag_id", "reason"),
    [
        ("", "say which"),
        ("clearpath", "is no id"),
        ("clearpath_", "is no id"),
        ("ClearPath_Job", "is no id"),
        ("clearpath_../../x", "is no id"),
        ("clearpath_a b", "is no id"),
        ("nosystem_job", r"begins with no system; there are .*\bclearpath"),
        ("platform_job", "begins with no system"),
    ],
)
def test_an_id_that_is_none_is_refused(project: Path, dag_id: str, reason: str) -> None:
    """The id becomes paths and Python: whatever is not a plain name must not get that far."""
    with pytest.raises(StackError, match=reason):
        begin(dag_id, project)
