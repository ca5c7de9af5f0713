"""ArcVest: ideas from feeds and mail are scored, picked and written up for the content calendar."""

from __future__ import annotations

from zoneinfo import ZoneInfo

ZONE = ZoneInfo("America/Chicago")
"""Where ArcVest's days begin and end, and its batches are enqueued."""
