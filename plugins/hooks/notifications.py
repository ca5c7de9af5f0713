"""All that EcoComply's notifications go out by: mail, SMS, push messages, and what signs the links in mails."""

from __future__ import annotations

from hooks.email import email_provider
from hooks.link_keys import unsubscribe_links
from hooks.push import push_provider
from hooks.sms import sms_provider
from include.ecocomply.channels import PushMessages
from include.ecocomply.unsubscribe_links import UnsubscribeLinks
from include.mail import MailProvider


def notification_providers(
    seconds: float,
) -> tuple[MailProvider, MailProvider, PushMessages, UnsubscribeLinks]:
    """Return what EcoComply's four connections describe; each channel's sending begins nothing after `seconds`.

    Raises as `hooks.email.email_provider` does.
    """
    return (
        email_provider("ecocomply_email", seconds),
        sms_provider("ecocomply_sms", seconds),
        push_provider("ecocomply_push", seconds),
        unsubscribe_links("ecocomply_links"),
    )
