"""What people are told, in words: one catalogue of every kind, `templates/notices.toml`.

Plain text stands as it was written, HTML is the same text escaped. A day is told by how far it is from the day of the
run, so that nothing says "in 3 days" of what is due today.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import msgspec
from markupsafe import escape

from include.dates_in_words import day
from include.ecocomply.tables.notifications import CHANNELS, PRIORITIES
from include.errors import BadInput, Permanent
from include.odd_dates import OddDate
from include.plain_text import plain, shown_url, web_address

TEMPLATES = Path(__file__).with_name("templates")
LONGEST_VALUE = 300
_LONGEST_SUBJECT = 200
_APART = "\n\n"
"""What stands between the paragraphs of a text."""


class Unrenderable(Permanent):
    """A notification that can't be worded: an unknown kind, or a value that is missing or unusable."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(f"EcoComply notification {kind[:80]!r}: {reason}")


class Kind(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One kind of notification. Without `channels` its priority decides which it takes."""

    type: str
    about: str
    priority: str
    path: str
    button: str
    subject: str
    body: tuple[str, ...]
    channels: tuple[str, ...] = ()


class Worded(NamedTuple):
    """One notification in words; `html` is a fragment, which a mail's layout goes around."""

    subject: str
    text: str
    html: str
    action_url: str


@cache
def kinds() -> Mapping[str, Kind]:
    """Return every kind by name. Raises BadInput if the catalogue names a channel or a priority there is not."""
    found = msgspec.toml.decode(
        (TEMPLATES / "notices.toml").read_text(encoding="utf-8"), type=dict[str, Kind]
    )
    for name, kind in found.items():
        if kind.priority not in PRIORITIES or not set(kind.channels) <= set(CHANNELS):
            raise BadInput(f"EcoComply notification {name!r}: an unknown priority or channel")
    return found


def kind_of(name: str) -> Kind:
    """Return a kind. Raises Unrenderable if there is none of that name."""
    try:
        return kinds()[name]
    except KeyError:
        raise Unrenderable(name, "there is no such kind") from None


def clean(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as a notification can hold them: every text on one line, without control characters."""
    return {
        name: plain(value, LONGEST_VALUE)
        if isinstance(value, str) and not isinstance(value, OddDate)
        else value
        for name, value in values.items()
    }


def word(kind: str, values: Mapping[str, Any], *, today: date, app_url: str) -> Worded:
    """Return a notification in words; the same values give the same ones. `values` are clean.

    Raises Unrenderable if a value is missing or unusable, and BadInput if `app_url`, a setting, is no web address.
    """
    app = _app(app_url)
    template = _compiled(kind)
    try:
        # As `render` does, which takes as long again to make dictionaries of its own.
        context = template.new_context({**values, "today": today}, shared=True)
        rendered = "".join(template.root_render_func(context))
    except (jinja2.TemplateError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise Unrenderable(kind, str(error)) from error
    subject, path, *paragraphs = rendered.split(_APART)
    return Worded(
        subject=plain(subject, _LONGEST_SUBJECT),
        text=_APART.join(paragraphs),
        html="".join(f"<p>{escape(paragraph)}</p>" for paragraph in paragraphs),
        action_url=app + path,
    )


@lru_cache(maxsize=8)
def _app(app_url: str) -> str:
    if web_address(app_url) is None:
        raise BadInput(f"EcoComply: APP_URL {shown_url(app_url)[:80]!r} is not an http(s) address")
    return app_url.rstrip("/")


@cache
def _compiled(name: str) -> jinja2.Template:
    """Return one template for all of a kind's words: clean values have one line, so that its parts stay apart."""
    kind = kind_of(name)
    return _environment().from_string(_APART.join([kind.subject, kind.path, *kind.body]))


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        autoescape=False,  # noqa: S701  it makes plain text; HTML is made of that, escaped
        undefined=jinja2.StrictUndefined,
    )
    environment.globals.clear()
    environment.filters |= {
        "day": day,
        "counted": counted,
        "until": _until,
        "falls": _falls,
        "expires": _expires,
    }
    return environment


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number of things, as in `1 row` and `2,000 rows`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def until(when: date, today: date) -> str:
    """Return how far a day is from another: `in 2 days`, `tomorrow`, `today`, `yesterday`, `2 days ago`."""
    ahead = (when - today).days
    match ahead:
        case 0:
            return "today"
        case 1:
            return "tomorrow"
        case -1:
            return "yesterday"
        case _:
            return f"in {ahead:,} days" if ahead > 0 else f"{-ahead:,} days ago"


@jinja2.pass_context
def _until(context: jinja2.runtime.Context, when: date) -> str:
    return until(when, context["today"])


@jinja2.pass_context
def _falls(context: jinja2.runtime.Context, when: date) -> str:
    """Say when something is or was due: `is due today, on 3 March 2027`."""
    today = context["today"]
    return f"{'is' if when >= today else 'was'} due {until(when, today)}, on {day(when)}"


@jinja2.pass_context
def _expires(context: jinja2.runtime.Context, when: date) -> str:
    """Say when something ends or ended, at the beginning of a subject: `Expires in 90 days`."""
    today = context["today"]
    return f"{'Expires' if when >= today else 'Expired'} {until(when, today)}"
