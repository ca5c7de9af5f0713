"""Tenants' conditions: what they may say, and that no text of theirs can hang the job or eat its memory."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from include.ecocomply import expressions
from include.ecocomply.expressions import Answer, Asked, Evaluator

LETTERS = "abcdefghijklmnopqrstuvwxyz"


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    """Start one process for all cases, as a job does."""
    with Evaluator() as made:
        yield made


def ask(evaluator: Evaluator, text: Any, **fields: Any) -> Answer:
    """Return the answer to one expression."""
    (answer,) = evaluator.answers([Asked(text, fields)])
    return answer


@pytest.mark.parametrize(
    ("text", "fields", "met"),
    [
        ("waste_volume > threshold", {"waste_volume": 1000, "threshold": 1000}, False),
        ("waste_volume > threshold", {"waste_volume": 1000.01, "threshold": 1000}, True),
        ("unit == 'LITRES' || quantity < 20.0", {"unit": "KG", "quantity": 20}, False),
        ("ewc_code in ['130205*', '200101']", {"ewc_code": "200101"}, True),
        ("ewc_code.startsWith('13') && !ewc_code.endsWith('*')", {"ewc_code": "130205*"}, False),
        ("ewc_code.matches('^[0-9]{6}[*]?$')", {"ewc_code": "130205*"}, True),
        ("parameters.exists(p, p.value > p.limit)", {"parameters": [{"value": 3, "limit": 2}]}, True),
        ("has(event.site) && event.site.name == 'Leeds'", {"event": {"site": {"name": "Leeds"}}}, True),
        ("has(event.site)", {"event": {}}, False),
        ("quantity == null || quantity < 5", {"quantity": None}, True),
        ("event['type'] == 'spill'", {"event": {"type": "spill"}, "type": "spill"}, True),
        ("consignment_date >= '2026-01-31'", {"consignment_date": "2026-01-31"}, True),
    ],
)
def test_what_can_be_said(evaluator: Evaluator, text: str, fields: dict[str, Any], *, met: bool) -> None:
    """Comparisons of numbers, texts, lists and nested fields, at their boundaries."""
    assert ask(evaluator, text, **fields) == Answer(met=met)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("colour == 'red'", "undeclared reference to 'colour'"),
        ("event.colour == 'red'", 'Key not found in map : "colour"'),
        ("name > 5", "No matching overloads found : _>_(string, int64)"),
        ("quantity + 'x' == 'x'", "No matching overloads found : _+_(double, string)"),
        ("quantity", "it gives double, not true or false"),
        ("name", "it gives string, not true or false"),
        ("1 / 0 == 1", "divide by zero"),
        ("1 % 0 == 1", "modulus by zero"),
        ("9223372036854775807 + 1 > 0", "integer overflow"),
        ("name.matches('(')", "invalid regular expression: missing ): ("),
        ("__import__('os').system('true') == 0", "undeclared reference to '__import__'"),
        (
            "quantity >",
            "Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true',",
        ),
        ("   ", "there is no expression"),
        (None, "there is no expression"),
        ({"a": 1}, "there is no expression"),
        (f"'{'x' * expressions.LONGEST_TEXT}' == name", "it has more than 1,000 characters"),
    ],
)
def test_what_can_not_be_evaluated(evaluator: Evaluator, text: Any, reason: str) -> None:
    """A missing field, a type error, a division by zero and nonsense have a reason that a person understands."""
    answer = ask(evaluator, text, quantity=5.5, name="drum", event={})
    assert answer.met is None
    assert (answer.reason or "").startswith(reason)


def nested(levels: int, copies: int) -> str:
    """Return lists within lists that are compared as a whole: small as a text, and copies ** levels as a value."""
    opened = "".join(
        f"[[{inner}{(',' + inner) * (copies - 1)}]].all({outer}, "
        for inner, outer in zip("s" + LETTERS, LETTERS, strict=False)
        if LETTERS.index(outer) < levels
    )
    return f"{opened}{LETTERS[levels - 1]} == {LETTERS[levels - 1]}{')' * levels}"


HOSTILE = {
    "brackets": "(" * 400 + "true" + ")" * 400,
    "lists in lists": "[" * 400 + "]" * 400 + " == []",
    "a long sum": "1" + "+1" * 450 + " > 0",
    "loops in loops": "l.all(a, l.all(b, l.all(c, l.all(d, a + b + c + d >= 0))))",
    "texts that double": "[s]" + ".map(a,a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a)" * 8 + "[0].size() > 0",
    "lists that multiply": nested(8, 30),
    "texts of texts": "l.all(a, " + "+".join(["s"] * 200) + " != s)",
    "maps that multiply": "[{'a': s}]" + ".map(a, {'a': a, 'b': a, 'c': a, 'd': a})" * 20 + ".all(m, m == m)",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_expression(evaluator: Evaluator, name: str) -> None:
    """It is ended within its time and memory, has a reason, and the next one is evaluated as if nothing was."""
    text = HOSTILE[name]
    assert len(text) <= expressions.LONGEST_TEXT
    fields = {"l": list(range(500)), "s": "x" * 10_000}
    before, began = psutil.Process().memory_info().rss, time.process_time()
    hostile, harmless = evaluator.answers([Asked(text, fields), Asked("s.size() == 10000", fields)])
    assert hostile.met is None
    assert hostile.reason
    assert harmless == Answer(met=True)
    assert psutil.Process().memory_info().rss - before < 50_000_000
    assert time.process_time() - began < 1


def test_time_is_limited(evaluator: Evaluator) -> None:
    """What would keep a processor busy for minutes is ended after its half second."""
    assert ask(evaluator, nested(8, 30), s="x") == Answer(None, "it took more than 0.5 seconds")


def test_memory_is_limited() -> None:
    """With all the time of the world a text that multiplies ends at its share of memory."""
    with Evaluator(seconds=60) as patient:
        answer = ask(patient, HOSTILE["texts that double"], s="x" * 10_000, l=[])
    assert answer == Answer(None, "it needs too much memory")


def test_a_pattern_takes_linear_time(evaluator: Evaluator) -> None:
    """What makes other engines go back and forth for years is one pass here."""
    assert ask(evaluator, "s.matches('^(a+)+$')", s="a" * 10_000 + "!") == Answer(met=False)


def test_fields_are_limited(evaluator: Evaluator) -> None:
    """Values are tenants' as well: neither their size nor their depth is without end."""
    deep: Any = 1
    for _ in range(expressions.DEEPEST_FIELDS):
        deep = [deep]
    assert ask(evaluator, "true", f="x" * 30_000).reason == "its fields have more than 20,000 characters"
    assert ask(evaluator, "true", f=deep).reason == "its fields lie more than 16 levels deep"
    assert ask(evaluator, "true", f=deep[0]) == Answer(met=True)
    assert ask(evaluator, "f > 1.0", f=float("nan")).met is None
    assert ask(evaluator, "f > 1", f=2**80).met is None


