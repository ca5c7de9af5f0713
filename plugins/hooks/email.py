"""E-mail: one Airflow connection says through which provider a system's mail goes.

The extra `provider` (or else the host) chooses: `resend` speaks Resend's HTTP API, `smtp` SMTP to any mail
server, and `outbox` writes `.eml` files into a folder.
"""

from __future__ import annotations

from dataclasses import replace

from airflow.sdk import BaseHook

from hooks.connections import Access, access
from hooks.email_outbox import OutboxMail
from hooks.email_resend import ResendMail
from hooks.email_smtp import SmtpMail
from include.errors import AlmanacError
from include.mail import MailProvider

PROVIDERS: dict[str, type[ResendMail | SmtpMail | OutboxMail]] = {
    "resend": ResendMail,
    "smtp": SmtpMail,
    "outbox": OutboxMail,
}


def email_provider(conn_id: str) -> MailProvider:
    """Return the mail provider that an Airflow connection of the type `almanac_email` describes.

    Nothing is sent or connected yet. Raises UnknownConnection (Permanent) if there is no such connection,
    BadInput if it says something that can't be, Outage if Airflow could not be asked.
    """
    return EmailHook(conn_id).get_conn()


class EmailHook(BaseHook):
    """What Airflow's connection form and its Test button know of a mail connection."""

    conn_name_attr = "email_conn_id"
    default_conn_name = "almanac_email"
    conn_type = "almanac_email"
    hook_name = "E-mail (Almanac)"

    def __init__(self, email_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.email_conn_id = email_conn_id

    def get_conn(self) -> ResendMail | SmtpMail | OutboxMail:
        """Return the provider; see `email_provider`."""
        said = access(self.email_conn_id)
        return PROVIDERS[_choice(said)](_without_choice(said))

    def test_connection(self) -> tuple[bool, str]:
        """Try the connection without sending anything; return whether it works, and a sentence on it."""
        try:
            return True, self.get_conn().test()
        except (AlmanacError, OSError) as error:
            return False, str(error)


def _choice(said: Access) -> str:
    if said.conn_type and said.conn_type != EmailHook.conn_type:
        raise said.bad("type", f"must be {EmailHook.conn_type}: {said.conn_type}")
    choice = said.text("provider") or said.host
    if choice not in PROVIDERS:
        raise said.bad("extra 'provider'", f"must be one of {', '.join(PROVIDERS)}: {choice!r}")
    return choice


def _without_choice(said: Access) -> Access:
    # A host that names the provider is no address.
    return said if said.text("provider") else replace(said, host=None)
