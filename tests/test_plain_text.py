"""What is read of HTML that a stranger wrote, and how a URL stands in a message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis.strategies import text

from include.plain_text import LONGEST_SOURCE, from_html, shown_url


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


@given(text("<>/!-[]='\"& ab#9;?\x00\ud800CDATscript", max_size=60))
def test_every_text_has_words(markup: str) -> None:
    """Nothing that a stranger writes raises."""
    assert len(from_html(markup, 50)) <= 50


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://news.test:8443/a/b.xml", "https://news.test:8443/a/b.xml"),
        ("https://u:p@news.test/a?key=s#t", "https://***@news.test/a?***"),
        ("https://news.test/a#t?s", "https://news.test/a#***"),
        ("https://news.test/@me/feed", "https://news.test/@me/feed"),
        ("https://[::1]:8/x", "https://[::1]:8/x"),
        ("https://u:p/w@news.test/a", "https://***@news.test/a"),
        ("https://u:p?w@news.test/a", "https://***?***"),
        ("https://u:p", "https://***"),
        ("https://u@news:p/a", "https://***"),
        ("u:p@https://news.test", "***"),
        ("https:/u:p@news.test", "***"),
        ("b&key=s", "***"),
        ("news.test/feed?key=s", "news.test/feed?***"),
        ("", ""),
    ],
)
def test_a_url_in_a_message(url: str, shown: str) -> None:
    """It says which one is meant; what can be a secret, also in what is no URL, stays out of logs and tables."""
    assert shown_url(url) == shown
