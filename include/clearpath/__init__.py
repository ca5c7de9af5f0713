"""ClearPath RD: radon tests, their mail, certificates, contractors and lab results."""

from __future__ import annotations

from zoneinfo import ZoneInfo

ZONE = ZoneInfo("America/Edmonton")
"""Where ClearPath's days begin and end, and its schedules run."""
