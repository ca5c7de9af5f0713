"""EcoComply: permits and their obligations, the evidence for them, and everything that watches over both."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from include.ecocomply.access import ServiceDatabase

ZONE = ZoneInfo("UTC")
"""Where EcoComply's days begin and end."""

DATABASE = ServiceDatabase
"""How a job sees the database unless a user asked for it: row-level security is forced, and somebody must be acting."""
