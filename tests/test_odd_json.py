"""What tenants wrote as JSON may be more than Python reads; whoever reads their rows goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine, bindparam, text
from sqlalchemy.dialects.postgresql import JSONB

from include import odd_json
from include.ecocomply.tables.base import METADATA
from include.run import EngineDatabase

LONG = "7" * 4_301
DEEP = "[" * 2_000 + "]" * 2_000


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ('{"a": [1, -2, 0.5, null, true, "x"]}', {"a": [1, -2, 0.5, None, True, "x"]}),
        (LONG, LONG),
        (f'{{"a": [-{LONG}], "b": 2}}', {"a": [f"-{LONG}"], "b": 2}),
        ("7" * 4_000, int("7" * 4_000)),
        (f"{LONG}.5", f"{LONG}.5"),
        ("1e400", "1e400"),
        (DEEP, DEEP),
        (DEEP.encode(), DEEP),
        (b'{"a": "\xc3\xb1"}', {"a": "ñ"}),
    ],
)
def test_what_is_read(given: str | bytes, said: Any) -> None:
    """A number that is out of reach is its text; all else is as ever."""
    assert odd_json.read(given) == said


def test_no_json_is_refused() -> None:
    """As by the reader of the language."""
    with pytest.raises(ValueError, match="Expecting"):
        odd_json.read("{a}")


@pytest.mark.parametrize("written", [f'{{"n": {LONG}}}', f'{{"n": {DEEP}}}'])
def test_a_row_among_others(empty_database: Engine, written: str) -> None:
    """Every engine reads so, whether a statement's columns have types or not: it would stop its whole page."""
    with empty_database.begin() as connection:
        connection.execute(text("CREATE TABLE t (id int, said jsonb, plain json)"))
        connection.execute(
            text("INSERT INTO t VALUES (1, CAST(:w AS jsonb), CAST(:w AS json)), (2, '{}', '{}')"),
            {"w": written},
        )
        untyped = connection.execute(text("SELECT said, plain FROM t ORDER BY id")).all()
        typed = connection.execute(text("SELECT said FROM t ORDER BY id").columns(said=JSONB)).scalars().all()
    assert [untyped[1].said, untyped[1].plain, typed[1]] == [{}, {}, {}]
    assert typed[0] == untyped[0].said != {}


def test_what_is_written_is_read(empty_database: Engine) -> None:
    """The reader is ours, and the writer the driver's own."""
    with empty_database.begin() as connection:
        made = text("SELECT :said").bindparams(bindparam("said", type_=JSONB))
        assert connection.execute(made, {"said": {"a": [1, "ñ"]}}).scalar() == {"a": [1, "ñ"]}


def test_every_json_column(database_of: Callable[..., EngineDatabase]) -> None:
    """By the tables' own types too, as the jobs and the console read them."""
    engine = database_of("ecocomply").engine
    table = METADATA.tables["companies"]
    with engine.begin() as connection:
        connection.execute(table.insert().values(name="A"))
        for column in (one for one in METADATA.tables["background_jobs"].c if isinstance(one.type, JSONB)):
            found = connection.execute(
                text(f"SELECT CAST('{LONG}' AS jsonb) AS said").columns(said=column.type)
            )
            assert found.scalar() == LONG
