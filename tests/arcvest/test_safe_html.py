"""HTML of a stranger, made safe."""

from __future__ import annotations

import pytest

from include.arcvest.safe_html import safe_html


@pytest.mark.parametrize(
    ("evil", "gone"),
    [
        ("<script>alert(1)</script>", "alert"),
        ("<style>p{}</style>", "p{}"),
        ("<p onclick='x()'>a</p>", "onclick"),
        ("<p style='position:fixed'>a</p>", "style"),
        ("<a href='javascript:x()'>a</a>", "javascript"),
        ("<a href=' java\tscript:x()'>a</a>", "script"),
        ("<a href='data:text/html,x'>a</a>", "data:"),
        ("<a href='//evil.test'>a</a><iframe src='https://evil.test'></iframe>", "iframe"),
        ("<img src=x onerror=alert(1)>", "img"),
        ("<svg><script>alert(1)</script></svg>", "script"),
        ("<form action='https://evil.test'><input></form>", "form"),
        ("<math><mtext></p><style><img src=x onerror=alert(1)>", "onerror"),
        ("<!-- a comment -->", "comment"),
    ],
)
def test_what_is_taken_out(evil: str, gone: str) -> None:
    """E4's kind: nothing that runs, loads or sends stands in the calendar."""
    assert gone not in safe_html(f"<p>before</p>{evil}<p>after</p>")
    assert "<p>before</p>" in safe_html(f"<p>before</p>{evil}<p>after</p>")


def test_what_stays() -> None:
    """An article's own elements and its links to the web are what it is made of."""
    html = "<h2>A</h2><p><strong>b</strong> &amp; <em>c</em></p><ul><li>d</li></ul><table><tr><td>e</td></tr></table>"
    assert safe_html(html).replace("<tbody>", "").replace("</tbody>", "") == html
    assert 'href="https://a.test/?b=c&amp;d=e"' in safe_html('<a href="https://a.test/?b=c&amp;d=e">f</a>')
