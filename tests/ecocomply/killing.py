"""A process that ends at a given statement, commit or call to the outside."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sqlalchemy import Engine, event


class Killed(BaseException):
    """The process is gone."""


def killed_at(engine: Engine, perform: Callable[[], Any], outside: Iterable[Any], die_at: int) -> list[str]:
    """Perform and end the process at one event, from 1 (0: never); return what happened until then.

    `outside` are fakes with a `tick` that they call before and after everything that takes effect.
    """
    events: list[str] = []

    def tick(what: str) -> None:
        events.append(what)
        if len(events) == die_at:
            raise Killed(what)

    def statement(conn: Any, cursor: Any, sql: str, *rest: Any) -> None:
        tick(sql.split("\n", maxsplit=1)[0])

    def commit(conn: Any) -> None:
        tick("commit")

    fakes = list(outside)
    for fake in fakes:
        fake.tick = tick
    event.listen(engine, "before_cursor_execute", statement)
    event.listen(engine, "commit", commit)
    try:
        perform()
    except Killed:
        engine.dispose()
    finally:
        event.remove(engine, "before_cursor_execute", statement)
        event.remove(engine, "commit", commit)
        for fake in fakes:
            fake.tick = lambda what: None
    return events
