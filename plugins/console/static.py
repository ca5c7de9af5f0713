"""The console's style sheet, script and icons; they too want a login."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException, status
from fastapi.responses import FileResponse

from console.guards import signed_in
from console.rendering import FOLDER

router = APIRouter(prefix="/static", dependencies=[signed_in()])

_TYPES = {
    "console.css": "text/css",
    "console.js": "text/javascript",
    "almanac.svg": "image/svg+xml",
}


@router.get("/{name}")
def asset(name: str) -> FileResponse:
    """Give one of the console's own files; their addresses change with their contents."""
    if name not in _TYPES:
        raise HTTPException(status.HTTP_404_NOT_FOUND, f"The console has no file {name!r}.")
    return FileResponse(
        FOLDER / "static" / name,
        media_type=_TYPES[name],
        headers={"cache-control": "private, max-age=31536000, immutable"},
    )
