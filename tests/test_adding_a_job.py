"""The job that docs/adding-a-job.md adds, block by block, is one that keeps every promise."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "adding-a-job.md"
STEM = "pending_cleanup"
_BLOCK = re.compile(r"^```(?:python|sql|yaml)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def add_the_job(tree: Path) -> None:
    """Do in a tree what the page says, in its order."""
    rules, look, change, dag, param, rows, catalogue, shown, test = _BLOCK.findall(
        PAGE.read_text(encoding="utf-8")
    )
    for name, text in {
        f"include/clearpath/{STEM}.py": rules,
        "include/clearpath/sql/pending_cleanup_due.sql": look,
        "include/clearpath/sql/cancel_sessions.sql": change,
        f"dags/clearpath/clearpath_{STEM}.py": dag,
        f"tests/clearpath/test_{STEM}.py": test,
    }.items():
        assert not (tree / name).exists(), f"{name} is there already: the page needs another example"
        (tree / name).write_text(text, encoding="utf-8")
    for name, before, added in (
        ("tests/clearpath/world.py", '    "certificate_id": None,\n', param),
        ("tests/clearpath/world.py", "\n\ndef _mail(", rows),
        ("include/clearpath/demo.py", "        stopped = self._at(-9, 10)\n", shown),
    ):
        source = (tree / name).read_text(encoding="utf-8")
        assert source.count(before) == 1, before
        (tree / name).write_text(source.replace(before, added + before), encoding="utf-8")
    with (tree / "tests" / "dags" / "catalogue.yaml").open("a", encoding="utf-8") as fixed:
        fixed.write(catalogue)


def test_the_job_of_the_page_keeps_every_promise(tmp_path: Path) -> None:
    """Whoever follows the page must end with a job that passes; killing it everywhere is left to the real ones."""
    for folder in ("include", "plugins", "dags", "stack", "tests"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(ROOT / "pyproject.toml", tmp_path)
    add_the_job(tmp_path)
    tests = ["tests/dags", f"tests/clearpath/test_{STEM}.py", "tests/clearpath/test_demo.py"]
    tests += ["-k", f"({STEM} and not killed) or same_moment"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
        cwd=tmp_path,
        env=os.environ
        | {
            "PYTHONPATH": f"{tmp_path}:{tmp_path / 'plugins'}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "AIRFLOW__CORE__DAGS_FOLDER": str(tmp_path / "dags"),
        },
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert re.search(r"\b(?:1[5-9]|[2-9]\d) passed", done.stdout), done.stdout[-300:]
