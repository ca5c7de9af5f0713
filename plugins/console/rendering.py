"""Pages from templates: every value escaped, every date in words, every link under the console's prefix."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode
from zoneinfo import ZoneInfo

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from console.guards import SESSION_COOKIE
from include import dates_in_words
from include.arcvest import ZONE as CENTRAL
from include.clearpath import ZONE as MOUNTAIN
from include.ecocomply import notice_words
from include.errors import BadInput
from include.nifya import ZONE as MADRID
from include.odd_dates import OddDate

PREFIX = "/almanac"
FOLDER = Path(__file__).parent

PAGES = (
    ("Almanac", (("/runs", "Runs"), ("/queues", "Queues"), ("/alerts", "Alerts"))),
    (
        "ClearPath",
        (
            ("/clearpath/mail", "Mail log"),
            ("/clearpath/certificates", "Certificates"),
            ("/clearpath/lab", "Set-aside lab records"),
        ),
    ),
    ("ArcVest", (("/arcvest/jobs", "Job queue"),)),
    ("NIFYA", (("/nifya/jobs", "Scheduled jobs"),)),
    (
        "EcoComply",
        (
            ("/ecocomply/jobs", "Jobs"),
            ("/ecocomply/dead-letters", "Dead letters"),
            ("/ecocomply/notifications", "Notifications"),
            ("/ecocomply/compliance", "Compliance"),
            ("/ecocomply/risk", "Risk"),
            ("/ecocomply/companies", "Companies"),
        ),
    ),
)
"""The console's pages in the order of its own navigation, by the system that they belong to."""

_MINUTE, _HOUR = 60, 3_600
_STEPS_OF_PATHS = (".", "..")
_NOT_IN_PATHS = re.compile(r"[%/\\\x00-\x1f\x7f]")
_FIRST = ("processed", "sent", "skipped", "failed")


@cache
def version(name: str) -> str:
    """Return what changes in a static file's address when the file changes."""
    return hashlib.sha256((FOLDER / "static" / name).read_bytes()).hexdigest()[:12]


def render(
    request: Request, template: str, status: int = 200, *, session: str | None = None, **values: Any
) -> HTMLResponse:
    """Return a page; `values` are its template's. `session` is what its forms' tokens are bound to."""
    console = request.scope.get("root_path", "")
    html = (
        _environment()
        .get_template(template)
        .render(
            console=console,
            airflow=console.removesuffix(PREFIX),
            here=request.url.path.removeprefix(console),
            query=dict(request.query_params),
            **values,
        )
    )
    response = HTMLResponse(html, status_code=status)
    if session is not None and request.cookies.get(SESSION_COOKIE) != session:
        response.set_cookie(
            SESSION_COOKIE,
            session,
            path=console or "/",
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
    return response


def day_of(text: str | None, name: str) -> date | None:
    """Read a day from a form's field; empty is None. Raises BadInput for anything that is no day."""
    if not text:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise BadInput(f"{name}: {text!r} is no day, as in 2027-03-10") from None


def one_of(text: str | None, allowed: tuple[str, ...], name: str) -> str | None:
    """Read a choice from a form's field; empty is None. Raises BadInput for what is not on offer."""
    if not text:
        return None
    if text not in allowed:
        raise BadInput(f"{name}: {text!r} is not one of {', '.join(allowed)}")
    return text


def id_of(text: str | None, name: str) -> uuid.UUID | None:
    """Read an id from an address; empty is None. Raises BadInput for anything that is no uuid."""
    if not text:
        return None
    try:
        return uuid.UUID(text)
    except ValueError:
        raise BadInput(f"{name}: {text!r} is no id") from None


def run_page(console: str, dag_id: str, run_id: str) -> str:
    """Return the address of a run's page. Airflow takes ids that no path can hold, such as `.` or `a/b`."""
    path = f"{console}/runs/{_in_path(dag_id)}"
    if run_id in _STEPS_OF_PATHS or _NOT_IN_PATHS.search(run_id):
        return link(path, {"run_id": run_id})
    return f"{path}/{_in_path(run_id)}"


def link(path: str, query: Mapping[str, Any], **changed: str | None) -> str:
    """Return a path with the page's query, some of it changed; what is empty is left out, a list comes one by one."""
    kept = {name: value for name, value in {**query, **changed}.items() if value}
    return f"{path}?{urlencode(kept, doseq=True)}" if kept else path


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        day=lambda value: dates_in_words.day(value) if value else "",
        mountain=lambda value: _time(value, MOUNTAIN),
        madrid=lambda value: _time(value, MADRID),
        central=lambda value: _time(value, CENTRAL),
        utc=lambda value: _time(value, ZoneInfo("UTC")),
        duration=_duration,
        milliseconds=lambda value: _duration(None if value is None else timedelta(milliseconds=float(value))),
        in_order=_in_order,
        number=lambda value: f"{value:,}",
        until=_until,
        since=_since,
        path=_in_path,
    )
    available: dict[str, Any] = {
        "pages": PAGES,
        "version": version,
        "link": link,
        "now": _now,
        "run_page": run_page,
    }
    environment.globals.update(available)
    return environment


def _in_path(value: object) -> str:
    # Airflow holds the frame's address beside its own, decoded: an escaped colon or plus, which need none,
    # it would take for another page and load that one a second time.
    return quote(str(value), safe=":+")


def _now() -> datetime:
    return datetime.now(UTC)


def _time(value: datetime | OddDate | None, zone: ZoneInfo) -> str:
    if value is None:
        return ""
    words = dates_in_words.instant(value, zone)
    if isinstance(value, OddDate):
        return words
    return Markup('<time datetime="{}">{}</time>').format(value.astimezone(UTC).isoformat(), words)


def _duration(value: timedelta | None) -> str:
    if value is None:
        return ""
    seconds = value.total_seconds()
    if seconds < _MINUTE:
        return f"{seconds:.1f} s"
    if seconds < _HOUR:
        return f"{int(seconds // _MINUTE)} min {int(seconds % _MINUTE)} s"
    return f"{int(seconds // _HOUR)} h {int(seconds % _HOUR // _MINUTE)} min"


def _until(value: date | OddDate, today: date) -> str:
    """Return how far a day is from today; nothing for what Python's calendar lacks."""
    return "" if isinstance(value, OddDate) else notice_words.until(value, today)


def _since(value: datetime | OddDate) -> str:
    """Return how long ago an instant was, as an addition to it; nothing for what is no past instant."""
    if isinstance(value, OddDate) or value > _now():
        return ""
    return f", for {_duration(_now() - value)}"


def _in_order(counts: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return counts with those that every job has first; the database keeps them in no order of meaning."""
    return sorted(
        counts.items(), key=lambda item: (_FIRST.index(item[0]) if item[0] in _FIRST else len(_FIRST), item)
    )
