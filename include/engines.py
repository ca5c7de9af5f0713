"""One way to Postgres for jobs, console, migrations and tests: the session's settings, dates and JSON as they come.

Postgres holds dates that Python can't: infinity, years before 1 and after 9999. The driver would refuse the
whole result for one of them, so here each comes as an OddDate, and only its own row has to be refused. JSON that is
too much for Python is read by `include/odd_json.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from sqlalchemy import URL, Engine, ExceptionContext, create_engine, event, make_url

from include import odd_json
from include.odd_dates import OddDate

# What the driver can read, whatever the server, the database or the role says.
_SESSION = {"TimeZone": "UTC", "DateStyle": "ISO", "IntervalStyle": "postgres"}
_TYPES = ("date", "timestamp", "timestamptz")


def make_engine(
    url: URL | str,
    *,
    session: Mapping[str, str] | None = None,
    connect: Mapping[str, Any] | None = None,
    **pool: Any,
) -> Engine:
    """Return an engine for a `postgresql+psycopg` URL; nothing is connected yet.

    Its errors hold no value of a row and none that was bound: whatever goes wrong is logged with its traceback.

    `session` are Postgres settings of each connection beside the platform's own, or in their place; `connect`
    goes to the driver, `pool` to `create_engine`.
    """
    at = make_url(url)
    settings = " ".join(f"-c {name}={value}" for name, value in {**_SESSION, **(session or {})}.items())
    own = at.query.get("options")
    engine = create_engine(
        at.difference_update_query(["options"]),
        connect_args={**(connect or {}), "options": f"{own} {settings}" if own else settings},
        json_deserializer=odd_json.read,
        hide_parameters=True,
        **pool,
    )
    event.listen(engine, "connect", _read_odd_dates)
    event.listen(engine, "connect", _send_lists_as_binary)
    event.listen(engine, "handle_error", _leave_out_values)
    return engine


def _leave_out_values(context: ExceptionContext) -> None:
    # Below its first line Postgres tells the row: a mail, an address, a token. What is read of an error is its `diag`.
    for error in (context.original_exception, context.sqlalchemy_exception):
        if error is not None and error.args:
            message, *others = error.args
            error.args = (str(message).partition("\n")[0], *others)


def _read_odd_dates(connection: Any, record: object) -> None:  # noqa: ARG001 - the event's form
    for name, loader in _loaders().items():
        connection.adapters.register_loader(name, loader)


def _send_lists_as_binary(connection: Any, record: object) -> None:  # noqa: ARG001 - the event's form
    from psycopg.types.array import ListBinaryDumper  # noqa: PLC0415 - not at parse time

    # As text, every quote within an element is escaped by a call of Python's: a thousand mails took 160 ms.
    connection.adapters.register_dumper(list, ListBinaryDumper)


@cache
def _loaders() -> dict[str, type]:
    from psycopg import DataError, adapters  # noqa: PLC0415 - not at parse time
    from psycopg.abc import AdaptContext  # noqa: PLC0415 - as above
    from psycopg.adapt import Loader  # noqa: PLC0415 - as above
    from psycopg.pq import Format  # noqa: PLC0415 - as above

    def around(base: Any) -> type:
        class OddDateLoader(Loader):
            """The driver's own loader, which is final, with a way out for what it refuses."""

            def __init__(self, oid: int, context: AdaptContext | None = None) -> None:
                super().__init__(oid, context)
                self._load = base(oid, context).load

            def load(self, data: Any) -> Any:
                try:
                    return self._load(data)
                except DataError:
                    return OddDate(bytes(data).decode())

        return OddDateLoader

    return {name: around(adapters.get_loader(adapters.types[name].oid, Format.TEXT)) for name in _TYPES}
