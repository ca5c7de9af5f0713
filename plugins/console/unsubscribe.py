"""The page that stops NIFYA's digests: its random token opens it, and nobody has to sign in.

A GET changes nothing, since mail programs and scanners follow links; a POST stops the digests, whether it comes
from the page's button or, by RFC 8058, from the mail program's own.
"""

from __future__ import annotations

from fastapi import APIRouter, HTTPException, Request, status
from fastapi.responses import HTMLResponse

from console.public_page import public_page
from include.nifya import digest_links

NIFYA = "nifya_db"

router = APIRouter(prefix="/nifya/unsubscribe")


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
    button = "Dejar de recibirlo" if asks else ""
    return public_page("NIFYA", title, words, button=button, language="es")


def _not_valid() -> HTTPException:
    # The same answer whatever is wrong: a guess learns nothing.
    return HTTPException(status.HTTP_404_NOT_FOUND, "Este enlace no es válido.")
