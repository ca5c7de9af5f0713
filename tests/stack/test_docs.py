"""docs/dags.md: written from the DAGs, complete, and known to be stale when it is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stack.home import PROJECT


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a copy of what the page is written from."""
    project = tmp_path / "project"
    for folder in ("dags", "include", "plugins", "stack"):
        shutil.copytree(PROJECT / folder, project / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (project / "docs").mkdir()
    return project


def docs(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the writer of the page in the copy."""
    paths = os.pathsep.join([str(project), str(project / "plugins")])
    return subprocess.run(
        [sys.executable, "-m", "stack.docs", *arguments],
        cwd=project,
        env=os.environ | {"PYTHONPATH": paths, "PYTHONTZPATH": "", "AIRFLOW_HOME": str(project / "airflow")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_page_says_all_of_every_dag_and_goes_stale(project: Path) -> None:
    """Who is woken at night looks there; a change of a DAG that the page misses must stop `make check`."""
    done = docs(project)
    assert done.returncode == 0, done.stdout + done.stderr
    page = (project / "docs" / "dags.md").read_text(encoding="utf-8")
    files = sorted((project / "dags").glob("*/*.py"))
    assert page.count("\n## ") == len(files) > 0
    for file in files:
        _, _, chapter = page.partition(f"\n## {file.stem}\n")
        chapter = chapter.partition("\n## ")[0]
        assert "**If it fails**" in chapter
        for fact in ("| schedule |", "| pool, priority |", "| attempts of a task |", "`as_of`", "`dry_run`"):
            assert fact in chapter, (file.stem, fact)
    assert docs(project, "--check").returncode == 0

    expiry = project / "dags" / "clearpath" / "clearpath_session_expiry.py"
    source = expiry.read_text(encoding="utf-8")
    assert "0 2 * * *" in source
    expiry.write_text(source.replace("0 2 * * *", "0 4 * * *"), encoding="utf-8")
    stale = docs(project, "--check")
    assert stale.returncode == 1
    assert "is stale; run `make docs`" in stale.stderr
    assert (project / "docs" / "dags.md").read_text(encoding="utf-8") == page


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("from airflow.sdk import no_such_dag", "clearpath_session_expiry.py: ImportError"),
        # Airflow itself would pass over this one without a word.
        ("", "holds no DAG of the name clearpath_session_expiry"),
    ],
)
def test_a_dag_that_does_not_load_is_named(project: Path, content: str, reason: str) -> None:
    """A page without it would look complete."""
    expiry = project / "dags" / "clearpath" / "clearpath_session_expiry.py"
    expiry.write_text(content, encoding="utf-8")
    done = docs(project)
    assert done.returncode == 1
    assert reason in done.stderr
    assert "Traceback" not in done.stderr
