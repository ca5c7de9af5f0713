"""What a stranger wrote, as plain text that a database can hold and a page can show."""

from __future__ import annotations

import html
import re
import unicodedata
from functools import lru_cache
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit

LONGEST_URL = 2_000
"""Characters; an index on a longer one would be refused by Postgres."""

LONGEST_SOURCE = 10_000
"""Characters of a text that are read at all: nothing here may take time that grows with what a stranger sends."""

_SILENT = frozenset({"script", "style", "head", "title", "template", "noscript"})
_BREAKS = frozenset(
    {"br", "p", "div", "li", "tr", "td", "th", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote"}
)
_TAG = re.compile("<[^<>]*>")
_PLACE = re.compile(r"(\[[^/@\[\]]*\]|[^/:@\[\]]*)(:[0-9]*)?(?=/|\Z)")
_TRACKING = ("utm_", "mc_", "fbclid", "gclid", "cmpid")


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
    import nh3  # noqa: PLC0415 - not at parse time

    # What comes back has these tags alone, bare, and every other "<" escaped.
    source = markup[:LONGEST_SOURCE].encode("utf-8", "replace").decode()
    kept = nh3.clean(source, tags=_BREAKS, clean_content_tags=_SILENT, attributes={}, link_rel=None)
    return plain(" ".join(html.unescape(_TAG.sub(" ", kept)).split()), most)


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
        parts = urlsplit(urljoin(base, link.strip()) if base else link.strip())
        host = _in_ascii(parts.hostname) if parts.hostname else ""
        port = parts.port
    except (ValueError, UnicodeError):
        return None
    if parts.scheme not in ("http", "https") or not host or "@" in parts.netloc:
        return None
    query = _untracked(parts.query) if parts.query else ""
    usual = {"http": 80, "https": 443}[parts.scheme]
    place = f"[{host}]" if ":" in host else host
    place = place if port in (None, usual) else f"{place}:{port}"
    address = urlunsplit((parts.scheme, place, parts.path or "/", query, ""))
    # Of all spaces only the common one is printable.
    if len(address) > LONGEST_URL or not address.isprintable() or " " in address:
        return None
    return address


@lru_cache(maxsize=1_000)
def _in_ascii(host: str) -> str:
    return host.encode("idna").decode()


def _untracked(query: str) -> str:
    pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=None)
    kept = [(key, value) for key, value in pairs if not key.lower().startswith(_TRACKING)]
    return query if len(kept) == len(pairs) else urlencode(kept)
