"""What counts as a model's answer, and what does not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from include.arcvest.articles import LARGEST, Article, Package, read, schema_of
from include.arcvest.models import Unusable

ARTICLE = '{"title": "A", "body": "b"}'
PACKAGE: dict[str, Any] = {
    "title": "A", "html": "<p>b</p>", "excerpt": "c", "tags": ["d"], "image_prompt": "e"
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        (ARTICLE, "whole"),
        (f"  {ARTICLE}\n", "whole"),
        (f"```json\n{ARTICLE}\n```", "whole"),
        (f"```JSON\r\n{ARTICLE}\r\n```\n", "whole"),
        (f"```\n{ARTICLE}\n```", "whole"),
        ('```json\n{"title": "A", "body": "```\\ncode\\n```"}\n```', "whole"),
        (f"```json\n{ARTICLE}", "broken"),
        (f"{ARTICLE}\n```", "broken"),
        (f"```json\n{ARTICLE[:-1]}\n```", "broken"),
        (f"Here it is:\n```json\n{ARTICLE}\n```", "broken"),
        (f"```json\n{ARTICLE}\n```\n```json\n{ARTICLE}\n```", "broken"),
        (f"{ARTICLE}{ARTICLE}", "broken"),
        ("", "broken"),
        ("null", "broken"),
        ("[]", "broken"),
    ],
)
def test_fences(text: str, whole: str) -> None:
    """Ruling: one whole pair of fences is taken off, and nothing is guessed."""
    if whole == "whole":
        assert read(text, Article).title == "A"
    else:
        with pytest.raises(Unusable):
            read(text, Article)


@pytest.mark.parametrize(
    "changed",
    [
        {"title": ""},
        {"title": "t" * 301},
        {"title": None},
        {"html": " \n"},
        {"html": 5},
        {"excerpt": ""},
        {"tags": []},
        {"tags": ["a"] * 21},
        {"tags": "a, b"},
        {"tags": [""]},
        {"tags": ["x" * 61]},
        {"tags": ["a\u0000"]},
        {"image_prompt": ""},
        {"image_prompt": ["a"]},
    ],
)
def test_what_is_no_package(changed: dict[str, Any]) -> None:
    """Every part is there, within its bounds, or the answer is none."""
    assert read(json.dumps(PACKAGE), Package).tags == ["d"]
    with pytest.raises(Unusable):
        read(json.dumps(PACKAGE | changed), Package)


def test_a_huge_answer_is_refused_before_it_is_read() -> None:
    """Memory and time must not grow with what a stranger sends."""
    with pytest.raises(Unusable, match="characters"):
        read(" " * (LARGEST + 1), Article)


@pytest.mark.parametrize("form", [Article, Package])
def test_the_form_is_told_as_json_schema(form: Any) -> None:
    """A model is asked for the very form that its answer is held against."""
    (told,) = json.loads(schema_of(form))["$defs"].values()
    assert set(told["required"]) == set(form.__struct_fields__)
