"""What the pipeline's models must answer: an article, then the package that the calendar takes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, Struct

from include.arcvest.models import Unusable

LARGEST = 400_000
"""Characters of one answer; a longer one is no article."""

_FENCED = re.compile(r"```(?:json)?[ \t]*\r?\n(?P<inside>.*?)\r?\n?```", re.DOTALL | re.IGNORECASE)
_SHOWN = 120

Title = Annotated[str, Meta(min_length=1, max_length=300, pattern=r"\S")]
Words = Annotated[str, Meta(min_length=1, max_length=200_000, pattern=r"\S")]
Tag = Annotated[str, Meta(min_length=1, max_length=60, pattern=r"\S")]


class Article(Struct, frozen=True):
    """An article on its way: `body` is Markdown."""

    title: Title
    body: Words


class Package(Struct, frozen=True):
    """An article as the calendar takes it: `html` is the body alone, as the model wrote it and so not yet safe."""

    title: Title
    html: Words
    excerpt: Annotated[str, Meta(min_length=1, max_length=2_000, pattern=r"\S")]
    tags: Annotated[list[Tag], Meta(min_length=1, max_length=20)]
    image_prompt: Annotated[str, Meta(min_length=1, max_length=4_000, pattern=r"\S")]


Form = TypeVar("Form", bound=Article | Package)


def read(text: str, form: type[Form]) -> Form:
    """Return a model's answer in the agreed form; one pair of Markdown fences around it is taken off.

    Raises Unusable for anything else, saying what is wrong with it.
    """
    if len(text) > LARGEST:
        raise Unusable(f"the answer has {len(text):,} characters, more than {LARGEST:,}")
    whole = _unfenced(text.strip())
    try:
        found = msgspec.json.decode(whole, type=form)
    except msgspec.ValidationError as error:
        raise Unusable(f"the answer is not in the agreed form: {error}") from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        start = " ".join(whole[:_SHOWN].split())
        raise Unusable(f"the answer is not readable JSON ({error}): {start!r}") from None
    if "\x00" in "".join(_texts(found)):
        # Postgres can't keep one.
        raise Unusable("the answer holds a null character")
    return found


def _texts(found: Struct) -> Iterator[str]:
    for value in msgspec.structs.astuple(found):
        yield from value if isinstance(value, list) else [value]


def schema_of(form: type[Form]) -> str:
    """Return the form as JSON Schema, for the instructions."""
    return msgspec.json.encode(msgspec.json.schema(form)).decode()


def _unfenced(text: str) -> str:
    """Take off one pair of fences around everything; half a pair stays, and is no JSON."""
    found = _FENCED.fullmatch(text)
    return found["inside"].strip() if found else text
