"""What answers where no model is to be asked: text that is made from the question, and says so.

It keeps to the same forms as a model, so that everything after it works as it will.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from html import escape
from typing import Any

from include.arcvest.models import Question, Reply, Vendor
from include.errors import BadInput

NAME = "almanac-stand-in"
MARK = "Stand-in text: no language model was asked."
"""Stands in every article, and so in the HTML and the excerpt."""

_TAGS = 5
_EXCERPT = 200


class StandIn:
    """The models' place, taken by functions."""

    def check(self, vendor: Vendor) -> None:
        """Have nothing to miss."""

    def ask(self, question: Question) -> Reply:
        text = answer(question.text)
        return Reply(text, NAME, tokens_in=len(question.text) // 4, tokens_out=len(text) // 4)


def answer(text: str) -> str:
    """Return the answer to a question's text, as JSON. Raises BadInput for a text that no step has written."""
    try:
        asked = json.loads(text)
        return json.dumps(_STEPS[asked["step"]](asked), ensure_ascii=False)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"stand-in: not a question of the pipeline ({type(error).__name__})") from None


def _draft(asked: Mapping[str, Any]) -> dict[str, Any]:
    idea = asked["idea"]
    source = idea.get("source_name") or idea.get("source") or "the source"
    parts = [
        f"> {MARK}",
        f"## What happened\n\n{idea.get('summary') or idea['title']}",
        f"## Where it comes from\n\n{source} published this at {idea.get('url') or 'no address'}",
    ]
    return {"title": idea["title"], "body": "\n\n".join(parts)}


def _improve(asked: Mapping[str, Any]) -> dict[str, Any]:
    article = asked["article"]
    words = len(article["body"].split())
    return {
        "title": article["title"],
        "body": f"{article['body']}\n\n## In short\n\n{article['title']}, in {words} words.",
    }


def _polish(asked: Mapping[str, Any]) -> dict[str, Any]:
    article = asked["article"]
    title = " ".join(article["title"].split()).rstrip(".") or article["title"]
    return {
        "title": title[:1].upper() + title[1:],
        "body": f"{article['body'].strip()}\n\nThat is all that a stand-in has to say of it.",
    }


def _package(asked: Mapping[str, Any]) -> dict[str, Any]:
    title, body = asked["article"]["title"], asked["article"]["body"]
    plain = " ".join(re.sub(r"^(##|>) *", "", body, flags=re.MULTILINE).split())
    return {
        "title": title,
        "html": "\n".join(map(_element, re.split(r"\n{2,}", body))),
        "excerpt": plain[:_EXCERPT],
        "tags": ["stand-in", *_frequent(f"{title} {plain}")],
        "image_prompt": f"A quiet drawing in two colours for an article with the title: {title}",
    }


def _element(block: str) -> str:
    for mark, name in (("## ", "h2"), ("> ", "blockquote")):
        if block.startswith(mark):
            return f"<{name}>{escape(block.removeprefix(mark))}</{name}>"
    return f"<p>{escape(block)}</p>"


def _frequent(text: str) -> list[str]:
    words = Counter(re.findall(r"[^\W\d_]{5,30}", text.lower()))
    return sorted(words, key=lambda word: (-words[word], word))[:_TAGS]


_STEPS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "claude_draft": _draft,
    "gpt_improve": _improve,
    "gemini_polish": _polish,
    "claude_package": _package,
}
