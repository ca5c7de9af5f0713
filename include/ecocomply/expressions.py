"""Conditions that tenants write, in the Common Expression Language: data to be evaluated, never code that may do more.

An expression sees the fields that it is given and nothing else, loops over lists alone, and its patterns (`matches`)
are RE2's, which take linear time. The library limits nesting and iterations, `Evaluator` the size of text and values;
and as a few lists in one another can still keep a machine busy, all of it happens in a process of its own, whose time
and memory the kernel limits. What can't be evaluated has an answer that says why; it is never an error of the job.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from include.errors import Transient

LONGEST_TEXT = 1_000
"""Characters of an expression."""
LARGEST_FIELDS = 20_000
"""Characters of all fields of one evaluation, as JSON."""
DEEPEST_FIELDS = 16
"""Lists and objects within one another."""
SECONDS = 0.5
"""Of the processor, for one expression; most take some microseconds."""

_PROGRAM = Path(__file__).with_name("expression_process.py")
_AT_ONCE = 64  # answers of so many fit the pipe, so neither side waits for the other
_PATIENCE = 60  # seconds without an answer or an end: the machine stands still
_LONGEST_REASON = 200
# `INVALID_ARGUMENT: ERROR: <input>:1:1: undeclared reference to 'x' (in container '')` says it in the middle.
_AROUND = re.compile(
    r"^(?:[A-Z_]+: )?(?:ERROR: <input>:-?\d+:-?\d+: )?|(?: \(in container ''\))?(?: \[[A-Z_]+\])?$"
)


class Asked(NamedTuple):
    """An expression, as a tenant stored it, and the fields by name: plain JSON values."""

    text: Any
    fields: Mapping[str, Any]


class Answer(NamedTuple):
    """Whether the condition is met, or, where that is None, the reason why nobody can say."""

    met: bool | None
    reason: str | None = None


class Evaluator:
    """Evaluates expressions; its process begins with the first of them and ends with the `with` block."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def answers(self, asked: Sequence[Asked]) -> list[Answer]:
        """Return an answer for each expression, in their order. Raises Transient if the process stands still."""
        answers: list[Answer | None] = [None] * len(asked)
        waiting: list[tuple[int, str]] = []
        for place, one in enumerate(asked):
            try:
                waiting.append((place, _request(one)))
            except ValueError as error:
                answers[place] = Answer(None, str(error)[:_LONGEST_REASON])
        for start in range(0, len(waiting), _AT_ONCE):
            group = waiting[start : start + _AT_ONCE]
            for (place, _), answer in zip(group, self._answered([line for _, line in group]), strict=True):
                answers[place] = answer
        return [answer or Answer(None, "it was not evaluated") for answer in answers]

    def _answered(self, requests: Sequence[str]) -> Iterator[Answer]:
        while requests:
            process = self._running()
            came = 0
            for answer in _talk(process, requests):
                came += 1
                yield answer
            if came < len(requests):
                # The process has ended over the next one; those behind it are asked anew.
                self._process = None
                yield Answer(None, _how_it_ended(process, self._seconds))
                came += 1
            requests = requests[came:]

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            # Without our environment: there is nothing in it that an expression needs.
            self._process = subprocess.Popen(  # noqa: S603 - our own program; what tenants wrote is its input
                [sys.executable, "-I", str(_PROGRAM), str(self._seconds)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={},
            )
        return self._process

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def _request(asked: Asked) -> str:
    if not isinstance(asked.text, str) or not asked.text.strip():
        raise ValueError("there is no expression")
    if len(asked.text) > LONGEST_TEXT:
        raise ValueError(f"it has more than {LONGEST_TEXT:,} characters")
    if _depth(asked.fields) > DEEPEST_FIELDS:
        raise ValueError(f"its fields lie more than {DEEPEST_FIELDS} levels deep")
    fields = json.dumps(asked.fields, allow_nan=False)
    if len(fields) > LARGEST_FIELDS:
        raise ValueError(f"its fields have more than {LARGEST_FIELDS:,} characters")
    return f'{{"text": {json.dumps(asked.text)}, "fields": {fields}}}'


def _depth(value: Any) -> int:
    """Return how deep lists and objects lie in one another; beyond the limit nobody looks on."""
    level, depth = [value], 0
    while depth <= DEEPEST_FIELDS:
        inner: list[Any] = []
        for one in level:
            if isinstance(one, Mapping):
                inner.extend(one.values())
            elif isinstance(one, list | tuple):
                inner.extend(one)
        if not inner:
            break
        level, depth = inner, depth + 1
    return depth


def _talk(process: subprocess.Popen[bytes], requests: Sequence[str]) -> Iterator[Answer]:
    """Yield the answers that come before the process ends, if it does."""
    if process.stdin is None or process.stdout is None:
        return
    # Unbuffered, so that `select` knows of every byte that is there.
    answers, rest = process.stdout.fileno(), b""
    try:
        process.stdin.write(f"[{', '.join(requests)}]\n".encode())
        process.stdin.flush()
    except BrokenPipeError:
        return
    for _ in requests:
        while b"\n" not in rest:
            if not select.select([answers], [], [], _PATIENCE)[0]:
                process.kill()
                raise Transient(f"expressions: no answer for {_PATIENCE} seconds")
            if not (more := os.read(answers, 65_536)):
                return
            rest += more
        line, _, rest = rest.partition(b"\n")
        yield _answer(json.loads(line))


def _answer(given: Mapping[str, Any]) -> Answer:
    if "met" in given:
        return Answer(given["met"])
    return Answer(None, _AROUND.sub("", given["error"].partition("\n")[0])[:_LONGEST_REASON])


def _how_it_ended(process: subprocess.Popen[bytes], seconds: float) -> str:
    process.communicate()
    if process.returncode == -signal.SIGPROF:
        return f"it took more than {seconds} seconds"
    return "it needs too much memory"
