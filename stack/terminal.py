"""What the stack says to the person who started it."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

_BEGAN = time.monotonic()


def say(line: str = "") -> None:
    """Write a line, at once; a reader who has gone away is no error."""
    try:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        return


def progress(line: str) -> None:
    """Write a line with the seconds since the start."""
    say(f"{time.monotonic() - _BEGAN:6.1f} s  {line}")


def table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Write rows under a heading, in columns as wide as their widest value."""
    widths = [max(len(row[column]) for row in [heading, *rows]) for column in range(len(heading))]
    for row in [heading, ["-" * width for width in widths], *rows]:
        say("  ".join(value.ljust(width) for value, width in zip(row, widths, strict=True)).rstrip())
