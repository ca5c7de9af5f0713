"""What stops the embedded stack, in one line that says what to do."""

from __future__ import annotations


class StackError(Exception):
    """The stack can't go on; the message is shown to a person as it is, without a traceback."""
