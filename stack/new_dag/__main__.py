"""`python -m stack.new_dag <system>_<job>`."""

from __future__ import annotations

import sys

from stack.errors import StackError
from stack.new_dag import begin, left_to_do
from stack.terminal import complain, say


def main() -> int:
    """Write the files and say which; return the exit code."""
    dag_id = sys.argv[1] if len(sys.argv) > 1 else ""
    try:
        for path in begin(dag_id):
            say(f"wrote {path}")
        say(left_to_do(dag_id).rstrip("\n"))
    except StackError as error:
        complain(f"error: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
