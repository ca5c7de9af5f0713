"""What is read of HTML that a stranger wrote, and how a URL stands in a message."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis.strategies import text

from include.plain_text import LONGEST_SOURCE, from_html, shown_url


@pytest.mark.parametrize(
    ("markup", "words"),
    [
        ("<p>Up &amp; <b>aw</b>ay<br/>and<li>down", "Up & away and down"),
        ("a < b > c &lt;i&gt; &nbsp;&#8211;&#65;", "a < b > c <i> –A"),  # noqa: RUF001 - a dash
        ("<a title=\"x>y\" href='>'>link</a> <a href=it's>it's</a>", "link it's"),
        ("<script>if (a<b) x = '</p>'</script>shown<SCRIPT\n>x</SCRIPT >", "shown"),
        ("<script src=x />shown<noscript><b>not</b></noscript><template>not</template>", "shown"),
        ("<head><title>a <b</title></head>shown<style>p {}", "shown"),
        ("a<!-- > -->b<!-->c<![CDATA[ > ]]>d<![if !mso]>e<![endif]>f<!DOCTYPE html>g<?xml?>h", "abcdefgh"),
        ("x <![foo[x] y", "x"),
        ("x<![foo[x]>y", "xy"),
        ("x<a href='y", "x"),
        ("x<", "x<"),
        ("x\ud800y\x00z", "xy z"),
        ("&#" + "9" * 5_000 + "; &#xD800; &#1114112;", "\ufffd \ufffd \ufffd"),
        ("&am<b></b>p;", "&amp;"),
    ],
)
def test_the_words_of_html(markup: str, words: str) -> None:
    """As a browser shows it, broken or not: no tag, no script, and nothing that isn't there."""
    assert from_html(markup, 200) == words


PARTS = (
    "<a ", "<a", "<", "</", "<!", "<!--", "<![", "<![CDATA[", "<?", "<script>", "<script ", "</scrip", "<a b='",
    '<a ="', "= ", "&", "&#9", "&#x", "<p>", "<b x=1><p>", "<template>",
)  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
def test_nothing_that_has_no_end_takes_long(part: str) -> None:
    """A feed brings hundreds of texts: one must not take seconds, whatever is opened in it and never closed."""
    for other in PARTS:
        for markup in (part + other * LONGEST_SOURCE, (part + other) * LONGEST_SOURCE):
            began = time.process_time()
            from_html(markup[:LONGEST_SOURCE], 2_000)
            assert time.process_time() - began < 0.5


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
