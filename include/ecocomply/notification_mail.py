"""A notification as each channel carries it: a mail in HTML and plain text, an SMS, a push message."""

from __future__ import annotations

from functools import cache
from typing import Any

import jinja2
from markupsafe import Markup, escape
from sqlalchemy import Row

from include.ecocomply.channels import Push, Subscription
from include.ecocomply.notice_words import TEMPLATES
from include.errors import BadInput
from include.mail import Message
from include.plain_text import plain, shown_url, web_address

LONGEST_SMS = 320
"""Characters of two messages in a row; a link that would not fit whole is left out."""

_LONGEST_SUBJECT = 200


def mail(row: Row[Any], sender: str, unsubscribe_url: str) -> Message:
    """Return the mail of a notification, whoever wrote it; the same row gives the same bytes.

    What has no HTML of its own gets its text, escaped. Raises BadInput if `unsubscribe_url` is no web address.
    """
    if web_address(unsubscribe_url) is None:
        # Without its last part, which is a token.
        shown = shown_url(unsubscribe_url.rpartition("/")[0])[:60]
        raise BadInput(f"EcoComply: PUBLIC_URL makes {shown!r}, which is not an http(s) address")
    subject = plain(row.subject, _LONGEST_SUBJECT)
    given = {
        "subject": subject,
        "action_url": web_address(row.action_url or ""),
        "unsubscribe_url": unsubscribe_url,
    }
    # The application's own HTML, or that of our own templates, in which every value was escaped.
    body = Markup(row.body_html) if row.body_html else paragraphs(row.body_text)  # noqa: S704
    return Message(
        sender=sender,
        to=row.email,
        subject=subject,
        text=template("mail.txt.j2").render(given, body=row.body_text),
        html=template("mail.html.j2").render(given, body=body),
        headers={
            "List-Unsubscribe": f"<{unsubscribe_url}>",
            "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
        },
    )


def sms(row: Row[Any]) -> Message:
    """Return the SMS: subject and text on one line, and the link where there is room for it."""
    link = web_address(row.action_url or "") or ""
    room = LONGEST_SMS - len(link) - 1
    said = plain(f"{row.subject}: {row.body_text}", room if link and room > LONGEST_SMS // 3 else LONGEST_SMS)
    whole = f"{said} {link}" if link and len(said) + 1 + len(link) <= LONGEST_SMS else said
    return Message(sender="", to=row.phone, subject=plain(row.subject, _LONGEST_SUBJECT), text=whole)


def push(row: Row[Any]) -> Message:
    """Return the push message, addressed to every device of the user."""
    given = Push(
        title=plain(row.subject, _LONGEST_SUBJECT),
        body=plain(row.body_text, LONGEST_SMS),
        url=web_address(row.action_url or ""),
        subscriptions=tuple(Subscription(**one) for one in row.subscriptions or ()),
    )
    return Message(sender="", to=str(row.user_id), subject=given.title, text=given.to_json())


def paragraphs(text: str) -> Markup:
    """Return plain text as HTML, in which nothing of it is markup."""
    parts = [part for part in text.split("\n\n") if part.strip()]
    return Markup("").join(Markup("<p>{}</p>").format(_lines(part)) for part in parts)


def _lines(part: str) -> Markup:
    return Markup("<br>").join(escape(line) for line in part.strip().splitlines())


@cache
def template(name: str) -> jinja2.Template:
    """Return a template of the folder; what is not plain text escapes every value."""
    environment = jinja2.Environment(
        autoescape=not name.endswith(".txt.j2"),  # noqa: S701  off for plain text alone, where nothing is markup
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals.clear()
    return environment.from_string((TEMPLATES / name).read_text(encoding="utf-8"))
