"""The outbox: files that a person opens, written once."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from email import message_from_bytes
from email.policy import default
from pathlib import Path
from typing import Any

import pytest

from hooks.email_outbox import OutboxMail
from include.errors import BadInput
from include.mail import Accepted, Batch, Deferred, Rejected, Unknown
from tests.hooks.letters import connection, letter, letters, one, sent
from tests.hooks.processes import environment


def provider(folder: Path, **extra: Any) -> OutboxMail:
    """Return the provider for a folder."""
    return OutboxMail(connection(folder=str(folder), **extra))


def files(folder: Path) -> dict[str, bytes]:
    """Return what is in the folder, unfinished files too."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_message_becomes_a_file(tmp_path: Path) -> None:
    """The embedded stack's mail is looked at in a mail program or the console."""
    headers = {"List-Unsubscribe": "<https://x.test/>"}
    message = letter('"Ann, Ö" <ann@home.test>', subject="Grüße & <b>", headers=headers)
    outcome = one(provider(tmp_path / "new" / "outbox").send([Batch("k", (message,))]))
    ((name, content),) = files(tmp_path / "new" / "outbox").items()
    assert outcome == Accepted(name.removesuffix(".eml"))
    mail = message_from_bytes(content, policy=default)
    assert (mail["To"], mail["Subject"]) == (message.to, message.subject)
    assert mail["List-Unsubscribe"] == "<https://x.test/>"


def test_a_batch_sent_again_is_delivered_once(tmp_path: Path) -> None:
    """E1: half of a batch was written when the process died; the rest follows, nothing twice."""
    batch = letters("k", 5)
    sent(provider(tmp_path), Batch("k", batch.messages[:3]))
    before = files(tmp_path)
    first = sent(provider(tmp_path), batch)
    second = sent(provider(tmp_path), batch)
    assert first == second
    assert len(files(tmp_path)) == 5
    assert before.items() <= files(tmp_path).items()


def test_changed_payload_under_a_key(tmp_path: Path) -> None:
    """As with Resend: what was written stays, and nobody takes the new form for delivered."""
    sent(provider(tmp_path), letters("k", 1))
    before = files(tmp_path)
    assert isinstance(one(provider(tmp_path).send([letters("k", 1, subject="Other")])), Unknown)
    assert files(tmp_path) == before


@pytest.mark.parametrize(
    "key", ["../../evil", "/etc/evil", "a\x00b", "a\\..\\b", "", ".", "é" * 300, "\ud800", "k\r\n"]
)
def test_a_hostile_key_stays_in_the_folder(tmp_path: Path, key: str) -> None:
    """The file name is made from the key, never the key itself; two keys never share a file."""
    folder = tmp_path / "outbox"
    outcomes = sent(provider(folder), Batch(key, (letter(),)), Batch(key + "x", (letter(),)))
    assert all(isinstance(outcome, Accepted) for outcome in outcomes)
    assert [path.name for path in tmp_path.iterdir()] == ["outbox"]
    assert len(files(folder)) == 2


def test_keys_that_differ_in_case_or_signs(tmp_path: Path) -> None:
    """Some file systems take A for a; the name tells them apart all the same."""
    sent(provider(tmp_path), *(Batch(key, (letter(),)) for key in ("a/b", "A/B", "a-b", "a b")))
    assert len({name.lower() for name in files(tmp_path)}) == 4


@pytest.mark.parametrize(
    "changed", [{"subject": "a\nBcc: b"}, {"to": ""}, {"to": "nobody"}, {"to": "a@b.test, c@d.test"}]
)
def test_what_no_provider_takes(tmp_path: Path, changed: dict[str, Any]) -> None:
    """What works in the embedded stack must work with a real provider."""
    assert isinstance(one(provider(tmp_path).send([Batch("k", (letter(**changed),))])), Rejected)
    assert files(tmp_path) == {}


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """A full or missing disk is an outage: certain, told once, and later batches are put off."""
    (tmp_path / "file").write_text("in the way")
    mail = provider(tmp_path / "file" / "outbox")
    outcomes = sent(mail, letters("a", 2), letters("b", 2))
    assert [getattr(outcome, "certain", None) for outcome in outcomes] == [True] * 4
    assert "Not a directory" in str(outcomes[0])
    with pytest.raises(OSError, match="Not a directory"):
        mail.test()


def test_killed_while_writing(tmp_path: Path) -> None:
    """A file is there whole or not at all: the console reads the folder while a task writes."""
    code = (
        "import sys; from hooks.email_outbox import OutboxMail; from tests.hooks.letters import *\n"
        "mail, batch = OutboxMail(connection(folder=sys.argv[1])), letters('k', 100, text='x' * 300_000)\n"
        "print('go', flush=True); sent(mail, batch)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        while not list(tmp_path.glob("*.eml")):
            time.sleep(0.005)
        process.kill()
    whole = [path for path in tmp_path.glob("*.eml") if path.stat().st_size > 300_000]
    assert whole == list(tmp_path.glob("*.eml"))
    assert 0 < len(whole) < 100


def test_where_the_folder_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The embedded stack needs no setting: the outbox is in Airflow's home."""
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    assert OutboxMail(connection()).folder == tmp_path / "outbox"
    assert OutboxMail(connection(host="/srv/mail")).folder == Path("/srv/mail")
    assert OutboxMail(connection(host="/srv/mail", folder="/srv/other")).folder == Path("/srv/other")
    with pytest.raises(BadInput, match="folder"):
        OutboxMail(connection(folder="a\x00b"))


def test_trying_the_folder_leaves_nothing(tmp_path: Path) -> None:
    """The Test button writes for real, since a listing says nothing of a full disk, and cleans up."""
    assert str(tmp_path) in provider(tmp_path).test()
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - hidden files too


def test_default_sender(tmp_path: Path) -> None:
    """A message without a sender takes the connection's; without one it is put off, not refused."""
    bare = Batch("k", (letter(sender=""),))
    assert isinstance(one(provider(tmp_path).send([bare])), Deferred)
    assert isinstance(one(provider(tmp_path, **{"from": "d@almanac.test"}).send([bare])), Accepted)
