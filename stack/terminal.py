"""What the stack says to the person who started it."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import time
from collections.abc import Sequence
from typing import IO

from stack.errors import StackError

_BEGAN = time.monotonic()
_GAP = "  "
_LEAST = 20
"""The fewest characters that a folded column keeps, however narrow the terminal."""
_NO_TERMINAL = 10_000
"""A file's width: no line of it needs folding."""


def say(line: str = "") -> None:
    """Write a line, at once; a reader who has gone away, or never was, is no error.

    Raises StackError if the line can't be written, as where a disk is full.
    """
    try:
        _write(sys.stdout, line)
    except BrokenPipeError:
        _write_no_more(sys.stdout)
    except OSError as error:
        _write_no_more(sys.stdout)
        raise StackError(f"standard output: can't be written to: {error.strerror}") from None


def progress(line: str) -> None:
    """Write a line with the seconds since the start; nothing ends because it can't be read."""
    try:
        _write(sys.stdout, f"{time.monotonic() - _BEGAN:6.1f} s  {line}")
    except BrokenPipeError:
        _write_no_more(sys.stdout)
    except OSError:
        # It stays in the buffer, and goes out with the next line that can be written.
        return


def complain(line: str) -> None:
    """Write a line to standard error, after all that was said."""
    for stream, text in ((sys.stdout, None), (sys.stderr, line)):
        try:
            _write(stream, text)
        except OSError:
            _write_no_more(stream)


def _write(stream: IO[str] | None, line: str | None) -> None:
    # Python has no stream where the shell has closed it.
    if stream is not None:
        if line is not None:
            stream.write(line + "\n")
        stream.flush()


def _write_no_more(stream: IO[str] | None) -> None:
    # Python writes out what is left once more when it ends.
    if stream is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Write rows under a heading, in columns as wide as their widest value; in a terminal, the last one is folded."""
    *before, last = (max(len(row[column]) for row in [heading, *rows]) for column in range(len(heading)))
    taken = sum(before) + len(_GAP) * len(before)
    room = max(_LEAST, shutil.get_terminal_size((_NO_TERMINAL, 0)).columns - taken)
    widths = [*before, min(last, room)]
    for *values, long in [heading, ["-" * width for width in widths], *rows]:
        first, *others = textwrap.wrap(long, room, break_long_words=False, break_on_hyphens=False) or [""]
        for row in [[*values, first], *([*[""] * len(before), other] for other in others)]:
            say(_GAP.join(value.ljust(width) for value, width in zip(row, widths, strict=True)).rstrip())
