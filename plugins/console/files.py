"""Files behind signed links: the one route of the console that asks for no login."""

from __future__ import annotations

from datetime import UTC, datetime

from fastapi import APIRouter, HTTPException, status
from fastapi.responses import Response

from hooks.storage import content_disposition, storage
from include.errors import Refused

CLEARPATH_STORAGE = "clearpath_storage"

router = APIRouter(prefix="/files")


@router.get("/{token}")
def signed_file(token: str) -> Response:
    """Give the one file that the token was signed for, until it expires."""
    try:
        stored, content, display_name = storage(CLEARPATH_STORAGE).open_signed(token, datetime.now(UTC))
    except Refused as error:
        # The same answer whatever is wrong, apart from the sentence: a guess learns nothing about files.
        raise HTTPException(status.HTTP_404_NOT_FOUND, _without_names(error)) from None
    return Response(
        content,
        media_type=stored.content_type,
        headers={
            "content-disposition": content_disposition(display_name),
            "content-security-policy": "sandbox; default-src 'none'",
            "cache-control": "private, no-store",
        },
    )


def _without_names(error: Refused) -> str:
    return "This link has expired." if "expired" in str(error) else "This link is not valid."
