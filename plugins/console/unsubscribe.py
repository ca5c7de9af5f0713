"""The page that stops NIFYA's digests: its random token opens it, and nobody has to sign in.

A GET changes nothing, since mail programs and scanners follow links; a POST stops the digests, whether it comes
from the page's button or, by RFC 8058, from the mail program's own.
"""

from __future__ import annotations

import base64
import hashlib

from fastapi import APIRouter, HTTPException, Request, status
from fastapi.responses import HTMLResponse
from jinja2 import Environment

from include.nifya import digest_links

NIFYA = "nifya_db"

router = APIRouter(prefix="/nifya/unsubscribe")

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
    "<!doctype html><html lang=es><head><meta charset=utf-8>"
    '<meta name=viewport content="width=device-width, initial-scale=1"><meta name=robots content=noindex>'
    "<title>{{ title }} · NIFYA</title><style>{{ style|safe }}</style></head><body><main><h1>{{ title }}</h1>"
    "<p>{{ words }}</p>{% if asks %}<form method=post><button>Dejar de recibirlo</button></form>{% endif %}"
    "</main></body></html>"
)


@router.get("/{token}")
def ask(request: Request, token: str) -> HTMLResponse:
    """Ask whether the digests are to stop; a link that is followed changes nothing."""
    with request.app.state.databases.read(NIFYA) as tx:
        stopped = digest_links.is_stopped(tx, token)
    if stopped is None:
        raise _not_valid()
    if stopped:
        return _stopped()
    return _page(
        "¿Dejar de recibir el resumen?", "Ya no te enviaremos el resumen diario por correo.", asks=True
    )


@router.post("/{token}")
def stop(request: Request, token: str) -> HTMLResponse:
    """Stop the digests of the one user whose mail carried the token."""
    with request.app.state.databases.writable(NIFYA).transaction() as tx:
        known = digest_links.stop(tx, token)
    if not known:
        raise _not_valid()
    return _stopped()


def _stopped() -> HTMLResponse:
    words = "No te enviaremos más resúmenes. Tus suscripciones y sus avisos siguen en la aplicación."
    return _page("Ya no recibirás el resumen", words, asks=False)


def _page(title: str, words: str, *, asks: bool) -> HTMLResponse:
    html = _PAGE.render(title=title, words=words, asks=asks, style=_STYLE)
    return HTMLResponse(html, headers={"content-security-policy": _POLICY, "referrer-policy": "no-referrer"})


def _not_valid() -> HTTPException:
    # The same answer whatever is wrong: a guess learns nothing.
    return HTTPException(status.HTTP_404_NOT_FOUND, "Este enlace no es válido.")
