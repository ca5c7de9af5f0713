"""ClearPath's mail as text: five sequenced mails in HTML and plain text, and two alerts to the administrator.

Each sequenced mail has one source, `templates/<email_type>.toml`. Two layouts turn it into MJML and into
plain text; the MJML is compiled once a process, and each message then only fills in its values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, NamedTuple
from urllib.parse import urlsplit

import jinja2
import mrml
import msgspec
from jinja2 import meta
from markupsafe import Markup, escape

from include.clearpath.tables import SEQUENCED_TYPES
from include.dates_in_words import day as day_in_words
from include.errors import BadInput, Permanent
from include.plain_text import shown_url

TEMPLATES = Path(__file__).with_name("templates")

# Longer values than any real name or address would push a mail beyond what mail programs show.
LONGEST_VALUE = 200
LONGEST_URL = 2000


class Unrenderable(Permanent):
    """A mail that can't be made: an unknown or broken template, or a value that is missing or unusable."""

    def __init__(self, template: str, reason: str) -> None:
        super().__init__(f"ClearPath mail template {template[:80]!r}: {reason}")
        self.template = template


@dataclass(frozen=True, slots=True, kw_only=True)
class SequencedValues:
    """What the sequenced mails say about one test.

    Dates are local to the business; `today` is the day on which the mail goes out. `session_url` is the page
    of the test and lies under `app_url`; both are absolute http(s) addresses. Without a `kit_serial_number`
    its line is left out; without a `contact_email` the reader is asked to reply. Any other None is a value
    that the row lacks, and no mail can be made without it.
    """

    full_name: str | None
    address: str | None
    activated_on: date | None
    expected_completion_date: date | None
    today: date
    session_url: str | None
    app_url: str
    kit_serial_number: str | None = None
    contact_email: str | None = None


class Rendered(NamedTuple):
    """One mail, ready to send."""

    subject: str
    html: str
    text: str


class Alert(NamedTuple):
    """One plain-text mail to the administrator."""

    subject: str
    text: str


def sequenced(email_type: str, values: SequencedValues, *, templates: Path = TEMPLATES) -> Rendered:
    """Return the mail of one of the SEQUENCED_TYPES; the same input gives the same bytes.

    Raises Unrenderable, which names the template and what is wrong with it or with the values, and BadInput
    if `app_url`, a setting, is not a web address.
    """
    if email_type not in SEQUENCED_TYPES:
        raise Unrenderable(email_type, f"no such template; there are {', '.join(SEQUENCED_TYPES)}")
    mail = _compiled(templates, email_type)
    plain = _plain_values(email_type, values)
    # Our own address may become a link; what customers wrote may not.
    marked = {
        name: value if name in _LINKABLE else _inert(value) if isinstance(value, str) else value
        for name, value in plain.items()
    }
    try:
        return Rendered(
            subject=mail.subject.render(plain), html=mail.html.render(marked), text=mail.text.render(plain)
        )
    except jinja2.TemplateError as error:
        raise Unrenderable(email_type, str(error)) from error


def with_gaps(email_type: str, *, templates: Path = TEMPLATES) -> Rendered:
    """Return one of the SEQUENCED_TYPES with a null character wherever a value goes.

    Raises Unrenderable as `sequenced` does.
    """
    mail = _compiled(templates, email_type)
    # Without a value the line is another one, of a kind that is common.
    gaps = dict.fromkeys(_VALUES, "\x00") | {"contact_email": None}
    return Rendered(mail.subject.render(gaps), mail.html.render(gaps), mail.text.render(gaps))


def cnrpp_alert(
    *, contractor_name: str | None, cnrpp_id: str | None, expiry_date: date, today: date
) -> Alert:
    """Return the alert about a contractor whose C-NRPP certification ends, or has ended.

    Raises Unrenderable if the contractor has no name or a date is not a date.
    """
    template = "cnrpp_alert"
    ahead = _day(template, "expiry_date", expiry_date) - _day(template, "today", today)
    return _alert(
        template,
        {
            "contractor": _required(template, "contractor_name", contractor_name),
            "cnrpp_id": _fold(template, "cnrpp_id", cnrpp_id) or "not on record",
            "expires_on": day_in_words(expiry_date),
            "expiry": _when("expires", "expired", ahead),
            "expired": ahead < timedelta(0),
        },
    )


def queue_stuck_alert(*, oldest_due: datetime | None, minutes_late: int, failed_in_24_hours: int) -> Alert:
    """Return the alert about a mail queue that does not move.

    `oldest_due` is when the mail that waits longest was due, aware and in the zone to show it in; None if
    none is due. `failed_in_24_hours` counts rows that failed or were abandoned.

    Raises Unrenderable if `oldest_due` has no offset.
    """
    template = "queue_stuck_alert"
    due = None
    late = "1 minute" if minutes_late == 1 else f"{minutes_late:,} minutes"
    summary = f"{failed_in_24_hours:,} failed or abandoned in 24 hours"
    if oldest_due is not None:
        if oldest_due.utcoffset() is None:
            raise Unrenderable(template, f"oldest_due {oldest_due} has no offset from UTC")
        due = f"{day_in_words(oldest_due)}, {oldest_due:%H:%M} (UTC{oldest_due.isoformat()[-6:]})"
        summary = f"the oldest due mail is {late} late, {summary}"
    return _alert(
        template,
        {"oldest_due": due, "late": late, "failed": f"{failed_in_24_hours:,}", "summary": summary},
    )


