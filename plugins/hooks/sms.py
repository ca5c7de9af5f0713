"""SMS: one Airflow connection says through whom they go.

The extra `provider` (or else the host) chooses: `twilio` speaks Twilio's HTTP API, `outbox` writes each message into
a folder as mail's outbox does. The extra `per_second` caps how many Twilio is given a second:
50, unless it says otherwise.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from airflow.sdk import BaseHook

from hooks.connections import Access, access
from hooks.email_outbox import OutboxMail
from hooks.pace import PER_SECOND, cap_of, paced
from hooks.sms_twilio import TwilioTexts
from include.ecocomply.channels import TextsToOutbox
from include.errors import AlmanacError
from include.mail import MailProvider

PROVIDERS = ("twilio", "outbox")
_OUTBOX_SENDER = "SMS <sms@outbox.invalid>"


class _Tested(MailProvider, Protocol):
    def test(self) -> str: ...


def sms_provider(conn_id: str, seconds: float | None = None) -> MailProvider:
    """Return the provider that an Airflow connection of the type `almanac_sms` describes.

    Messages are addressed to numbers. Nothing is sent or connected yet; one sending begins nothing after `seconds`,
    if given. Raises as `hooks.email.email_provider` does.
    """
    texts = SmsHook(conn_id).get_conn()
    # A folder is nobody's service: it needs no sparing.
    cap = 0 if isinstance(texts, TextsToOutbox) else cap_of(access(conn_id), PER_SECOND)
    return paced(texts, cap, seconds)


class SmsHook(BaseHook):
    """What Airflow's connection form and its Test button know of an SMS connection."""

    conn_name_attr = "sms_conn_id"
    default_conn_name = "almanac_sms"
    conn_type = "almanac_sms"
    hook_name = "SMS (Almanac)"

    def __init__(self, sms_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.sms_conn_id = sms_conn_id

    def get_conn(self) -> MailProvider:
        """Return the provider; see `sms_provider`."""
        provider = self._provider()
        return TextsToOutbox(provider) if isinstance(provider, OutboxMail) else provider

    def test_connection(self) -> tuple[bool, str]:
        """Try the connection without sending anything; return whether it works, and a sentence on it."""
        try:
            return True, self._provider().test()
        except (AlmanacError, OSError) as error:
            return False, str(error)

    def _provider(self) -> _Tested:
        said = access(self.sms_conn_id)
        choice = chosen(said, self.conn_type, PROVIDERS)
        return TwilioTexts(without_choice(said)) if choice == "twilio" else outbox(said, _OUTBOX_SENDER)


def chosen(said: Access, conn_type: str, providers: tuple[str, ...]) -> str:
    """Return the provider that a connection names. Raises BadInput if it is another type's, or names none."""
    if said.conn_type and said.conn_type != conn_type:
        raise said.bad("type", f"must be {conn_type}: {said.conn_type}")
    choice = said.text("provider") or said.host or ""
    if choice not in providers:
        raise said.bad("extra 'provider'", f"must be one of {', '.join(providers)}: {choice!r}")
    return choice


def without_choice(said: Access) -> Access:
    """Return the connection without a host that is the provider's name."""
    return said if said.text("provider") else replace(said, host=None)


def outbox(said: Access, sender: str) -> OutboxMail:
    """Return mail's outbox in the connection's folder; `sender` is whom its files come from."""
    return OutboxMail(replace(without_choice(said), extra={**said.extra, "from": sender}))
