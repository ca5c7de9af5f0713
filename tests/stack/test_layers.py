"""The layers: the contracts hold, and each of them can tell when they don't."""

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
    """Return a copy of the code and of the contracts."""
    for folder in ("include", "plugins", "stack"):
        shutil.copytree(PROJECT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PROJECT / "pyproject.toml", tmp_path)
    return tmp_path


def broken(project: Path) -> list[str]:
    """Return what import-linter says of the contracts that are broken."""
    paths = os.pathsep.join([str(project), str(project / "plugins")])
    done = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        cwd=project,
        env=os.environ | {"PYTHONPATH": paths, "COLUMNS": "400"},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if " BROKEN" in line or " (line " in line]
    assert (done.returncode == 0) == (not lines), done.stdout
    return lines


def test_the_layers_hold() -> None:
    """What imports Airflow lives in dags/ or plugins/; include/ has never heard of it."""
    assert broken(PROJECT) == []


@pytest.mark.parametrize(
    ("file", "line", "said"),
    [
        ("include/storage.py", "import airflow.sdk", "has never heard of Airflow"),
        ("include/clearpath/session_expiry.py", "from hooks.lab import lab", "has never heard of Airflow"),
        (
            "include/mail.py",
            "from include.clearpath import tables",
            "include.mail imports include.clearpath.tables",
        ),
        ("include/platform/tables.py", "import include.clearpath.units", "include.platform.tables imports"),
        ("include/nifya/tables.py", "import include.clearpath.units", "include.nifya.tables imports"),
        ("plugins/hooks/lab.py", "import console.app", "Hooks know neither"),
        ("stack/api.py", "import airflow", "only its preparation talks to Airflow"),
    ],
)
def test_a_forbidden_import_is_noticed(project: Path, file: str, line: str, said: str) -> None:
    """A system that is added tomorrow is held to the rule without being listed anywhere."""
    target = project / file
    if not target.exists():
        target.parent.mkdir()
        (target.parent / "__init__.py").touch()
        target.touch()
    target.write_text(f"{target.read_text(encoding='utf-8')}\n{line}\n", encoding="utf-8")
    assert any(said in each for each in broken(project))
