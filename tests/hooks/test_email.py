"""The e-mail connection: which provider it names, and that what it says arrives exactly."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from hooks.connections import UnknownConnection
from hooks.email import EmailHook, email_provider
from hooks.email_outbox import OutboxMail
from hooks.email_resend import ResendMail
from hooks.email_smtp import SmtpMail
from include.errors import BadInput, Permanent
from include.mail import Accepted, MailProvider
from stack.fakes.resend_server import ResendServer
from stack.fakes.smtp_server import SmtpServer
from tests.hooks.letters import SECRET, letters, one
from tests.hooks.processes import told


@pytest.fixture
def set_connection(monkeypatch: pytest.MonkeyPatch) -> Callable[[str | dict[str, object]], None]:
    """Return a function that sets the connection `a_mail`, as a URI or as the parts of a JSON."""

    def setting(said: str | dict[str, object]) -> None:
        text = said if isinstance(said, str) else json.dumps({"conn_type": "almanac_email", **said})
        monkeypatch.setenv("AIRFLOW_CONN_A_MAIL", text)

    return setting


@pytest.mark.parametrize(
    ("said", "provider"),
    [
        ({"password": "re_1", "extra": {"provider": "resend"}}, ResendMail),
        ({"password": "re_1", "host": "resend"}, ResendMail),
        ({"host": "mail.test", "extra": {"provider": "smtp"}}, SmtpMail),
        ({"extra": {"provider": "outbox"}}, OutboxMail),
        ({"host": "outbox"}, OutboxMail),
        # With a cap it is the folder itself all the same: it needs no sparing.
        ({"host": "outbox", "extra": {"per_second": 50}}, OutboxMail),
        ("almanac-email://:re_1@resend", ResendMail),
    ],
)
def test_which_provider(
    set_connection: Callable[..., None], said: str | dict[str, object], provider: type
) -> None:
    """One connection type serves three providers; the job's code never says which."""
    set_connection(said)
    assert isinstance(email_provider("a_mail"), provider)


def test_a_host_that_names_the_provider_is_no_address(set_connection: Callable[..., None]) -> None:
    """`resend` as the host means Resend's own API, and `outbox` the default folder."""
    set_connection({"host": "resend", "password": "re_1"})
    resend = email_provider("a_mail")
    assert isinstance(resend, ResendMail)
    assert resend.base_url == "https://api.resend.com"
    set_connection({"host": "outbox"})
    outbox = email_provider("a_mail")
    assert isinstance(outbox, OutboxMail)
    assert outbox.folder.name == "outbox"


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ({}, "provider"),
        ({"extra": {"provider": "sendmail"}}, "provider"),
        ({"extra": {"provider": ["smtp"]}}, "provider"),
        ({"conn_type": "http", "extra": {"provider": "smtp"}}, "almanac_email"),
        ({"extra": {"provider": "resend"}}, "password"),
        ({"extra": {"provider": "smtp"}}, "host"),
        ({"extra": "[1]"}, "extra"),
        ({"extra": '{"api_key": "s3cret"'}, "extra"),
        ({"password": "re_1", "host": "ftp://x.test", "extra": {"provider": "resend"}}, "base URL"),
        ({"password": "re_1", "host": "https://ann:s3cret@x", "extra": {"provider": "resend"}}, "base URL"),
        ({"password": "re_1", "extra": {"provider": "resend", "batch_size": 101}}, "batch_size"),
        ({"password": "re_1", "extra": {"provider": "resend", "in_flight": "nan"}}, "in_flight"),
        ({"password": "re_1", "extra": {"provider": "resend", "timeout": True}}, "timeout"),
    ],
)
def test_a_connection_that_cannot_be(
    set_connection: Callable[..., None], said: dict[str, object], named: str
) -> None:
    """R3: a wrong setting is named with its connection, and no secret of it is shown."""
    set_connection(said)
    with pytest.raises(BadInput, match="connection a_mail") as caught:
        email_provider("a_mail")
    assert named in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_no_connection() -> None:
    """Alerts fall back to another connection where theirs is not set, so they must be able to tell."""
    with pytest.raises(UnknownConnection, match="almanac_alert_email") as caught:
        email_provider("almanac_alert_email")
    assert isinstance(caught.value, Permanent)


@pytest.mark.parametrize("form", ["json", "uri", "extra"])
def test_signs_in_the_password_and_a_path_in_the_url(set_connection: Callable[..., None], form: str) -> None:
    """R3: the key `p/s@s:%#1` and a base URL with a path reach the provider as they are."""
    with ResendServer(api_key=SECRET, base_path="/relay/mail/v1") as server:
        if form == "json":
            set_connection({"host": server.url, "password": SECRET, "extra": {"provider": "resend"}})
        elif form == "extra":
            extra = {"provider": "resend", "base_url": f"{server.url}/"}
            set_connection({"host": "ignored.test", "password": SECRET, "extra": json.dumps(extra)})
        else:
            host = server.url.removeprefix("http://")
            quoted = quote(SECRET, safe=""), quote(host, safe="")
            set_connection("almanac-email://http://:{}@{}/?provider=resend".format(*quoted))
        assert isinstance(one(email_provider("a_mail").send([letters("k", 1)])), Accepted)
        assert EmailHook("a_mail").test_connection() == (True, f"{server.url} accepts the key")


def test_the_test_button(set_connection: Callable[..., None], tmp_path: Path) -> None:
    """A person who sets a connection up sees whether it works, and nothing is sent for it."""
    with SmtpServer() as smtp:
        parts = {"host": "127.0.0.1", "port": smtp.port, "extra": {"provider": "smtp", "security": "none"}}
        set_connection(parts)
        works, answer = EmailHook("a_mail").test_connection()
        assert works
        assert f"127.0.0.1:{smtp.port}" in answer
        assert smtp.received == []
    works, answer = EmailHook("a_mail").test_connection()
    assert not works
    assert "Connection refused" in answer
    set_connection({"extra": {"provider": "outbox", "folder": str(tmp_path)}})
    assert EmailHook("a_mail").test_connection() == (True, f"messages are written to {tmp_path}")
    with ResendServer(api_key="re_other") as resend:
        set_connection({"host": resend.url, "password": SECRET, "extra": {"provider": "resend"}})
        works, answer = EmailHook("a_mail").test_connection()
    assert not works
    assert "API key is invalid" in answer
    assert EmailHook("nowhere").test_connection()[0] is False


def test_every_provider_is_a_mail_provider(set_connection: Callable[..., None]) -> None:
    """The jobs read how many messages a batch holds and how long a key protects."""
    for extra in ({"provider": "resend"}, {"provider": "smtp"}, {"provider": "outbox"}):
        set_connection({"host": "mail.test", "password": "re_1", "extra": extra})
        provider: MailProvider = email_provider("a_mail")
        assert provider.batch_size >= 1
        assert provider.key_lifetime.total_seconds() >= 0


def test_importing_is_cheap() -> None:
    """Airflow parses each DAG file anew every few seconds; HTTP and SMTP wait until mail is sent."""
    code = (
        "import sys, airflow.sdk; before = set(sys.modules); import hooks.email\n"
        "print('heavy:', {'aiohttp', 'smtplib', 'httpx', 'requests'} & (set(sys.modules) - before))"
    )
    assert told("-c", code, marked="heavy: ") == "set()"
