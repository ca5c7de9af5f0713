"""NIFYA: subscriptions to official gazettes, the notifications they bring, and their digests."""

from __future__ import annotations

from zoneinfo import ZoneInfo

ZONE = ZoneInfo("Europe/Madrid")
"""Where NIFYA's days begin and end, and its schedules run, unless a row names a zone of its own."""
