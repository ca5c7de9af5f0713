"""Which entries of a gazette a prompt asks for: by the stems of its words, whatever their accents and endings.

A word counts wherever it stands in an entry's title, department, section or heading. Up to three words of a
prompt must all be there; of more, two thirds: a prompt is often a whole sentence.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib import resources
from typing import Any

from include.nifya.gazettes import Entry

ALL_OF = 3
SHARE = 2 / 3
LONGEST_PROMPT = 500
MOST_WORDS = 40

_WORD = re.compile(r"[a-z0-9]+")
# The stemmer alone takes `auxiliar` for a verb and `auxiliares` for a noun: first every word is one, not many.
_ONE = (
    (re.compile(r"ces$"), "z"),
    (re.compile(r"(?<=[dlnrsjyz])es$"), ""),
    (re.compile(r"(?<=[aeio])s$"), ""),
)
_SHORTEST_OF_MANY = 5
# What Spanish always accents at the end; written without, the stemmer would not know the ending.
_ACCENTED = ((re.compile(r"ion$"), "ión"), (re.compile(r"logia$"), "logía"))


def matching(entries: Sequence[Entry], prompts: Sequence[str]) -> list[tuple[Entry, list[str]]]:
    """Return the entries that at least one prompt asks for, in their order, each with the prompts that do."""
    wanted = [(prompt, stems) for prompt in prompts if (stems := stems_of(prompt[:LONGEST_PROMPT]))]
    found: list[tuple[Entry, list[str]]] = []
    for entry in entries:
        there = _stems_of_entry(entry)
        if asked := [prompt for prompt, stems in wanted if _asks_for(stems, there)]:
            found.append((entry, asked))
    return found


@lru_cache(maxsize=10_000)
def stems_of(text: str) -> frozenset[str]:
    """Return the stems of a text's telling words, without accents; at most MOST_WORDS of them."""
    words = [word for word in _WORD.findall(_bare(text)) if word not in _empty() and len(word) > 1]
    return frozenset(_stem(word) for word in words[:MOST_WORDS])


def _asks_for(stems: frozenset[str], there: frozenset[str]) -> bool:
    needed = len(stems) if len(stems) <= ALL_OF else math.ceil(len(stems) * SHARE)
    return len(stems & there) >= needed


@lru_cache(maxsize=20_000)
def _stems_of_entry(entry: Entry) -> frozenset[str]:
    text = f"{entry.title} {entry.department} {entry.section} {entry.heading}"
    return frozenset(_stem(word) for word in _WORD.findall(_bare(text)) if word not in _empty())


def _bare(text: str) -> str:
    """Return a text in small letters without accents; ñ is a letter of its own only to people."""
    split = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in split if not unicodedata.combining(letter))


@lru_cache(maxsize=50_000)
def _stem(word: str) -> str:
    if len(word) >= _SHORTEST_OF_MANY:
        word = next((ending.sub(one, word) for ending, one in _ONE if ending.search(word)), word)
    for ending, accented in _ACCENTED:
        word = ending.sub(accented, word)
    return _bare(str(_stemmer().stemWord(word)))


@cache
def _empty() -> frozenset[str]:
    """Return the words that tell nothing apart: of grammar, of asking, and of every gazette."""
    text = resources.files("include.nifya").joinpath("empty_words.txt").read_text(encoding="ascii")
    return frozenset(text.split())


@cache
def _stemmer() -> Any:
    import snowballstemmer  # noqa: PLC0415 - not at parse time

    return snowballstemmer.stemmer("spanish")
