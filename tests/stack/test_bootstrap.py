"""`make setup`: from a clean machine, over a half-made environment, and where something is missing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stack.home import PROJECT

MAKE = shutil.which("make") or "make"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project of three files, whose requirements are uv and one small package."""
    project = tmp_path / "project"
    (project / "stack").mkdir(parents=True)
    shutil.copy(PROJECT / "Makefile", project)
    shutil.copy(PROJECT / "stack" / "bootstrap.sh", project / "stack")
    pins = (PROJECT / "requirements.txt").read_text(encoding="utf-8")
    wanted = [
        re.search(rf"^{name}==.*?(?=^\S)", pins + "x", re.MULTILINE | re.DOTALL) for name in ("uv", "tzdata")
    ]
    (project / "requirements.txt").write_text(
        "".join(found[0] for found in wanted if found), encoding="utf-8"
    )
    return project


def make(
    project: Path, *arguments: str, python: str | Path = sys.executable
) -> subprocess.CompletedProcess[str]:
    """Run make, with the Python that a machine would have."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(
        [MAKE, *arguments, f"PYTHON={python}"],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def fake_python(folder: Path, script: str) -> Path:
    """Write a program that stands in for a machine's Python."""
    path = folder / "python3.11"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.mark.install
def test_setup_makes_what_is_pinned_and_then_does_nothing(project: Path) -> None:
    """A first run makes the environment from the pins alone; a second must cost nothing."""
    first = make(project, "setup")
    assert first.returncode == 0, first.stdout + first.stderr
    listed = subprocess.run(
        [str(project / ".venv/bin/uv"), "pip", "list", "--python", str(project / ".venv/bin/python")],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "tzdata" in listed
    second = make(project, "setup")
    assert "making" not in second.stdout
    assert "installing" not in second.stdout


@pytest.mark.install
def test_a_first_run_that_was_cut_off_is_mended(project: Path) -> None:
    """Ctrl-C in the middle leaves a folder that looks like an environment; the next run must not trust it."""
    (project / ".venv" / "bin").mkdir(parents=True)
    (project / ".venv" / "bin" / "python").symlink_to("/nowhere/python")
    done = make(project, "setup")
    assert done.returncode == 0, done.stdout + done.stderr
    # Installed, but cut off before the end: there is no stamp, so it is looked at again.
    (project / ".venv" / ".ready").unlink()
    shutil.rmtree(next((project / ".venv" / "lib").glob("python*/site-packages/tzdata")))
    again = make(project, "setup")
    assert again.returncode == 0, again.stdout + again.stderr
    assert (project / ".venv" / ".ready").exists()


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("exit 1", "is no Python 3.11 or newer"),
        ('case "$2" in *ensurepip*) exit 1;; esac', "apt install python3.11-venv"),
    ],
)
def test_what_is_missing_is_one_clear_line(project: Path, tmp_path: Path, script: str, reason: str) -> None:
    """Debian's python3 comes without venv: the person must read what to install, not a traceback."""
    done = make(project, "setup", python=fake_python(tmp_path, script))
    assert done.returncode != 0
    errors = [line for line in done.stderr.splitlines() if not line.startswith("make")]
    assert len(errors) == 1, done.stderr
    assert errors[0].startswith("error: ")
    assert reason in errors[0]
    assert not (project / ".venv").exists()


def test_no_python_at_all_is_one_clear_line(project: Path) -> None:
    """The Makefile looks for Python itself; where it finds none it must say which it wants."""
    done = make(project, "setup", python="")
    assert "error: Python 3.11 or newer is needed" in done.stderr


def test_a_wrong_hash_stops_the_installation(project: Path) -> None:
    """What is installed is what was pinned, whatever an index serves."""
    pins = (project / "requirements.txt").read_text(encoding="utf-8")
    (project / "requirements.txt").write_text(
        re.sub("sha256:.{8}", "sha256:00000000", pins), encoding="utf-8"
    )
    done = make(project, "setup")
    assert done.returncode != 0
    assert "error: uv could not be installed" in done.stderr
    assert not (project / ".venv" / ".ready").exists()


def test_every_requirement_is_pinned_with_a_hash() -> None:
    """One that is not could be another one tomorrow."""
    text = (PROJECT / "requirements.txt").read_text(encoding="utf-8")
    pins = re.findall(r"^[a-z0-9][^\n]*(?:\n    [^\n]*)*", text, re.MULTILINE)
    assert len(pins) > 150
    for pin in pins:
        assert re.match(r"[a-z0-9._\[\]-]+==\S+", pin), pin
        assert "--hash=sha256:" in pin, pin
    names = {re.split("[=[]", pin)[0] for pin in pins}
    wanted = (PROJECT / "requirements.in").read_text(encoding="utf-8").splitlines()
    wanted = [re.split(r"[=\[]", line)[0] for line in wanted if line and not line.startswith("#")]
    assert set(wanted) <= names
    assert "pandas" not in names
    assert "index-url" not in text


def test_every_target_is_listed_and_every_listed_one_exists() -> None:
    """`make` alone is the project's table of contents."""
    listed = set(re.findall(r"^  make ([a-z-]+)", make(PROJECT, "help").stdout, re.MULTILINE))
    source = (PROJECT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", source, re.MULTILINE))
    assert {
        "setup", "demo", "up", "down", "env", "test", "quick", "check", "bench", "docs", "mutants", "new-dag",
    } <= listed  # fmt: skip
    assert listed <= targets
    phony = set(re.findall(r"[a-z-]+", re.sub(r"\\\n", " ", source).partition(".PHONY:")[2].splitlines()[0]))
    assert targets == phony
