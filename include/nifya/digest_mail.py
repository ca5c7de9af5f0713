"""A digest as one mail, in HTML and in plain text, that mail programs show whole.

Titles come from outside: they are escaped in HTML, stand as they are in the subject and the text, and only an
http(s) address becomes a link.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import mrml
from markupsafe import Markup

from include.errors import BadInput
from include.mail import Message
from include.plain_text import plain, shown_url, web_address

TEMPLATES = Path(__file__).with_name("templates")

LARGEST = 92_000
"""Bytes of a whole message on its way; beyond some 100,000 mail programs cut it off."""

MOST_ENTRIES = 300
"""More than ever fit."""

_LONGEST_TITLE = 300
_LONGEST_CONTENT = 200
_LONGEST_NAME = 80
_LONGEST_SUBJECT = 140
_HEADERS_ABOUT = 2_000
_LINE = 72


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """What one digest tells: `entries` are the newest, each with title, content, url and subscription or None.

    `unread` counts them all. `app_url` is the page that shows the rest; both addresses are absolute http(s) ones.
    """

    name: str | None
    unread: int
    entries: Sequence[Mapping[str, Any]]
    app_url: str
    unsubscribe_url: str


def digest_message(digest: Digest, *, sender: str, to: str) -> Message:
    """Return the mail; the same digest gives the same bytes, fewer than LARGEST on their way.

    Raises BadInput if there is no entry, or if an address, a setting, is no web address.
    """
    stop = digest.unsubscribe_url
    # The last part of the second is a token.
    for setting, address, shown in (
        ("app_url", digest.app_url, digest.app_url),
        ("unsubscribe_url", stop, stop.rpartition("/")[0]),
    ):
        if web_address(address) is None:
            raise BadInput(f"NIFYA digest: {setting} {shown_url(shown)[:80]!r} is not an http(s) address")
    entries = [_entry(one) for one in digest.entries[:MOST_ENTRIES]]
    if not entries:
        raise BadInput("NIFYA digest: there is nothing to tell")
    values = {
        "greeting": f"Hola, {name}:" if (name := plain(digest.name or "", _LONGEST_NAME)) else "Hola:",
        "summary": _summary(digest.unread),
        "app_url": digest.app_url,
        "unsubscribe_url": digest.unsubscribe_url,
    }
    shown = _fitting(entries, LARGEST - _HEADERS_ABOUT - _skeleton_size(values))
    left = digest.unread - len(shown)
    values["left_out"] = f"Y {_number(left)} más, que puedes ver en" if left > 0 else ""
    made = _templates()
    return Message(
        sender=sender,
        to=to,
        subject=_subject(entries[0]["title"], digest.unread),
        text=made.text.render(values | {"entries": "".join(one.text for one in shown)}),
        html=made.html.render(values | {"entries": Markup("".join(one.html for one in shown))}),  # noqa: S704 - rendered with autoescape
        headers={
            "List-Unsubscribe": f"<{digest.unsubscribe_url}>",
            "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
        },
    )


def size_on_its_way(text: str) -> int:
    """Return about how many bytes a text takes in a mail, where every letter beyond ASCII is written as several."""
    data = text.encode()
    as_is = sum(byte < 128 and byte != 61 for byte in data)  # noqa: PLR2004 - ASCII, and the equals sign
    return (as_is + 3 * (len(data) - as_is)) * (_LINE + 3) // _LINE + data.count(b"\n")


class _Shown(NamedTuple):
    html: str
    text: str


class _Templates(NamedTuple):
    html: jinja2.Template
    text: jinja2.Template
    entry_html: jinja2.Template
    entry_text: jinja2.Template


@cache
def _templates() -> _Templates:
    markup = _environment(markup=True)
    words = _environment(markup=False)
    mjml = (TEMPLATES / "digest.mjml.j2").read_text(encoding="utf-8")
    # No fonts: MJML would otherwise fetch some from outside.
    html = mrml.to_html(mjml, render_options=mrml.RenderOptions(fonts={})).content
    # The entries bring rows of their own.
    html = html.replace("<tr><td>{{ entries }}</td></tr>", "{{ entries }}")
    return _Templates(
        markup.from_string(html),
        words.from_string((TEMPLATES / "digest.txt.j2").read_text(encoding="utf-8")),
        markup.from_string((TEMPLATES / "digest_entry.html.j2").read_text(encoding="utf-8")),
        words.from_string((TEMPLATES / "digest_entry.txt.j2").read_text(encoding="utf-8")),
    )


def _environment(*, markup: bool) -> jinja2.Environment:
    environment = jinja2.Environment(
        autoescape=markup,  # noqa: S701  off for plain text alone, where nothing is markup
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals.clear()
    return environment


def _entry(given: Mapping[str, Any]) -> dict[str, str | None]:
    title = plain(given.get("title") or "", _LONGEST_TITLE)
    return {
        "title": title or "(sin título)",
        "content": plain(given.get("content") or "", _LONGEST_CONTENT),
        "subscription": plain(given.get("subscription") or "", _LONGEST_NAME),
        "url": web_address(given.get("url") or ""),
    }


def _fitting(entries: Sequence[Mapping[str, str | None]], most: int) -> list[_Shown]:
    """Return the first entries, as they are shown, that fit into `most` bytes; at least one."""
    made = _templates()
    shown: list[_Shown] = []
    taken = 0
    for entry in entries:
        one = _Shown(made.entry_html.render(entry), made.entry_text.render(entry))
        taken += size_on_its_way(one.html) + size_on_its_way(one.text)
        if shown and taken > most:
            break
        shown.append(one)
    return shown


def _skeleton_size(values: Mapping[str, str]) -> int:
    made = _templates()
    # The longest that the last line can be.
    bare = {**values, "entries": "", "left_out": f"Y {_number(10**9)} más, que puedes ver en"}
    return size_on_its_way(made.html.render(bare)) + size_on_its_way(made.text.render(bare))


def _subject(title: str | None, unread: int) -> str:
    more = "" if unread == 1 else f" y {_number(unread - 1)} más"
    return f"NIFYA: {plain(title or '', _LONGEST_SUBJECT)}{more}"


def _summary(unread: int) -> str:
    if unread == 1:
        return "Hay una novedad en tus suscripciones:"
    return f"Hay {_number(unread)} novedades en tus suscripciones:"


def _number(number: int) -> str:
    return f"{number:,}".replace(",", ".")
