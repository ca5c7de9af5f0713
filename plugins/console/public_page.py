"""A page that nobody has to sign in for: no script, no frame around it, and its address is told to nobody."""

from __future__ import annotations

import base64
import hashlib

from fastapi.responses import HTMLResponse
from jinja2 import Environment

_STYLE = (
    ":root{color-scheme:light dark}body{font:17px/1.5 system-ui,sans-serif;max-width:34rem;margin:12vh auto;"
    "padding:0 1.25rem}h1{font-size:1.4rem}button{font:inherit;padding:.6rem 1.2rem}"
)
# The console's own style sheet wants a login.
_POLICY = (
    f"default-src 'none'; style-src 'sha256-{base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_PAGE = Environment(autoescape=True).from_string(
    "<!doctype html><html lang={{ language }}><head><meta charset=utf-8>"
    '<meta name=viewport content="width=device-width, initial-scale=1"><meta name=robots content=noindex>'
    "<title>{{ title }} · {{ business }}</title><style>{{ style|safe }}</style></head><body><main>"
    "<h1>{{ title }}</h1><p>{{ words }}</p>"
    "{% if button %}<form method=post><button>{{ button }}</button></form>{% endif %}</main></body></html>"
)


def public_page(
    business: str, title: str, words: str, *, button: str = "", language: str = "en", status: int = 200
) -> HTMLResponse:
    """Return the page; with a button that posts to the same address, if one is named."""
    html = _PAGE.render(
        business=business, title=title, words=words, button=button, language=language, style=_STYLE
    )
    headers = {"content-security-policy": _POLICY, "referrer-policy": "no-referrer"}
    return HTMLResponse(html, status, headers)
