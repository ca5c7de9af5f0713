"""Every line of the rulings has a test and a mutation, and the page that says so is fresh."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants import ROOT, Copy, Mutant, fault_of, mutants
from tests.proof import PAGE, faults, page, rulings

BROKEN = Mutant(
    "all-jobs 1.1",
    "include/as_of.py",
    "def local_date(",
    "def other_date(",
    "tests/test_proof.py::test_every_line_is_held",
)


def test_every_line_is_held() -> None:
    """Ruling 20: a promise without a test, or a test that no broken line makes fail, is only a wish."""
    assert faults(rulings(), mutants()) == []


def test_no_two_entries_are_the_same() -> None:
    """A mutation that stands twice is replayed twice, and proves one thing."""
    seen = [(entry.file, entry.replace, entry.by, entry.test) for entry in mutants()]
    assert len(seen) == len(set(seen))


def test_no_mutation_breaks_the_import() -> None:
    """A line that can't be parsed makes every test fail, and so proves nothing about the one that is named."""
    for entry in mutants():
        if entry.file.endswith(".py"):
            source = (ROOT / entry.file).read_text(encoding="utf-8")
            compile(source.replace(entry.replace, entry.by), entry.file, "exec")


def test_the_page_is_fresh() -> None:
    """Ruling 20: docs/proof.md is written from the tables, and says what they say."""
    assert PAGE.read_text(encoding="utf-8") == page(rulings(), mutants())


def test_a_line_without_an_entry_is_named() -> None:
    """Whoever adds a ruling learns that nothing holds it yet; who renames one, which entries lost their line."""
    promised = {"all-jobs": {"1.1": "the as-of decides", "1.2": "stamps"}}
    assert faults(promised, [BROKEN]) == ["all-jobs 1.2: no entry in tests/mutants.yaml"]
    assert faults({"all-jobs": {}}, [BROKEN]) == [f"{BROKEN}: no such line in tests/rulings.yaml"]


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"file": "include/none.py"}, "there is no file include/none.py"),
        ({"replace": "def nobody("}, "has the text 0 times"),
        ({"replace": "import "}, "times, not once"),
        ({"test": "tests/none.py::test_every_line_is_held"}, "there is no file tests/none.py"),
        ({"test": "tests/test_proof.py::test_nothing"}, "has no test test_nothing"),
    ],
)
def test_an_entry_that_no_longer_fits_is_named(changed: dict[str, str], fault: str) -> None:
    """Code moves on; an entry whose line is gone must not be passed over in silence."""
    fields = {name: getattr(BROKEN, name) for name in BROKEN.__dataclass_fields__}
    said = fault_of(Mutant(**(fields | changed)))
    assert said is not None
    assert fault in said
    assert fault_of(BROKEN) is None


def test_markup_in_a_line_stays_text() -> None:
    """A mutation may hold what Markdown reads as a column or as code."""
    entry = Mutant("s 1", "include/as_of.py", "a | `b`\n    c", "", "tests/test_proof.py::test_x[a]")
    row = page({"s": {"1": "a | b"}}, [entry]).splitlines()[-1]
    assert row == (
        "| 1 | a \\| b | [test_x (a)](../tests/test_proof.py) | as_of.py: `` a \\| `b` c `` is left out |"
    )


def test_the_runner_tells_a_mutation_that_survives(tmp_path: Path) -> None:
    """The replay itself must be able to fail: what changes nothing passes, what breaks a test does not."""
    copy = Copy(tmp_path / "copy")
    test = "tests/test_proof.py::test_markup_in_a_line_stays_text"
    file, line = "tests/proof.py", 'return " ".join(text.split())'
    assert copy.survives(Mutant("r", file, line, f"{line}  ", test))
    assert not copy.survives(Mutant("r", file, line, "return text", test))
    assert (copy.folder / file).read_bytes() == (ROOT / file).read_bytes()
