"""What a stranger wrote, as plain text that a database can hold and a page can show."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from html import unescape
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit

LONGEST_URL = 2_000
"""Characters; an index on a longer one would be refused by Postgres."""

LONGEST_SOURCE = 20_000
"""Characters of a text that are read at all: nothing here may take time that grows with what a stranger sends."""

_SILENT = frozenset({"script", "style", "head", "title", "template", "noscript"})
_BREAKS = frozenset(
    {"br", "p", "div", "li", "tr", "td", "th", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote"}
)
_TRACKING = ("utm_", "mc_", "fbclid", "gclid", "cmpid")


# What has no end is read up to the text's end, and not again: so no character is read more than twice. Python's
# html.parser raises for `<![foo[`, and reads all that follows anew for every tag that has no end; a tree as browsers
# build it (nh3) takes seconds for formatting that is opened again in each paragraph.
_ATTRIBUTES = r"""(?:=\s*+(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z))?|[^=>])*+"""
_MARKUP = re.compile(
    rf"""
    <!--(?:-?>|.*?(?:-->|\Z))
    | <!\[CDATA\[.*?(?:\]\]>|\Z)
    | <(?P<raw>script|style|title)(?=[\s/>]){_ATTRIBUTES}(?:(?<!/)>|\Z)
        .*?(?:</(?P=raw)(?=[\s/>])[^>]*+(?:>|\Z)|\Z)
    | <(?P<end>/?)(?P<name>[a-z][^\s/>]*+){_ATTRIBUTES}(?:>|\Z)
    | <[!?/][^>]*+(?:>|\Z)
    """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
# Python refuses to read a number of thousands of digits, and none of eight is a character.
_NO_CHARACTER = re.compile(r"&#[0-9]{8,};?")

_PLACE = re.compile(r"(\[[^/@\[\]]*\]|[^/:@\[\]]*)(:[0-9]*)?(?=/|\Z)")


def _words(markup: str) -> Iterator[str]:
    at, silent = 0, 0
    for tag in _MARKUP.finditer(markup):
        if not silent:
            yield markup[at : tag.start()]
        at = tag.end()
        name = (tag["name"] or "").lower()
        if name in _BREAKS:
            yield " "
        elif name in _SILENT and not tag[0].endswith("/>"):
            silent = max(0, silent + (-1 if tag["end"] else 1))
    if not silent:
        yield markup[at:]


def _kept(character: str) -> str:
    kind = unicodedata.category(character)
    if kind in ("Cc", "Zl", "Zp"):
        return " "
    return "" if kind in ("Cs", "Cf", "Cn") else character


def plain(text: str, most: int) -> str:
    """Return text on one line without control characters, at most `most` characters, cut at a word."""
    source = text[: 4 * most]
    kept = source if source.isascii() and source.isprintable() else "".join(map(_kept, source))
    line = " ".join(kept.split())
    if len(line) <= most:
        return line
    head, space, _ = line[:most].rpartition(" ")
    return f"{head if space else line[: most - 1]}…"[:most]


def from_html(markup: str, most: int) -> str:
    """Return the words of HTML as `plain` does; scripts, styles and tags are left out."""
    # Part by part: what stands on both sides of a tag is no name of a character.
    words = (unescape(_NO_CHARACTER.sub("\ufffd", part)) for part in _words(markup[:LONGEST_SOURCE]))
    return plain("".join(words), most)


def shown_url(url: str) -> str:
    """Return a URL, or what was given as one, for a message: a login, a query and a fragment are *** there."""
    address = re.split(r"[?#]", url, maxsplit=1)[0]
    hidden = f"{url[len(address)]}***" if address != url else ""
    scheme, apart, rest = address.partition("://")
    if not apart or not scheme.isalpha():
        # It may be the rest of a URL that was cut in two.
        return "***" if re.search(r"[=&:@]", address) else f"{address}{hidden}"
    if not _PLACE.match(rest):
        # From the last @ on, since a password that nobody quoted may hold a slash.
        _, _, rest = rest.rpartition("@")
        rest = f"***@{rest}" if _PLACE.match(rest) else "***"
    return f"{scheme}://{rest}{hidden}"


def web_address(link: str, base: str | None = None) -> str | None:
    """Return a link as one http(s) URL per page: without a fragment and tracking keys; None if it is none."""
    try:
        parts = urlsplit(urljoin(base or "", link.strip()))
        host = (parts.hostname or "").encode("idna").decode() if parts.hostname else ""
        port = parts.port
    except (ValueError, UnicodeError):
        return None
    if parts.scheme not in ("http", "https") or not host or "@" in parts.netloc:
        return None
    pairs = parse_qsl(parts.query, keep_blank_values=True, max_num_fields=None)
    kept = [(key, value) for key, value in pairs if not key.lower().startswith(_TRACKING)]
    query = parts.query if len(kept) == len(pairs) else urlencode(kept)
    usual = {"http": 80, "https": 443}[parts.scheme]
    place = f"[{host}]" if ":" in host else host
    place = place if port in (None, usual) else f"{place}:{port}"
    address = urlunsplit((parts.scheme, place, parts.path or "/", query, ""))
    if len(address) > LONGEST_URL or not address.isprintable() or any(c.isspace() for c in address):
        return None
    return address
