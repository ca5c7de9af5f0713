"""Statements: one a file, with binds by name, and never a value in the text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from include.statements import statement

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted(ROOT.glob("include/**/sql/*.sql"))


def test_a_statement_knows_its_name_and_its_binds() -> None:
    """A log says which statement it was; a bind that is missing is told by name."""
    found = statement("include.clearpath", "expire_certificates")
    assert found.name == "expire_certificates"
    assert set(found.clause.compile().params) == {"ids", "today"}


def test_a_statement_is_read_once() -> None:
    """A job that runs a statement for every chunk reads no file for it."""
    assert statement("include", "database_now") is statement("include", "database_now")


def test_no_such_statement() -> None:
    """A name that is misspelt fails where it is written."""
    with pytest.raises(FileNotFoundError, match="no_such"):
        statement("include", "no_such")


def test_there_are_files() -> None:
    """Without any, the next test would say nothing."""
    assert len(FILES) > 50


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_form_of_a_file(path: Path) -> None:
    """What a row means stands first; it is one statement; no bind is in a comment; no clock decides a date."""
    first, *rest = path.read_text(encoding="utf-8").splitlines()
    assert first.startswith("-- "), first
    parts = [line.partition("--") for line in rest]
    code = " ".join(before for before, _, _ in parts).lower()
    comments = [first, *(after for _, _, after in parts)]
    assert ";" not in code
    assert not any(re.search(r":[a-zA-Z]", comment) for comment in comments)
    assert "current_date" not in code
    # UTC is the same in all zone data.
    assert "at time zone" not in code.replace("at time zone 'utc'", "")
