"""What the stack says in a terminal of any width."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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


@pytest.mark.parametrize("said", ["say('one'); say('two')", "progress('one'); progress('two')"])
def test_a_reader_who_has_gone_away_is_no_error(said: str) -> None:
    """`make env | head -1` ends as well as `make env`, and says nothing on the way."""
    read, write = os.pipe()
    os.close(read)
    code = f"from stack.terminal import progress, say; {said}"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, stdout=write, stderr=subprocess.PIPE, check=False
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_full_disk_is_an_error() -> None:
    """Whoever keeps the output in a file must not believe that it is whole."""
    with Path("/dev/full").open("wb") as full:
        code = (
            "import sys; from stack import terminal; from stack.errors import StackError\n"
            "terminal.progress('lost')\n"
            "try: terminal.say('one')\n"
            "except StackError as error: terminal.complain(f'error: {error}'); sys.exit(1)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=PROJECT, stdout=full, stderr=subprocess.PIPE, check=False
        )
    said = b"error: standard output: can't be written to: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, said)


def test_without_any_output_a_command_still_runs() -> None:
    """A shell's `>&-` leaves Python without a stream."""
    code = (
        "from stack.terminal import complain, progress, say; say('one'); progress('two'); complain('three')"
    )
    command = ["sh", "-c", f'"$0" -c "{code}" >&- 2>&-', sys.executable]
    assert subprocess.run(command, cwd=PROJECT, check=False).returncode == 0
