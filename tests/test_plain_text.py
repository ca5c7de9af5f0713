"""HTML that strangers wrote, as words: whatever it is, something comes of it."""

from __future__ import annotations

import pytest

from include.plain_text import LONGEST_SOURCE, from_html


@pytest.mark.parametrize(
    ("markup", "words"),
    [
        ("Roth <b>and</b> bonds", "Roth and bonds"),
        ("one<br>two<p>three</p>four", "one two three four"),
        ("<ul><li>a</li><li>b</li></ul>", "a b"),
        ("a &amp; b &lt;c&gt; &#8364;", "a & b <c> €"),
        ("<script>alert(1)</script>seen<style>p{}</style>", "seen"),
        ("<title>never</title>seen", "seen"),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
        ("Hello <![foo[x]]> there", "Hello there"),
        ("Hello <![ x", "Hello"),
        ("a<!-- never", "a"),
        ("<a href='https://x.test'>link</a>", "link"),
        ("", ""),
    ],
)
def test_the_words_of_html(markup: str, words: str) -> None:
    """Tags are left out, what stood in lines of its own is parted, and what is broken breaks nothing."""
    assert from_html(markup, 100) == words


@pytest.mark.parametrize(
    "piece", ["<a ", "<p>", "<b>", "</p>", "<div><b><i>", "<table>", "<!--", '<a b="', "&", "<![x["]
)
def test_what_never_ends_is_read(piece: str) -> None:
    """Each of these took a reader of the standard library seconds, or threw it out."""
    assert isinstance(from_html("Seen. " + piece * (LONGEST_SOURCE // len(piece)), 100), str)
    assert from_html("Seen. " + piece * (LONGEST_SOURCE // len(piece)), 100).startswith("Seen.")
