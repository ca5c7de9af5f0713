"""Mail addresses: what every mail server takes as one, and no more than one."""

from __future__ import annotations

import re
from email.utils import getaddresses

from include.errors import BadInput

ADDRESS = re.compile(r"[!#$%&'*+/=?^_`{|}~0-9A-Za-z.-]+@[^\s@<>\",;:\\()\[\]]+")
"""An address alone, in ASCII before the @."""


def bare_address(value: str) -> str:
    """Return the address in `a@b.example` or `Name <a@b.example>`, its domain in ASCII.

    Raises ValueError if there is none, or none that every mail server takes: its local part must be ASCII.
    """
    # Of a blank text the parser finds none.
    address = next((address for _, address in getaddresses([value])), "")
    local, _, domain = address.rpartition("@")
    try:
        found = f"{local}@{domain.encode('idna').decode('ascii')}"
    except UnicodeError:
        found = ""
    if not ADDRESS.fullmatch(found):
        raise ValueError(f"this is no address that mail can go to: {value[:80]!r}")
    return found


def set_address(name: str, value: str) -> str:
    """Return the address that the setting `name` holds. Raises BadInput if it is not exactly one."""
    found = getaddresses([value])
    try:
        bare_address(value)
        # The parser drops a space within an address, and goes on behind a line break.
        one = len(found) == 1 and found[0][1] in value and value.isprintable()
    except ValueError:
        one = False
    if not one:
        raise BadInput(f"{name}: {value[:80]!r} is not one mail address, as in ops@clearpath.test")
    return value
