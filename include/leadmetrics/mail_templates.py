"""LeadMetrics' mail, for where this platform delivers it itself: one source a slug, `templates/<slug>.toml`.

Two layouts turn a source into HTML, in which every value is escaped, and into plain text, where it stands as
it was written. Nothing that came from outside becomes a link save the address of the registration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import msgspec

from include.errors import Permanent
from include.plain_text import plain, web_address

TEMPLATES = Path(__file__).with_name("templates")
SLUGS = ("signup-reminder-early", "signup-reminder-late", "signup-alert-internal")
_LONGEST_VALUE = 200


class Unrenderable(Permanent):
    """A mail that can't be made: a broken template, or a value that is missing or unusable."""

    def __init__(self, slug: str, reason: str) -> None:
        super().__init__(f"LeadMetrics mail template {slug[:80]!r}: {reason}")
        self.slug = slug


class Rendered(NamedTuple):
    """One mail, ready to send."""

    subject: str
    text: str
    html: str


class _Source(msgspec.Struct, forbid_unknown_fields=True):
    """What a mail says; `{{ name }}` marks where a value goes, `lines` end with what is known of the signup."""

    subject: str
    heading: str
    paragraphs: tuple[str, ...]
    button: str = ""
    facts: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class _Compiled:
    source: _Source
    subject: jinja2.Template
    html: jinja2.Template
    text: jinja2.Template


def _environment(*, markup: bool) -> jinja2.Environment:
    return jinja2.Environment(
        autoescape=markup,  # noqa: S701  off for plain text alone, where nothing is markup
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


_HTML, _TEXT = _environment(markup=True), _environment(markup=False)


def mail_of(slug: str, data: Mapping[str, Any]) -> Rendered:
    """Return the mail of one of the SLUGS; the same data gives the same bytes.

    `data` is what the notification's job holds. Raises Unrenderable if something is missing or unusable.
    """
    mail = _compiled(slug)
    values = {
        name: plain(value, _LONGEST_VALUE)
        for name, value in data.items()
        if isinstance(value, str) and name != "resumeUrl"
    }
    known = {"name": "", "companyName": "", "email": "", **values}
    link = _link(slug, data.get("resumeUrl")) if mail.source.button else ""
    shown = {label: known.get(name, "") for name, label in mail.source.facts.items()}
    try:
        return Rendered(
            subject=mail.subject.render(known),
            text=mail.text.render(known, resume_url=link, facts=shown),
            html=mail.html.render(known, resume_url=link, facts=shown),
        )
    except jinja2.TemplateError as error:
        raise Unrenderable(slug, str(error)) from error


def _link(slug: str, url: Any) -> str:
    found = web_address(url) if isinstance(url, str) else None
    if found is None:
        raise Unrenderable(slug, f"resumeUrl is no http(s) address: {str(url)[:80]!r}")
    return found


@cache
def _compiled(slug: str) -> _Compiled:
    try:
        source = msgspec.toml.decode((TEMPLATES / f"{slug}.toml").read_text(encoding="utf-8"), type=_Source)
        html, text = (
            (TEMPLATES / name).read_text(encoding="utf-8") for name in ("layout.html.j2", "layout.txt.j2")
        )
        # Our own words go in before the values do: they may hold marks, what came from outside may not.
        frame = {"paragraphs": source.paragraphs, "heading": source.heading, "button": source.button}
        return _Compiled(
            source,
            _TEXT.from_string(source.subject),
            _HTML.from_string(_LAYOUT.from_string(html).render(frame)),
            _TEXT.from_string(_LAYOUT.from_string(text).render(frame)),
        )
    except (OSError, UnicodeError, msgspec.MsgspecError, jinja2.TemplateError) as error:
        raise Unrenderable(slug, str(error)) from error


# A layout has marks of its own, so that those of the message pass through it.
_LAYOUT = jinja2.Environment(
    "[%",
    "%]",
    "[[",
    "]]",
    "[#",
    "#]",
    autoescape=False,  # noqa: S701  what it fills in are our own templates
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
