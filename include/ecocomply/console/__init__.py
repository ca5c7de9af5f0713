"""What the console shows of EcoComply, one module a page; every transaction is the service's (`access.py`)."""

from __future__ import annotations

PACKAGE = "include.ecocomply.console"

PAGE = 50
"""How many rows a page of a list has."""
