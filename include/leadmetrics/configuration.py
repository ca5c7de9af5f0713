"""The settings that the specification gives, checked all at once before anything is claimed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from include.addresses import ADDRESS, bare_address
from include.errors import BadInput
from include.plain_text import shown_url

SETTINGS: dict[str, str | None] = {
    "DASHBOARD_URL": "https://app.leadmetrics.ai",
    "SIGNUP_ALERT_EMAIL": "moble@leadmetrics.ai",
}
_LONGEST_URL = 500


@dataclass(frozen=True, slots=True)
class Configuration:
    """Where signup links lead, without a slash at the end, and who hears of new signups."""

    dashboard_url: str
    signup_alert_email: str


def configuration(settings: Mapping[str, str | None]) -> Configuration:
    """Return the settings. Raises BadInput, which names every one that is wrong, and why."""
    url, email = settings.get("DASHBOARD_URL") or "", settings.get("SIGNUP_ALERT_EMAIL") or ""
    faults = {"DASHBOARD_URL": _url_fault(url), "SIGNUP_ALERT_EMAIL": _email_fault(email)}
    if wrong := [f"{name} {fault}" for name, fault in faults.items() if fault]:
        raise BadInput(f"LeadMetrics' settings: {'; '.join(wrong)}")
    return Configuration(url.rstrip("/"), address(email))


def address(text: str) -> str:
    """Return an e-mail address, its domain in ASCII. Raises BadInput if it is none; the message leaves it out."""
    try:
        found = bare_address(text) if ADDRESS.fullmatch(text) else ""
    except ValueError:
        found = ""
    if "." not in found.rpartition("@")[2]:
        raise BadInput("is no e-mail address")
    return found


def _email_fault(text: str) -> str | None:
    try:
        address(text)
    except BadInput as error:
        return str(error)
    return None


def _url_fault(text: str) -> str | None:
    try:
        parts = urlsplit(text)
        _ = parts.port
        plain = parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        plain = False
    odd = len(text) > _LONGEST_URL or not text.isascii() or any(c.isspace() or c in "\"'<>\\" for c in text)
    if not plain or odd or urlsplit(text).query or urlsplit(text).fragment:
        return f"is not a plain http(s) address: {shown_url(text)[:80]!r}"
    return None
