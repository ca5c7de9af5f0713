"""LeadMetrics: reminders to people who broke off their registration, and word of new ones to sales."""

from __future__ import annotations

from zoneinfo import ZoneInfo

ZONE = ZoneInfo("UTC")
"""LeadMetrics counts hours from an event; its days begin and end nowhere."""
