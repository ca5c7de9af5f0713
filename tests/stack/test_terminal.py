"""What the stack says in a terminal of any width."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from stack.home import PROJECT
from stack.terminal import table

ROWS = [["first_dag", "success", "sent 12, failed 0, deferred 0, unknown 0"], ["second", "failed", ""]]


def printed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Write a table and return its lines."""
    table(["DAG", "state", "counts"], ROWS)
    return capsys.readouterr().out.splitlines()


def test_the_last_column_is_folded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A terminal would break the line anywhere, and the columns with it."""
    monkeypatch.setenv("COLUMNS", "42")
    assert printed(capsys) == [
        "DAG        state    counts",
        "---------  -------  ----------------------",
        "first_dag  success  sent 12, failed 0,",
        "                    deferred 0, unknown 0",
        "second     failed",
    ]


@pytest.mark.parametrize(("columns", "lines"), [("1", 6), ("60", 4), ("200", 4)])
def test_no_word_is_broken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: str, lines: int
) -> None:
    """The narrowest terminal keeps some of the column, the widest folds nothing."""
    monkeypatch.setenv("COLUMNS", columns)
    found = printed(capsys)
    assert len(found) == lines
    assert " ".join(" ".join(found).split()).count("deferred 0") == 1


def test_a_file_has_no_width(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """What is kept in a log is searched line by line."""
    monkeypatch.delenv("COLUMNS", raising=False)
    assert any(line.endswith(ROWS[0][2]) for line in printed(capsys))


def test_a_reader_who_has_gone_away_is_no_error() -> None:
    """`make env | head -1` ends as well as `make env`, and says nothing on the way."""
    read, write = os.pipe()
    os.close(read)
    code = "from stack.terminal import say; say('one'); say('two')"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, stdout=write, stderr=subprocess.PIPE, check=False
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")
