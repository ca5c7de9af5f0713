"""Break the code one line at a time and see that the named test notices: `python -m tests.mutants [words …]`.

tests/mutants.yaml lists for each line of the rulings the test that holds it and a mutation of the code. Each
mutation is made in a copy of the tree; its test must pass there before, and fail after. With words, only the
entries that contain one of them are replayed.
"""

from __future__ import annotations

import os
import queue
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "tests" / "mutants.yaml"
WORKERS = 2
_SECONDS = 600
_SECONDS_UNBROKEN = 3_600


@dataclass(frozen=True)
class Mutant:
    """One broken line: in `file`, the only occurrence of `replace` becomes `by`, and `test` must fail."""

    ruling: str
    file: str
    replace: str
    by: str
    test: str

    def __str__(self) -> str:
        return f"{self.ruling} ({self.file})"


def mutants(table: Path = TABLE) -> list[Mutant]:
    """Return the table's entries, in its order."""
    return [Mutant(**entry) for entry in yaml.safe_load(table.read_text(encoding="utf-8"))]


def fault_of(mutant: Mutant, root: Path = ROOT) -> str | None:
    """Return why an entry can't be replayed, or None."""
    source = root / mutant.file
    if not source.is_file():
        return f"there is no file {mutant.file}"
    found = source.read_text(encoding="utf-8").count(mutant.replace)
    if found != 1:
        return f"{mutant.file} has the text {found} times, not once: {mutant.replace!r}"
    path, _, name = mutant.test.partition("::")
    if not (root / path).is_file():
        return f"there is no file {path}"
    if f"def {name.partition('[')[0].rpartition('::')[2]}(" not in (root / path).read_text(encoding="utf-8"):
        return f"{path} has no test {name}"
    return None


class Copy:
    """A copy of the tree in which mutations are made and undone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
        for name in listed.decode().split("\0"):
            if name and (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)

    def passes(self, tests: Sequence[str], *options: str, seconds: float = _SECONDS) -> tuple[bool, str]:
        """Run tests and return whether they passed, with the end of what they printed.

        Raises RuntimeError if they did not run at all: a line that breaks the import proves nothing.
        """
        environment = os.environ | {
            "PYTHONPATH": f"{self.folder}:{self.folder / 'plugins'}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONTZPATH": "",
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.folder / "dags"),
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(self.folder / "plugins"),
        }
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:randomly",
            *options,
            *tests,
        ]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        if done.returncode not in (0, 1):
            raise RuntimeError(f"pytest ended with {done.returncode}:\n{tail}")
        return done.returncode == 0, tail

    def survives(self, mutant: Mutant) -> bool:
        """Make the mutation, and say whether its test still passes."""
        source = self.folder / mutant.file
        whole = source.read_text(encoding="utf-8")
        try:
            source.write_text(whole.replace(mutant.replace, mutant.by), encoding="utf-8")
            passed, _ = self.passes([mutant.test])
        finally:
            source.write_text(whole, encoding="utf-8")
        return passed


def main(words: Sequence[str]) -> int:
    """Replay the table's entries and return the process's exit code."""
    wanted = [
        m for m in mutants() if not words or any(word in f"{m.ruling} {m.file} {m.test}" for word in words)
    ]
    faults = [f"{mutant}: {fault}" for mutant in wanted if (fault := fault_of(mutant))]
    if faults or not wanted:
        print("\n".join(faults) or f"no entry has any of: {' '.join(words)}")
        return 2
    with tempfile.TemporaryDirectory(prefix="almanac-mutants-") as folder:
        copies: queue.Queue[Copy] = queue.Queue()
        for number in range(WORKERS):
            copies.put(Copy(Path(folder) / str(number)))
        first = copies.get()
        try:
            passed, tail = first.passes(
                sorted({mutant.test for mutant in wanted}),
                f"--numprocesses={WORKERS}",
                seconds=_SECONDS_UNBROKEN,
            )
        except RuntimeError as error:
            passed, tail = False, str(error)
        copies.put(first)
        if not passed:
            print(f"the tests do not pass on the code as it is:\n{tail}")
            return 1

        def replay(mutant: Mutant) -> str | None:
            copy = copies.get()
            try:
                return "the test still passes" if copy.survives(mutant) else None
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                return str(error)
            finally:
                copies.put(copy)

        survived = 0
        with ThreadPoolExecutor(WORKERS) as pool:
            for mutant, fault in zip(wanted, pool.map(replay, wanted), strict=True):
                survived += fault is not None
                print(
                    f"{'SURVIVED' if fault else 'caught  '}  {mutant}  {mutant.test}{f': {fault}' if fault else ''}"
                )
                sys.stdout.flush()
    print(f"mutants: {len(wanted) - survived} passed, {survived} failed")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
