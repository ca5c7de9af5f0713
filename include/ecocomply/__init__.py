"""EcoComply: permits and their obligations, the evidence for them, and everything that watches over both."""

from __future__ import annotations

from zoneinfo import ZoneInfo

ZONE = ZoneInfo("UTC")
"""Where EcoComply's days begin and end."""
