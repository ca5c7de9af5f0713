"""A breaker before each parser: after five failures in a row it is left alone for a minute, then one caller probes.

Its state is committed in the database, so that all processes share it; its time is the database's clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from include.errors import Outage, Refused
from include.run import Run, row_error
from include.statements import statement

PACKAGE = "include.nifya"
FAILURES = 5
OPEN_SECONDS = 60
PROBE_SECONDS = 300
"""After so long a probe is given up for lost; longer than any question to a parser takes."""

Answer = TypeVar("Answer")


class LeftAlone(Outage):
    """The parser is not asked, because it has failed too often just now."""

    def __init__(self, parser: str) -> None:
        super().__init__(
            f"NIFYA: parser {parser} failed {FAILURES} times in a row and is left alone for {OPEN_SECONDS} s",
            service=f"nifya_{parser}",
        )


def is_left_alone(run: Run, parser: str) -> bool:
    """Say whether a parser would not be asked now."""
    with run.transaction() as tx:
        breaker = tx.row(statement(PACKAGE, "parser_breaker"), parser=parser)
    return breaker is not None and bool(breaker.is_open and breaker.is_left_alone)


@dataclass(slots=True)
class Breakers:
    """The breakers as one worker meets them while it works on one chunk."""

    run: Run
    _passed: set[str] = field(default_factory=set)
    _probing: set[str] = field(default_factory=set)
    _well: set[str] = field(default_factory=set)
    _left_alone: dict[str, LeftAlone] = field(default_factory=dict)

    def ask(self, parser: str, question: Callable[[], Answer]) -> Answer:
        """Ask the parser if its breaker lets it, and note how it went.

        No transaction is open while it answers. Raises LeftAlone if the breaker is open; what the parser itself
        raises passes, and an Outage counts against it.
        """
        if parser in self._left_alone:
            raise self._left_alone[parser]
        if parser not in self._passed:
            self._pass(parser)
        try:
            answer = question()
        except Outage as error:
            self._failed(parser, error)
            raise
        except Refused:
            # It said no to this one thing, so it is there.
            self._answered(parser)
            raise
        except Exception:
            # Our own fault says nothing of the parser.
            self._unanswered(parser)
            raise
        self._answered(parser)
        return answer

    def _pass(self, parser: str) -> None:
        with self.run.transaction() as tx:
            breaker = tx.row(statement(PACKAGE, "parser_breaker"), parser=parser)
            is_open = breaker is not None and breaker.is_open
            if is_open and not tx.execute(
                statement(PACKAGE, "take_probe"), parser=parser, probe_seconds=PROBE_SECONDS
            ):
                error = self._left_alone[parser] = LeftAlone(parser)
                raise error
        self._passed.add(parser)
        if is_open:
            self._probing.add(parser)

    def _unanswered(self, parser: str) -> None:
        if parser not in self._probing:
            return
        self._probing.discard(parser)
        self._passed.discard(parser)
        with self.run.transaction() as tx:
            tx.execute(statement(PACKAGE, "release_probe"), parser=parser)

    def _failed(self, parser: str, error: Outage) -> None:
        self._probing.discard(parser)
        self._passed.discard(parser)
        self._well.discard(parser)
        with self.run.transaction() as tx:
            tx.execute(
                statement(PACKAGE, "parser_failed"),
                parser=parser,
                most=FAILURES,
                open_seconds=OPEN_SECONDS,
                error=row_error(error),
            )

    def _answered(self, parser: str) -> None:
        if parser in self._well:
            return
        with self.run.transaction() as tx:
            tx.execute(statement(PACKAGE, "parser_answered"), parser=parser)
        self._probing.discard(parser)
        self._well.add(parser)
