"""E-mail: one Airflow connection says through which provider a system's mail goes.

The extra `provider` (or else the host) chooses: `resend` and `sendgrid` speak those services' HTTP APIs, `smtp`
SMTP to any mail server, and `outbox` writes `.eml` files into a folder. The extra `per_second` caps how many
messages go out a second: 50 with SendGrid, no cap with Resend and SMTP, unless it says otherwise; a folder has none.
"""

from __future__ import annotations

from dataclasses import replace

from airflow.sdk import BaseHook

from hooks.connections import Access, access
from hooks.email_outbox import OutboxMail
from hooks.email_resend import ResendMail
from hooks.email_sendgrid import SendGridMail
from hooks.email_smtp import SmtpMail
from hooks.pace import PER_SECOND, cap_of, paced
from include.errors import AlmanacError
from include.mail import MailProvider

Mail = ResendMail | SendGridMail | SmtpMail | OutboxMail

PROVIDERS: dict[str, type[Mail]] = {
    "resend": ResendMail,
    "sendgrid": SendGridMail,
    "smtp": SmtpMail,
    "outbox": OutboxMail,
}


def email_provider(conn_id: str, seconds: float | None = None) -> MailProvider:
    """Return the mail provider that an Airflow connection of the type `almanac_email` describes.

    Nothing is sent or connected yet. One sending begins nothing after `seconds`, if given. Raises UnknownConnection
    (Permanent) if there is no such connection, BadInput if it says something that can't be, Outage if Airflow could
    not be asked.
    """
    mail = EmailHook(conn_id).get_conn()
    default = PER_SECOND if isinstance(mail, SendGridMail) else 0
    # A folder is nobody's service: whatever the cap, it needs no sparing.
    cap = 0 if isinstance(mail, OutboxMail) else cap_of(access(conn_id), default)
    return paced(mail, cap, seconds)


class EmailHook(BaseHook):
    """What Airflow's connection form and its Test button know of a mail connection."""

    conn_name_attr = "email_conn_id"
    default_conn_name = "almanac_email"
    conn_type = "almanac_email"
    hook_name = "E-mail (Almanac)"

    def __init__(self, email_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.email_conn_id = email_conn_id

    def get_conn(self) -> Mail:
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
