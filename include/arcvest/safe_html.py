"""HTML that a model wrote, made safe to stand on a page: a short list of elements, and links to the web alone."""

from __future__ import annotations

import nh3

_ELEMENTS = {
    "h2", "h3", "h4", "p", "br", "hr", "ul", "ol", "li", "blockquote", "strong", "em", "b", "i", "code", "pre",
    "a", "table", "thead", "tbody", "tr", "th", "td",
}  # fmt: skip
_ATTRIBUTES = {"a": {"href", "title"}, "th": {"colspan", "rowspan"}, "td": {"colspan", "rowspan"}}


def safe_html(html: str) -> str:
    """Return the HTML without scripts, styles, frames, images, handlers, and links that are not http(s)."""
    return nh3.clean(
        html,
        tags=_ELEMENTS,
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https"},
        link_rel="noopener noreferrer nofollow",
    )