def test_many_at_once(evaluator: Evaluator) -> None:
    """More than one message holds, in their order, with a hostile one in the midst."""
    asked = [Asked("n == 7", {"n": number}) for number in range(300)]
    asked[150] = Asked(nested(8, 30), {"s": "x"})
    answers = evaluator.answers(asked)
    assert [place for place, answer in enumerate(answers) if answer.met] == [7]
    assert [place for place, answer in enumerate(answers) if answer.met is None] == [150]


def test_the_process_ends_with_the_block() -> None:
    """Nothing stays behind, whatever ended the block; and where nothing was asked, nothing began."""
    others = {one.pid for one in psutil.Process().children()}
    with Evaluator() as made:
        assert {one.pid for one in psutil.Process().children()} == others
        assert ask(made, "true") == Answer(met=True)
        (child,) = (one for one in psutil.Process().children() if one.pid not in others)
    assert not child.is_running()


def test_the_process_knows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no environment, which is where the passwords of databases are."""
    monkeypatch.setenv("AIRFLOW_CONN_ECOCOMPLY_DB", "postgres://secret")
    others = {one.pid for one in psutil.Process().children()}
    with Evaluator() as made:
        ask(made, "true")
        (child,) = (one for one in psutil.Process().children() if one.pid not in others)
        assert "AIRFLOW_CONN_ECOCOMPLY_DB" not in child.environ()
