"""Which keywords stand in a text: whole words and phrases, with text and keywords written alike, in linear time."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

# One character class, so there is nothing to go back over.
_BETWEEN_WORDS = re.compile(r"[\W_]+")
_SOFT_HYPHEN = "\N{SOFT HYPHEN}"


def normalise(text: str) -> str:
    """Return the words of a text in small letters, a space before and after each: ` back up generator `.

    Whatever is neither letter nor digit parts words, so "back-up" is written like "back up".
    """
    plain = unicodedata.normalize("NFKC", text).replace(_SOFT_HYPHEN, "").casefold()
    words = _BETWEEN_WORDS.sub(" ", unicodedata.normalize("NFKC", plain)).strip()
    return f" {words} " if words else ""


def found_in(normalised: str, keywords: Sequence[str]) -> list[str]:
    """Return the keywords, as they are written, that stand in a normalised text; one without a word is nowhere."""
    found: dict[str, str] = {}
    for keyword in keywords:
        phrase = normalise(keyword)
        # The spaces around both sides make it whole words: "chp" is not in "matchpoint".
        if phrase and phrase not in found and phrase in normalised:
            found[phrase] = keyword
    return list(found.values())
