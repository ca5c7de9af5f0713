"""The process in which tenants' expressions are evaluated: a program by itself that imports nothing of ours.

A line on its input is a JSON list of expressions with the fields that they read; each is answered by one line. The
kernel ends the process when an expression uses more than its time, and refuses it more memory than its share.
"""

from __future__ import annotations

import contextlib
import json
import resource
import signal
import sys
from functools import lru_cache
from typing import Any

from cel_expr_python import cel

MEMORY_BYTES = 512 * 1024 * 1024
_COMPILED = 256
_TYPE_WORDS = {
    "bool", "bytes", "double", "dyn", "int", "list", "map", "null_type", "string", "type", "uint",
}  # fmt: skip


def main() -> None:
    """Answer until the input ends. The argument is the time of one expression, in seconds of the processor."""
    seconds = float(sys.argv[1])
    for kind, most in (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
    ):
        # A system that does not know a limit, or has a lower one, is left as it is; the time is limited anyway.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (most, most))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    for line in sys.stdin.buffer:
        for asked in json.loads(line):
            signal.setitimer(signal.ITIMER_PROF, seconds)
            answer = evaluate(asked["text"], asked["fields"])
            signal.setitimer(signal.ITIMER_PROF, 0)
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


def evaluate(text: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Return `met`, or the `error` that kept the expression from being evaluated."""
    known = {name: value for name, value in fields.items() if name.isidentifier() and name not in _TYPE_WORDS}
    try:
        found = _compiled(text, frozenset(known)).eval(data=known)
        value = found.plain_value()
    except MemoryError:
        return {"error": "it needs too much memory"}
    except Exception as error:  # noqa: BLE001 - the library has no error of its own; all of them are the expression's
        return {"error": str(error)}
    if found.type() == cel.Type.ERROR:
        return {"error": str(value)}
    if not isinstance(value, bool):
        return {"error": f"it gives {found.type().name().lower()}, not true or false"}
    return {"met": value}


@lru_cache(maxsize=_COMPILED)
def _compiled(text: str, names: frozenset[str]) -> cel.Expression:
    # Of any type: JSON says what a value is, and a whole number may be compared with one that is not.
    return cel.NewEnv(variables=dict.fromkeys(names, cel.Type.DYN)).compile(text)


if __name__ == "__main__":
    main()
