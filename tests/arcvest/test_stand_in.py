"""The stand-in for models: made from the question, in the agreed forms, and honest about itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from include.arcvest.articles import Article, Package, read
from include.arcvest.models import Question
from include.arcvest.stand_in import MARK, NAME, StandIn, answer
from include.errors import BadInput


def written(title: str, summary: str | None = "A summary") -> list[str]:
    """Return what it says in the four steps, one after the other."""
    asked: dict[str, Any] = {"idea": {"title": title, "summary": summary}}
    said = []
    for step in ("claude_draft", "gpt_improve", "gemini_polish", "claude_package"):
        said.append(answer(json.dumps({"step": step, **asked})))
        asked = {"article": json.loads(said[-1])}
    return said


@pytest.mark.parametrize("title", ["Rates rise", '<b>"Ñ"</b> & Co', "x" * 300, "."])
def test_it_passes_the_same_forms(title: str) -> None:
    """Ruling: everything that comes after it works as it will with a model."""
    *articles, package = written(title)
    assert all(read(text, Article) for text in articles)
    assert read(package, Package).tags


def test_its_output_depends_on_its_input() -> None:
    """Ruling: two ideas are two articles, and the same idea is the same."""
    assert written("One") == written("One")
    assert len({*written("One"), *written("Two")}) == 8
    assert "A summary" in written("One")[0]


def test_it_says_what_it_is() -> None:
    """Ruling: nobody must take its text for an article that somebody wrote."""
    for text in written("One"):
        assert MARK in text
    package = read(written("One")[-1], Package)
    assert MARK in package.html
    assert MARK in package.excerpt
    assert "stand-in" in package.tags
    question = Question("openai", "gpt", "", json.dumps({"step": "claude_draft", "idea": {"title": "One"}}))
    assert StandIn().ask(question).model == NAME


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"step": "x"}', '{"step": "gpt_improve", "article": "a"}'])
def test_a_question_that_no_step_asks(text: str) -> None:
    """It answers the pipeline's questions and no others."""
    with pytest.raises(BadInput):
        answer(text)
