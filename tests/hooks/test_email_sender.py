"""The sender of a connection: a slip in it is told with the connection, before any message is at stake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hooks.email_outbox import OutboxMail
from hooks.email_resend import ResendMail
from hooks.email_smtp import SmtpMail
from include.errors import BadInput
from include.mail import Accepted, Batch
from tests.hooks.letters import connection, letter, one

PROVIDERS: dict[type, dict[str, Any]] = {
    ResendMail: {"password": "re_1"},
    SmtpMail: {"host": "127.0.0.1"},
    OutboxMail: {},
}


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    "sender",
    [
        "ClearPath",
        "noreply@",
        "é@clearpath.test",
        "noreply@clear path.test",
        "A <a@b.test>\r\nBcc: evil@evil.test",
        "a@b.test\n",
        "A <a@b.test>, b@c.test",
        "a@b.test; b@c.test",
        "ClearPath, Inc. <a@b.test>",
        " ",
        "\ud800 <a@b.test>",
        "x" * 1_000 + " <a@b.test>",
    ],
)
def test_a_sender_that_cannot_be(provider: type, sender: str) -> None:
    """Each due message would lose its attempts to a slip of ours; so there is no provider with such a sender."""
    fields: dict[str, Any] = PROVIDERS[provider] | {"from": sender}
    with pytest.raises(BadInput, match="connection a_mail: extra 'from' must be one address"):
        provider(connection(**fields))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_no_sender_is_told_when_one_is_needed(provider: type) -> None:
    """A connection whose messages bring their own sender needs none."""
    assert provider(connection(**PROVIDERS[provider])).default_sender is None


@pytest.mark.parametrize(
    "sender",
    [
        "a@b.test",
        "A <a@b.test>",
        '"ClearPath, Inc." <a@b.test>',
        "Zoë <a@b.test>",
        "a@bücher.test",
        "a@localhost",
    ],
)
def test_a_sender_that_can_be(tmp_path: Path, sender: str) -> None:
    """What mail programs take is taken, and a message goes out under it."""
    mail = OutboxMail(connection(folder=str(tmp_path), **{"from": sender}))
    assert mail.default_sender == sender
    assert isinstance(one(mail.send([Batch("k", (letter(sender=""),))])), Accepted)
