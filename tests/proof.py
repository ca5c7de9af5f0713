"""docs/proof.md, written from tests/rulings.yaml and tests/mutants.yaml: `python -m tests.proof`.

With `--check` nothing is written: the exit code says whether the page is stale. It is also 1 where a line of the
rulings has no entry, or an entry can't be replayed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.mutants import ROOT, Mutant, fault_of, mutants

PAGE = ROOT / "docs" / "proof.md"
RULINGS = ROOT / "tests" / "rulings.yaml"

_HEAD = """\
# Proof

What the platform promises, line by line: the test that holds the line, and a mutation of the code that makes this
test fail. `make mutants` breaks the code so, one line at a time, and sees that each test notices. Written by
`make docs` from `tests/rulings.yaml` and `tests/mutants.yaml`; `make check` fails when it is stale.
"""


def rulings(file: Path = RULINGS) -> dict[str, dict[str, str]]:
    """Return what is promised: system → key → line."""
    found: dict[str, dict[str, Any]] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return {system: {str(key): str(line) for key, line in lines.items()} for system, lines in found.items()}


def faults(
    promised: Mapping[str, Mapping[str, str]], entries: Sequence[Mutant], root: Path = ROOT
) -> list[str]:
    """Return what the page can't say: lines without an entry, entries without a line, entries that don't fit."""
    known = [f"{system} {key}" for system, lines in promised.items() for key in lines]
    held = {entry.ruling for entry in entries}
    return [
        *(f"{key}: no entry in tests/mutants.yaml" for key in known if key not in held),
        *(f"{entry}: no such line in tests/rulings.yaml" for entry in entries if entry.ruling not in known),
        *(f"{entry}: {fault}" for entry in entries if (fault := fault_of(entry, root))),
    ]


def page(promised: Mapping[str, Mapping[str, str]], entries: Sequence[Mutant]) -> str:
    """Return the page."""
    parts = [_HEAD]
    for system, lines in promised.items():
        parts.append(f"\n## {system}\n\n| | promise | test | mutation that it notices |\n|---|---|---|---|\n")
        for key, line in lines.items():
            held = [entry for entry in entries if entry.ruling == f"{system} {key}"]
            for place, entry in enumerate(held):
                said = (key, line) if place == 0 else ("", "")
                parts.append(_row(*map(_cell, said), _test(entry), _mutation(entry)))
    return "".join(parts)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _test(entry: Mutant) -> str:
    path, _, name = entry.test.partition("::")
    return f"[{_cell(name).replace('[', ' (').replace(']', ')')}](../{path})"


def _mutation(entry: Mutant) -> str:
    made = f"→ {_code(entry.by)}" if entry.by.strip() else "is left out"
    return f"{entry.file.rpartition('/')[2]}: {_code(entry.replace)} {made}"


def _code(text: str) -> str:
    shown = _cell(text)
    return f"`` {shown} ``" if "`" in shown else f"`{shown}`"


def main(arguments: Sequence[str]) -> int:
    """Write the page, or with `--check` compare it; return the exit code."""
    promised, entries = rulings(), mutants()
    found = faults(promised, entries)
    fresh = page(promised, entries)
    if "--check" not in arguments:
        PAGE.write_text(fresh, encoding="utf-8")
        sys.stdout.write(f"wrote {os.path.relpath(PAGE)}\n")
    elif not PAGE.exists() or fresh != PAGE.read_text(encoding="utf-8"):
        found.append(f"{os.path.relpath(PAGE)} is stale; run `make docs`")
    sys.stderr.writelines(f"error: {fault}\n" for fault in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
