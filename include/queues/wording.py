"""The engine's statements in the words of one table: names and status words go in quoted, values stay binds."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import LiteralString, cast

from psycopg import sql
from sqlalchemy import TextClause, text

from include.errors import BadInput
from include.queues.table import LOST, PLAIN_NAME, QueueTable
from include.statements import Statement

_NOTHING = sql.SQL("")
_KEY_TYPES = {"uuid": sql.SQL("uuid"), "text": sql.SQL("text"), "bigint": sql.SQL("bigint")}


@cache
def worded(
    table: QueueTable, name: str, *, beyond: bool = False, kinds: bool = False, without: bool = False
) -> Statement:
    """Return the statement `sql/<name>.sql` for a table.

    `beyond`, `kinds` and `without` add the conditions of a claim that starts past a place, takes some kinds
    only, or leaves some rows aside.
    """
    composed = _template("sql", name).format(
        **_words(table), **_conditions(table, beyond=beyond, kinds=kinds, without=without)
    )
    return Statement(f"{table.name}: {name}", text(composed.as_string(None)))


@cache
def worded_enqueue(table: QueueTable, columns: tuple[str, ...]) -> Statement:
    """Return the statement that inserts rows with these columns, besides the due time.

    Raises BadInput if a column is no plain name.
    """
    if bad := [name for name in columns if not PLAIN_NAME.fullmatch(name)]:
        raise BadInput(f"{table.name}: {bad[0]!r} is not a plain name of a column")
    composed = _template("sql", "enqueue").format(
        **_words(table),
        given=sql.SQL(", ").join(map(sql.Identifier, columns)),
        given_values=sql.SQL(", ").join(map(_column, columns)),
        due=sql.Identifier(table.due),
        due_given=_column(table.due),
        on_known=sql.SQL("ON CONFLICT DO NOTHING") if table.dedupe else _NOTHING,
    )
    return Statement(f"{table.name}: enqueue", text(composed.as_string(None)))


@cache
def by_cause(package: str, name: str, error: str, parts: tuple[str, ...] = ()) -> Statement:
    """Return the statement `<package>/sql/<name>.sql` about rows `q` whose column `error` has an error's text.

    `{cause}` and `{cause_id}` in it are what the console groups failures by; `{part}` is `sql/parts/<part>.sql`,
    which may have both as well. Raises BadInput if the column is no plain name.
    """
    if not PLAIN_NAME.fullmatch(error):
        raise BadInput(f"{error!r} is not a plain name of a column")
    cause = _template("parts", "cause").format(error=sql.Identifier(error))
    words = {"cause": cause, "cause_id": _template("parts", "cause_id").format(cause=cause)}
    words |= {part: _template("sql/parts", part, package).format(**words) for part in parts}
    return Statement(name, text(_template("sql", name, package).format(**words).as_string(None)))


def ddl(table: QueueTable, name: str) -> TextClause:
    """Return the definition `ddl/<name>.sql` for a table."""
    return text(_template("ddl", name).format(**_words(table)).as_string(None))


def _template(folder: str, name: str, package: str = "include.queues") -> sql.SQL:
    source = resources.files(package).joinpath(folder, f"{name}.sql").read_text(encoding="utf-8")
    # The text of our own file, which is as literal as if it stood here.
    return sql.SQL(cast("LiteralString", source))


def due_terms(table: QueueTable) -> list[str]:
    """Return the columns of the index over due rows: what a claim sorts them by."""
    terms = [_rank(table, bare=True)] if table.priority or table.tenant else []
    terms += [sql.SQL("({})").format(_turn(table, bare=True))] if table.tenant else []
    terms += [sql.SQL("({})").format(_due_at(table, bare=True)), _column(table.key, bare=True)]
    return [term.as_string(None) for term in terms]


def where_status(table: QueueTable, *words: str) -> str:
    """Return the condition that a row has one of these statuses."""
    listed = sql.SQL(", ").join(map(sql.Literal, words))
    form = "{} IN ({})" if len(words) > 1 else "{} = {}"
    return sql.SQL(form).format(sql.Identifier(table.status), listed).as_string(None)


def _column(name: str | None, *, bare: bool = False) -> sql.Composable:
    if name is None:
        return sql.SQL("NULL")
    return sql.Identifier(name) if bare else sql.SQL("q.{}").format(sql.Identifier(name))


def _due_at(table: QueueTable, *, bare: bool = False) -> sql.Composable:
    if table.again is None or table.again == table.due:
        return _column(table.due, bare=bare)
    return sql.SQL("coalesce({}, {})").format(_column(table.again, bare=bare), _column(table.due, bare=bare))


def _rank(table: QueueTable, *, bare: bool = False) -> sql.Composable:
    """Return what sorts rows of a higher priority first, in the one direction that the due time has too."""
    if table.priority is None:
        return sql.SQL("(0)")
    return sql.SQL("(- coalesce({}, 0))").format(_column(table.priority, bare=bare))


def _turn(table: QueueTable, *, bare: bool = False) -> sql.Composable:
    if table.tenant is None:
        return sql.SQL("''")
    return sql.SQL("coalesce({}::text, '')").format(_column(table.tenant, bare=bare))


def _order(table: QueueTable) -> list[sql.Composable]:
    first = [_rank(table)] if table.priority else []
    return [*first, _due_at(table), _column(table.key)]


def _conditions(table: QueueTable, *, beyond: bool, kinds: bool, without: bool) -> dict[str, sql.Composable]:
    place: list[sql.Composable] = [sql.SQL(":after_rank")] if table.priority else []
    place += [
        sql.SQL("CAST(:after_due AS timestamptz)"),
        sql.SQL("CAST(:after_key AS {})").format(_KEY_TYPES[table.key_type]),
    ]
    return {
        "beyond": sql.SQL("AND ({}) > ({})").format(
            sql.SQL(", ").join(_order(table)), sql.SQL(", ").join(place)
        )
        if beyond
        else _NOTHING,
        "of_kinds": sql.SQL("AND {} = ANY (CAST(:kinds AS text[]))").format(_column(table.kind))
        if kinds
        else _NOTHING,
        "without": sql.SQL("AND {} <> ALL (CAST(:without AS {}[]))").format(
            _column(table.key), _KEY_TYPES[table.key_type]
        )
        if without
        else _NOTHING,
    }


def _stamps(table: QueueTable, *columns: str | None) -> sql.Composable:
    """Return `, column = clock_timestamp()` for each column that the table has."""
    named = dict.fromkeys(column for column in (*columns, table.updated) if column)
    return sql.SQL("").join(
        sql.SQL(", {} = clock_timestamp()").format(sql.Identifier(column)) for column in named
    )


def _in_stage(table: QueueTable) -> sql.Composable:
    if table.stage is None or table.priority is None:
        return _NOTHING
    return sql.SQL(
        "AND NOT EXISTS (SELECT FROM {table} AS s WHERE s.{stage} = q.{stage} "
        "AND s.{status} IN ({due}, {claimed}) AND coalesce(s.{priority}, 0) > coalesce(q.{priority}, 0))"
    ).format(
        table=sql.Identifier(table.name),
        stage=sql.Identifier(table.stage),
        status=sql.Identifier(table.status),
        due=sql.Literal(table.words.due),
        claimed=sql.Literal(table.words.claimed),
        priority=sql.Identifier(table.priority),
    )


def _returned(table: QueueTable) -> sql.Composable:
    """Return a claim's columns: what the engine needs under its own names, then the row's own."""
    own = (
        sql.SQL("{} AS claim_key").format(_column(table.key)),
        sql.SQL("{} AS claim_attempt").format(_column(table.attempts)),
        sql.SQL("coalesce({}, {}) AS claim_limit").format(
            _column(table.max_attempts), sql.Literal(table.attempt_limit)
        ),
        sql.SQL("{} AS claim_rank").format(_rank(table)),
        sql.SQL("{} AS claim_due").format(_due_at(table)),
    )
    return sql.SQL(", ").join([*own, sql.SQL("q.*")])


def _sight(table: QueueTable) -> Mapping[str, sql.Composable]:
    """Return the words of the statements that show a queue to people: what `parts/` describes."""
    error, kind = sql.Identifier(table.error), _column(table.kind)
    cause = _template("parts", "cause").format(error=error)
    cause_id = _template("parts", "cause_id").format(cause=cause)
    matches = _template("parts", "matches").format(
        status=sql.Identifier(table.status),
        kind=kind,
        key=sql.Identifier(table.key),
        error=error,
        cause_id=cause_id,
    )
    return {
        "planned": _column(table.due),
        "kind": kind,
        "updated": _column(table.updated),
        "cause": cause,
        "cause_id": cause_id,
        "matches": matches,
    }


def _words(table: QueueTable) -> Mapping[str, sql.Composable]:
    words = table.words
    again = table.again or table.due
    ended = [word for word in (words.done, words.failed, words.cancelled) if word]
    return {
        "table": sql.Identifier(table.name),
        "table_word": sql.Literal(table.name),
        "channel_word": sql.Literal(table.channel),
        "key": sql.Identifier(table.key),
        "key_word": sql.Literal(table.key),
        "key_type": _KEY_TYPES[table.key_type],
        "status": sql.Identifier(table.status),
        "status_word": sql.Literal(table.status),
        "attempts": sql.Identifier(table.attempts),
        "max_attempts": _column(table.max_attempts),
        "error": sql.Identifier(table.error),
        "again": sql.Identifier(again),
        "due_at": _due_at(table),
        # Whoever claimed it last did not come back.
        "lost": sql.SQL("coalesce({} = {}, false)").format(_column(table.error), sql.Literal(LOST)),
        "rank": _rank(table),
        "turn": _turn(table),
        "order": sql.SQL(", ").join(_order(table)),
        "started": _column(table.started),
        "finished": _column(table.finished),
        "due_word": sql.Literal(words.due),
        "claimed_word": sql.Literal(words.claimed),
        "done_word": sql.Literal(words.done),
        "failed_word": sql.Literal(words.failed),
        "cancelled_word": sql.Literal(words.cancelled or words.failed),
        "ended_words": sql.SQL(", ").join(sql.Literal(word) for word in ended),
        "claimed_stamps": _stamps(table, table.started),
        "done_stamps": _stamps(table, table.finished),
        "retried_stamps": _stamps(table),
        "failed_stamps": _stamps(table)
        if table.finished is None
        else sql.SQL("{}, {} = CASE WHEN said.ends THEN clock_timestamp() ELSE {} END").format(
            _stamps(table), sql.Identifier(table.finished), _column(table.finished)
        ),
        "in_stage": _in_stage(table),
        "returned": _returned(table),
        "allowed": sql.SQL(", ").join(
            sql.SQL("({}, {})").format(sql.Literal(before), sql.Literal(after))
            for before, after in sorted(table.allowed_moves())
        ),
        **_sight(table),
        "refuse": sql.Identifier(f"{table.name}_refuse"),
        "moved": sql.Identifier(f"{table.name}_moved"),
        "filled": sql.Identifier(f"{table.name}_filled"),
    }