_LINKABLE = frozenset({"session_url", "contact_email"})

_VALUES = frozenset(
    {
        "full_name",
        "address",
        "kit_serial_number",
        "started_on",
        "ends_on",
        "length",
        "progress",
        "percent",
        "finish",
        "session_url",
        "contact_email",
    }
)


def _plain_values(template: str, values: SequencedValues) -> dict[str, str | int | None]:
    """Return the values under the names that the sources use, checked and on one line each."""
    started = _day(template, "activated_on", values.activated_on)
    ends = _day(template, "expected_completion_date", values.expected_completion_date)
    today = _day(template, "today", values.today)
    if ends <= started:
        raise Unrenderable(template, f"expected_completion_date {ends} is not after activated_on {started}")
    if today < started:
        raise Unrenderable(template, f"today {today} is before activated_on {started}")
    length = (ends - started).days
    day = (today - started).days
    return {
        "full_name": _required(template, "full_name", values.full_name),
        "address": _required(template, "address", values.address),
        "kit_serial_number": _fold(template, "kit_serial_number", values.kit_serial_number),
        "started_on": day_in_words(started),
        "ends_on": day_in_words(ends),
        "length": length,
        "progress": f"Day {day} of {length}" if day < length else f"All {length} days done",
        "percent": max(1, min(100, 100 * day // length)),
        "finish": _when("finishes", "finished", ends - today),
        "session_url": _session_url(template, values),
        "contact_email": _fold(template, "contact_email", values.contact_email),
    }


def _when(coming: str, past: str, ahead: timedelta) -> str:
    """Return "expires in 12 days", "expires today" or "expired 3 days ago"."""
    days = ahead.days
    if days == 0:
        return f"{coming} today"
    counted = "1 day" if abs(days) == 1 else f"{abs(days):,} days"
    return f"{coming} in {counted}" if days > 0 else f"{past} {counted} ago"


# Every white space, line break and control character; \s has the Unicode ones.
_BREAKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
# What is invisible and can make a text read otherwise than it is written (direction overrides, zero-width and
# tag characters), and what can't be encoded. The joiners of emoji and Persian (U+200C, U+200D) stay.
_UNSEEN = re.compile(
    "[\u00ad\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
# Where a mail program sees an address in plain text: before "://", "@", and a dot (of any script) before a
# name or within an IP address.
_LINKS = re.compile(
    r"(?=://)|(?<=\S)(?=@\S)|(?<=[^\s.])(?=[.\u3002\uff0e\uff61](?:[^\W\d_]{2}|xn--))|(?<=\d)(?=\.\d{1,3}\.\d)"
)
# Zero-width characters don't do: finders of links take them for letters, and browsers then ignore them.
_HAIR_SPACE = "\u200a"
_UNSAFE_IN_URL = re.compile(r"[^!#-;=?-\[\]_a-z~]")


def _fold(template: str, name: str, value: str | None) -> str | None:
    """Return the value as one line, at most LONGEST_VALUE characters; None if nothing is left of it."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise Unrenderable(template, f"{name} is a {type(value).__name__}, not text")
    # What is printable holds neither a break nor anything unseen; the most values are.
    plain = value.isprintable() and "  " not in value
    line = (value if plain else _UNSEEN.sub("", _BREAKS.sub(" ", value))).strip()
    if len(line) > LONGEST_VALUE:
        line = line[: LONGEST_VALUE - 1].rstrip() + "…"
    return line or None


def _required(template: str, name: str, value: str | None) -> str:
    line = _fold(template, name, value)
    if line is None:
        raise Unrenderable(template, f"{name} is missing")
    return line


def _day(template: str, name: str, value: date | None) -> date:
    # A datetime is a date too, but in a zone that nobody chose here.
    if isinstance(value, datetime) or not isinstance(value, date):
        raise Unrenderable(template, f"{name} is {'missing' if value is None else f'not a date: {value!r}'}")
    return value


def _session_url(template: str, values: SequencedValues) -> str:
    """Return the address behind the button, sure to be a page of the application and nothing else."""
    # First the setting, of which the other is made: its fault is no reason to give up the row.
    if fault := _app_url_fault(values.app_url):
        raise BadInput(f"APP_URL {fault}")
    if not values.session_url:
        raise Unrenderable(template, "session_url is missing")
    if fault := _url_fault(values.session_url):
        raise Unrenderable(template, f"session_url {fault}")
    if not values.session_url.startswith(values.app_url.rstrip("/") + "/"):
        shown, app = shown_url(values.session_url)[:80], shown_url(values.app_url)[:80]
        raise Unrenderable(template, f"session_url {shown!r} is not under app_url {app!r}")
    return values.session_url


def _url_fault(url: str) -> str | None:
    if not isinstance(url, str) or len(url) > LONGEST_URL or _UNSAFE_IN_URL.search(url):
        return f"is not a web address: {shown_url(str(url))[:80]!r}"
    try:
        parts = urlsplit(url)
    except ValueError:
        return f"is not a web address: {shown_url(url)[:80]!r}"
    if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc:
        return f"is not an http(s) address: {shown_url(url)[:80]!r}"
    return None


# One setting, asked of for every mail.
_app_url_fault = lru_cache(maxsize=8)(_url_fault)


@lru_cache(maxsize=1_024)
def _inert(value: str) -> Markup:
    """Return the value escaped, with a hair space where a mail program would make a link of it by itself."""
    return escape(_LINKS.sub(_HAIR_SPACE, value))


_Line = Annotated[str, msgspec.Meta(min_length=1)]


class _Block(msgspec.Struct, forbid_unknown_fields=True):
    paragraph: str = ""
    points: tuple[_Line, ...] = ()
    steps: tuple[_Line, ...] = ()
    note: str = ""


class _Source(msgspec.Struct, forbid_unknown_fields=True):
    """What a mail says. `{{ name }}` marks where one of _VALUES goes."""

    subject: _Line
    preview: _Line
    heading: _Line
    button: _Line
    blocks: Annotated[tuple[_Block, ...], msgspec.Meta(min_length=1)]


class _Compiled(NamedTuple):
    subject: jinja2.Template
    html: jinja2.Template
    text: jinja2.Template


# A layout has marks of its own, so that those of the message pass through it.
_MESSAGE_MARKS = ("{%", "%}", "{{", "}}", "{#", "#}")
_LAYOUT_MARKS = ("[%", "%]", "[[", "]]", "[#", "#]")


def _environment(marks: tuple[str, str, str, str, str, str], *, markup: bool) -> jinja2.Environment:
    environment = jinja2.Environment(
        *marks,
        autoescape=markup,  # noqa: S701  off for plain text alone, where nothing is markup
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # No template asks for any, and every rendering would copy them.
    environment.globals.clear()
    return environment


_HTML = _environment(_MESSAGE_MARKS, markup=True)
_TEXT = _environment(_MESSAGE_MARKS, markup=False)
_HTML_LAYOUT = _environment(_LAYOUT_MARKS, markup=True)
_TEXT_LAYOUT = _environment(_LAYOUT_MARKS, markup=False)

# A brace in a source is part of a `{{ name }}`, or a slip that would turn up in a customer's mail.
_STRAY_BRACE = re.compile(r"[{}]")
_NAMED_VALUE = re.compile(r"\{\{ [a-z_]+ \}\}")


@cache
def _compiled(templates: Path, email_type: str) -> _Compiled:
    try:
        raw = (templates / f"{email_type}.toml").read_text(encoding="utf-8")
        source = msgspec.toml.decode(raw, type=_Source)
        if _STRAY_BRACE.search(_NAMED_VALUE.sub("", raw)):
            raise Unrenderable(email_type, "a brace that is not part of a {{ name }}")
        mjml = _layout(templates, "layout.mjml.j2", _HTML_LAYOUT).render(mail=source)
        text = _layout(templates, "layout.txt.j2", _TEXT_LAYOUT).render(mail=source)
        # No fonts: MJML would otherwise fetch some from outside.
        html = mrml.to_html(mjml, render_options=mrml.RenderOptions(fonts={})).content
        # MJML leaves an element that it doesn't know as it is, or drops it with all that stands in it.
        if "<mj-" in html:
            raise Unrenderable(email_type, f"MJML has no element <mj-{html.partition('<mj-')[2][:20]}")
        named = {
            "subject": meta.find_undeclared_variables(_TEXT.parse(source.subject)),
            "html": meta.find_undeclared_variables(_HTML.parse(html)),
            "text": meta.find_undeclared_variables(_TEXT.parse(text)),
        }
        if unknown := sorted(set().union(*named.values()) - _VALUES):
            raise Unrenderable(email_type, f"no value is called {', '.join(unknown)}")
        if lost := sorted(meta.find_undeclared_variables(_HTML.parse(mjml)) - named["html"]):
            raise Unrenderable(email_type, f"MJML lost {', '.join(lost)}")
        return _Compiled(_TEXT.from_string(source.subject), _HTML.from_string(html), _TEXT.from_string(text))
    except (OSError, UnicodeError, msgspec.MsgspecError, jinja2.TemplateError) as error:
        raise Unrenderable(email_type, str(error)) from error


def _layout(templates: Path, name: str, environment: jinja2.Environment) -> jinja2.Template:
    return environment.from_string((templates / name).read_text(encoding="utf-8"))


@cache
def _alert_template(name: str) -> jinja2.Template:
    return _TEXT.from_string((TEMPLATES / f"{name}.txt.j2").read_text(encoding="utf-8"))


def _alert(template: str, values: Mapping[str, object]) -> Alert:
    """Render an alert; its template's first line is the subject, and the text comes after an empty line."""
    try:
        subject, _, text = _alert_template(template).render(values).partition("\n\n")
    except (OSError, jinja2.TemplateError) as error:
        raise Unrenderable(template, str(error)) from error
    return Alert(subject, text)
