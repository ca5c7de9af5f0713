"""What a message must hold before any transport takes it, and its MIME form for SMTP and the outbox."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime
from email.header import Header
from email.message import EmailMessage
from email.parser import BytesHeaderParser
from email.policy import SMTP
from email.utils import format_datetime, formataddr, getaddresses

from include.addresses import ADDRESS, bare_address
from include.mail import Batch, Message

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# A line of mail may be 998 characters long; two are the colon and the space.
_LONGEST_LINE = 996
# The message's own fields, and what only the transport may set.
_RESERVED = frozenset(
    [
        *("from", "sender", "to", "cc", "bcc", "subject", "date", "message-id"),
        *("mime-version", "content-type", "content-transfer-encoding"),
    ]
)


def fault(message: Message, sender: str) -> str | None:
    """Return why no transport may send `message` from `sender`, or None.

    An address that merely does not exist or is misspelt is the provider's to refuse.
    """
    values = {"sender": sender, "to": message.to, "subject": message.subject}
    values |= {f"header {name}": value for name, value in message.headers.items()}
    for name in message.headers:
        if not _HEADER_NAME.fullmatch(name) or name.lower() in _RESERVED:
            return f"this header can't be set: {name[:80]!r}"
    for name, value in values.items():
        if _CONTROL.search(value):
            return f"the {name} holds a line break or another control character: {value[:80]!r}"
        if len(name) + len(value) > _LONGEST_LINE:
            return f"the {name} is too long: {len(value)} characters"
    # A plain address is one; the parser takes longer than all the rest of a message's way.
    if not ADDRESS.fullmatch(message.to) and len(getaddresses([message.to])) > 1:
        return f"the to names more than one recipient: {message.to[:80]!r}"
    for name, value in {**values, "text": message.text, "html": message.html or ""}.items():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            return f"the {name} is not valid Unicode at character {error.start}"
    return None


def stem(batch: Batch, position: int) -> str:
    """Return a name for one message of a batch that is safe in a file name and a Message-ID.

    The same key and position always give the same name, different ones a different name.
    """
    readable = re.sub(r"[^A-Za-z0-9]+", "-", batch.key)[:40].strip("-")
    digest = hashlib.sha256(batch.key.encode("utf-8", "surrogatepass")).hexdigest()[:24]
    return f"{readable}-{digest}-{position:03d}".lstrip("-")


def mime_bytes(message: Message, sender: str, name: str, date: datetime) -> bytes:
    """Return the message in the form that goes over the wire, with CRLF line ends.

    `name` becomes the Message-ID; the same arguments give the same bytes. Raises ValueError if a value would
    not stay inside its header, or if there is no address to send to or from.
    """
    domain = bare_address(sender).rpartition("@")[2]
    headers = {
        "From": _mailbox(sender),
        "To": _mailbox(message.to),
        "Subject": _text(message.subject),
        "Date": format_datetime(date),
        "Message-ID": f"<{name}@{domain}>",
        **{header: _text(value) for header, value in message.headers.items()},
    }
    body = EmailMessage(policy=SMTP)
    body.set_content(message.text, charset="utf-8", cte="quoted-printable")
    if message.html is not None:
        body.add_alternative(message.html, subtype="html", charset="utf-8", cte="quoted-printable")
        body.set_boundary(f"==={hashlib.sha256(name.encode()).hexdigest()[:32]}===")
    lines = "".join(f"{header}: {value}\r\n" for header, value in headers.items())
    content = lines.encode("ascii") + body.as_bytes()
    # What was written is read back, so that no value can have become a header of its own.
    if BytesHeaderParser().parsebytes(content).keys() != [*headers, *body.keys()]:
        raise ValueError("a header's value does not stay inside its header")
    return content


def _text(value: str) -> str:
    # Plain ASCII stays one line: folding breaks long links. What looks encoded is encoded, to show as it is.
    if value.isascii() and "=?" not in value:
        return value
    return Header(value, "utf-8", maxlinelen=70).encode(linesep="\r\n")


def _mailbox(value: str) -> str:
    address = bare_address(value)
    name = getaddresses([value])[0][0]
    if name.isascii() and "=?" not in name:
        return formataddr((name, address))
    return f"{_text(name)} <{address}>"
