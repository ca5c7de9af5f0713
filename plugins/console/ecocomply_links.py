"""The pages behind the links in EcoComply's mail: no more of a type, no more digests; nobody has to sign in.

A GET changes nothing, since mail programs and scanners follow links; a POST stops the mail, whether it comes from
the page's button or, by RFC 8058, from the mail program's own. A link that has expired is 410, any other that is not
ours 404.
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

from fastapi import APIRouter, HTTPException, Request, status
from fastapi.responses import HTMLResponse

from console.public_page import public_page
from hooks.link_keys import unsubscribe_links
from include.ecocomply.access import ServiceDatabase, act_as_service
from include.ecocomply.digest_delivery import digest_link, stop_digests
from include.ecocomply.unsubscribe_links import LinkExpired, Unsubscription, unsubscribe
from include.errors import BadInput

DATABASE = "ecocomply_db"
KEY = "ecocomply_links"

router = APIRouter(prefix="/ecocomply")

_BUTTON = "Stop these mails"


@router.get("/unsubscribe/{token}")
def ask(token: str) -> HTMLResponse:
    """Ask whether a type of mail is to stop."""
    what = _words(_read(token))
    return _page(f"No more mail: {what}?", "The application shows you these as before.", button=_BUTTON)


@router.post("/unsubscribe/{token}")
def stop(request: Request, token: str) -> HTMLResponse:
    """Stop a type of mail for the one user whose mail carried the token."""
    said = _read(token)
    with ServiceDatabase(request.app.state.databases.writable(DATABASE)).transaction() as tx:
        known = unsubscribe(tx, said)
    if not known:
        raise _not_valid()
    return _page(f"No more mail: {_words(said)}", "It is stopped. The application shows you these as before.")


@router.get("/digests/{token}")
def ask_digests(request: Request, token: str) -> HTMLResponse:
    """Ask whether the digests are to stop."""
    with request.app.state.databases.read(DATABASE) as tx:
        act_as_service(tx)
        link = digest_link(tx, _uuid(token))
    if link is None:
        raise _not_valid()
    if not link.is_live:
        raise _expired()
    frequency = link.frequency.lower()
    return _page(
        f"No more {frequency} digests?", "The application shows you all of it as before.", button=_BUTTON
    )


@router.post("/digests/{token}")
def stop_digest_mail(request: Request, token: str) -> HTMLResponse:
    """Stop the types in a digest for the one user whose digest carried the token."""
    with ServiceDatabase(request.app.state.databases.writable(DATABASE)).transaction() as tx:
        link = digest_link(tx, _uuid(token))
        # By a link that is none, or has expired, it stops nothing.
        stop_digests(tx, _uuid(token))
    if link is None:
        raise _not_valid()
    if not link.is_live:
        raise _expired()
    return _page("No more digests", "They are stopped. The application shows you all of it as before.")


def _read(token: str) -> Unsubscription:
    try:
        return unsubscribe_links(KEY).read(token, datetime.now(UTC).date())
    except LinkExpired:
        raise _expired() from None
    except BadInput:
        raise _not_valid() from None


def _uuid(token: str) -> uuid.UUID:
    try:
        return uuid.UUID(token)
    except ValueError:
        raise _not_valid() from None


def _words(said: Unsubscription) -> str:
    return said.notification_type.replace("_", " ").lower()


def _page(title: str, words: str, *, button: str = "") -> HTMLResponse:
    return public_page("EcoComply", title, words, button=button)


def _not_valid() -> HTTPException:
    # The same answer whatever is wrong: a guess learns nothing.
    return HTTPException(status.HTTP_404_NOT_FOUND, "This link is not valid.")


def _expired() -> HTTPException:
    return HTTPException(status.HTTP_410_GONE, "This link has expired. A newer mail has one that works.")
