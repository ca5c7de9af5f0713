"""Keywords are found as whole words and phrases, however either side is written, and in linear time."""

from __future__ import annotations

import time

import pytest

from include.ecocomply.keyword_search import found_in, normalise


@pytest.mark.parametrize(
    ("text", "keyword", "found"),
    [
        ("The CHP plant", "chp", True),
        ("the chp.", "CHP", True),
        ("matchpoint", "chp", False),
        ("generators", "generator", False),
        ("a generator", "generator", True),
        ("generator", "generator", True),
        ("A back-up generator", "back up generator", True),
        ("A back up generator", "back-up generator", True),
        ("A back\N{NON-BREAKING HYPHEN}up\n  generator", "back-up generator", True),
        ("A backup generator", "back-up generator", False),
        ("trade\neffluent", "Trade  Effluent", True),
        ("trade of effluent", "trade effluent", False),
        ("effluent trade", "trade effluent", False),
        ("sew\N{SOFT HYPHEN}er", "sewer", True),
        ("(sewer)", "sewer", True),
        ("sewer_main", "sewer", True),
        ("ﬁlter", "filter", True),
        ("STRASSE", "straße", True),
        ("cafe\N{COMBINING ACUTE ACCENT}", "café", True),
        ("anything", "", False),
        ("anything", " - ", False),
        ("", "sewer", False),
        ("(a+)+$", "a", True),
    ],
)
def test_whole_words(text: str, keyword: str, found: bool) -> None:  # noqa: FBT001 - a case's column
    """As ruled: both sides written alike, whole words and phrases."""
    assert found_in(normalise(text), [keyword]) == ([keyword] if found else [])


def test_each_keyword_once_in_its_own_writing() -> None:
    """A word within a phrase counts as well; two writings of the same keyword are one."""
    text = normalise("Trade effluent to the sewer, trade effluent again")
    assert found_in(text, ["trade effluent", "TRADE-EFFLUENT", "effluent", "sewer", "chp"]) == [
        "trade effluent",
        "effluent",
        "sewer",
    ]


@pytest.mark.parametrize(
    "text", ["a " * 1_000_000, "ab" * 1_000_000, "-_" * 1_000_000, "generato " * 200_000]
)
def test_long_hostile_text_takes_no_long_time(text: str) -> None:
    """Two million characters that almost match: time grows with the text, not with its square."""
    keywords = ["a " * 500 + "b", "ab" * 500 + "c", "generato " * 500 + "generator"]
    began = time.process_time()
    assert found_in(normalise(text), keywords) == []
    assert time.process_time() - began < 5
