"""What the gazettes publish, as the jobs see it, and how the BOE's daily summary is read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple, Protocol

from include.errors import BadInput, Outage
from include.plain_text import plain, web_address

PARSERS = ("boe", "doga")
"""The gazettes that there are parsers for, by a subscription's type_id."""

MOST_ENTRIES = 10_000
"""Of one edition; the BOE's largest have some 600."""

LONGEST_TITLE = 1_000
LONGEST_NAME = 300
_LONGEST_ID = 60
_LEVELS = ("diario", "seccion", "departamento", "epigrafe")


class Content(NamedTuple):
    """One thing that a gazette published and that a subscription asked for; `url` is its own web address."""

    title: str
    summary: str
    url: str
    metadata: Mapping[str, Any]


class Entry(NamedTuple):
    """One entry of a daily summary. `section` and `heading` are empty where the gazette names none."""

    identifier: str
    title: str
    department: str
    section: str
    heading: str
    url: str
    day: date


class Gazettes(Protocol):
    """The parsers, one a gazette, as HTTP services."""

    def new_content(self, parser: str, prompts: Sequence[str], since: date, until: date) -> Sequence[Content]:
        """Return what a gazette published on the days from `since` to `until`, both included, about the prompts.

        `parser` is one of PARSERS. A day without an edition brings nothing. Raises Outage if the parser can't
        be reached, answers 401, 403, 408, 429 or 5xx, or sends what is no answer of its kind; Refused for any
        other 4xx and for what is too large; BadInput if its connection is missing, says what can't be, or if
        an address is not allowed.
        """
        ...


def parser_of(type_id: str) -> str:
    """Return the parser that reads for a subscription's type. Raises BadInput if none does."""
    name = type_id.strip().lower()
    if name not in PARSERS:
        raise BadInput(f"NIFYA: no parser reads for type_id {type_id[:60]!r}; there are {', '.join(PARSERS)}")
    return name


def read_json(body: bytes, where: str) -> Any:
    """Return what a service's body says; `where` names the service. Raises Outage if it is no readable JSON."""
    try:
        return json.loads(body, parse_constant=str)
    except (ValueError, RecursionError):
        raise Outage(f"{where}: answered HTTP 200 without readable JSON") from None


def read_summary(document: Any, day: date, where: str) -> list[Entry]:
    """Return the entries of the BOE's summary of a day, each once, in its order.

    An element that stands alone is an object where several are a list, on every level. What is no entry, or
    has no title or address, is left out. Raises Outage if the document is no summary.
    """
    data = document.get("data") if isinstance(document, dict) else None
    summary = data.get("sumario") if isinstance(data, dict) else None
    if not isinstance(summary, dict) or not isinstance(summary.get("diario"), list | dict):
        raise Outage(f"{where}: answered HTTP 200 without a summary")
    entries: dict[str, Entry] = {}
    for item, names in _items(summary, {}, 0):
        entry = _entry(item, names, day)
        if entry is not None:
            entries.setdefault(entry.url, entry)
        if len(entries) > MOST_ENTRIES:
            raise Outage(f"{where}: has more than {MOST_ENTRIES:,} entries")
    return list(entries.values())


def read_content(document: Any, where: str) -> list[Content]:
    """Return what a parser service says it found, each address once, without what has no title or address.

    Raises Outage if the document is not `{"content": [{"title", "summary", "url", "metadata"}]}`.
    """
    found = document.get("content") if isinstance(document, dict) else None
    if not isinstance(found, list):
        raise Outage(f"{where}: answered HTTP 200 without a list of content")
    if len(found) > MOST_ENTRIES:
        raise Outage(f"{where}: has more than {MOST_ENTRIES:,} entries")
    by_url: dict[str, Content] = {}
    for one in found:
        if not isinstance(one, dict):
            continue
        title, url = _words(one, "title", LONGEST_TITLE), web_address(_text(one, "url"))
        if title and url:
            by_url.setdefault(
                url,
                Content(
                    title, _words(one, "summary", 2 * LONGEST_TITLE), url, _metadata(one.get("metadata"))
                ),
            )
    return list(by_url.values())


def _metadata(given: Any) -> dict[str, str]:
    if not isinstance(given, dict):
        return {}
    texts = ((key, value) for key, value in given.items() if isinstance(value, str))
    return {plain(key, _LONGEST_ID): plain(value, LONGEST_NAME) for key, value in texts}


def as_content(entry: Entry, prompts: Sequence[str]) -> Content:
    """Return an entry as what a notification tells; `prompts` are those that it matched."""
    where = " · ".join(part for part in (entry.department, entry.heading, entry.section) if part)
    said = {
        "identifier": entry.identifier,
        "department": entry.department,
        "section": entry.section,
        "heading": entry.heading,
        "date": entry.day.isoformat(),
        "prompts": list(prompts),
    }
    return Content(entry.title, where, entry.url, {name: value for name, value in said.items() if value})


def _items(node: Any, names: Mapping[str, str], level: int) -> Iterator[tuple[Any, Mapping[str, str]]]:
    """Yield every entry below a node with the names that stand above it; a level may be left out."""
    for item in _several(node.get("item")):
        yield item, names
    for deeper, key in enumerate(_LEVELS[level:], start=level + 1):
        for child in _several(node.get(key)):
            if isinstance(child, dict):
                yield from _items(child, {**names, key: _words(child, "nombre", LONGEST_NAME)}, deeper)


def _several(value: Any) -> Sequence[Any]:
    if isinstance(value, list):
        return value
    return [value] if isinstance(value, dict) else []


def _entry(item: Any, names: Mapping[str, str], day: date) -> Entry | None:
    if not isinstance(item, dict):
        return None
    identifier, title = _words(item, "identificador", _LONGEST_ID), _words(item, "titulo", LONGEST_TITLE)
    url = web_address(_text(item, "url_html")) or web_address(_address(item.get("url_pdf")))
    if not title or url is None:
        return None
    return Entry(
        identifier,
        title,
        names.get("departamento", ""),
        names.get("seccion", ""),
        names.get("epigrafe", ""),
        url,
        day,
    )


def _address(value: Any) -> str:
    # The PDF's address comes with its size and pages around it.
    return _text(value, "texto") if isinstance(value, dict) else value if isinstance(value, str) else ""


def _text(item: Mapping[str, Any], name: str) -> str:
    value = item.get(name)
    return value if isinstance(value, str) else ""


def _words(item: Mapping[str, Any], name: str, most: int) -> str:
    return plain(_text(item, name), most)
