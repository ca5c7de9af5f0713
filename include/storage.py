"""Files as the jobs see them: named bytes in one bucket or folder."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from include.effects import Effects
from include.errors import BadInput

_LONGEST_NAME = 900
_LONGEST_PART = 200


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file that is in the store; `sha256` is the lower-case hex digest of its bytes, `size` is in bytes."""

    name: str
    size: int
    sha256: str
    content_type: str


class Storage(Protocol):
    """A place for files.

    Names are relative, with `/` between folders, and never leave the store: a name with `..`, a leading
    slash, a backslash or a control character raises BadInput.
    """

    def put(self, name: str, content: bytes, content_type: str) -> StoredFile:
        """Write a whole file; the same name again replaces it, never by halves."""
        ...

    def get(self, name: str) -> bytes:
        """Return a file's bytes. Raises Refused if there is none of that name."""
        ...

    def stat(self, name: str) -> StoredFile | None:
        """Return what is known of a file, or None if there is none of that name."""
        ...

    def signed_url(self, name: str, expires_in: timedelta, display_name: str) -> str:
        """Return a link that gives this one file to whoever holds it until it expires."""
        ...


def check_name(name: str) -> None:
    """Raise BadInput unless `name` is a place inside the store, on every kind of store.

    At most 900 bytes, 200 between two slashes; no part begins with a dot, so that `..` and the store's own
    files are out of reach.
    """
    fault = None
    if not isinstance(name, str) or not name:
        fault = "is no text"
    elif any(unicodedata.category(c)[0] == "C" or c in "\u2028\u2029" for c in name):
        fault = "holds a control character"
    elif "\\" in name:
        fault = "holds a backslash"
    elif name.startswith("/"):
        fault = "begins with a slash"
    elif not all(name.split("/")):
        fault = "has an empty part"
    elif any(part.startswith(".") for part in name.split("/")):
        fault = "has a part that begins with a dot"
    elif len(name.encode()) > _LONGEST_NAME or any(len(p.encode()) > _LONGEST_PART for p in name.split("/")):
        fault = "is too long"
    if fault:
        raise BadInput(f"file name {repr(name)[:100]} {fault}")


class RecordedStorage:
    """A preview's store: reads the real one, writes nothing.

    `read` holds files by name that were read before the preview's transaction opened.
    """

    def __init__(self, real: Storage, effects: Effects, read: Mapping[str, bytes]) -> None:
        self._real = real
        self._effects = effects
        self._read = read

    def put(self, name: str, content: bytes, content_type: str) -> StoredFile:
        check_name(name)
        self._effects.file(name, content_type)
        return StoredFile(name, len(content), "<sha256>", content_type)

    def get(self, name: str) -> bytes:
        return self._read[name] if name in self._read else self._real.get(name)

    def stat(self, name: str) -> StoredFile | None:
        return self._real.stat(name)

    def signed_url(self, name: str, expires_in: timedelta, display_name: str) -> str:
        return self._real.signed_url(name, expires_in, display_name)
