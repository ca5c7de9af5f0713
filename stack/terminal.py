"""What the stack says to the person who started it."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import time
from collections.abc import Sequence

_BEGAN = time.monotonic()
_GAP = "  "
_LEAST = 20
"""The fewest characters that a folded column keeps, however narrow the terminal."""
_NO_TERMINAL = 10_000
"""A file's width: no line of it needs folding."""


def say(line: str = "") -> None:
    """Write a line, at once; a reader who has gone away is no error."""
    try:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # Python writes out what is left once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def progress(line: str) -> None:
    """Write a line with the seconds since the start."""
    say(f"{time.monotonic() - _BEGAN:6.1f} s  {line}")


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
