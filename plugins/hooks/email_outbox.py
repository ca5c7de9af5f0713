"""Mail into a folder: each message becomes an `.eml` file that any mail program opens."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from email.parser import BytesHeaderParser
from email.utils import parsedate_to_datetime
from pathlib import Path

from hooks.connections import Access
from hooks.email_mime import fault, mime_bytes, stem
from hooks.email_sender import sender_of
from include.mail import Accepted, Answer, Batch, Deferred, Message, Outcome, Rejected, Unknown


class OutboxMail:
    """A mail provider that writes files; a batch that is sent again finds them there and writes nothing.

    The folder is the connection's extra `folder`, else its host, else `outbox` in Airflow's home.
    """

    batch_size = 100
    key_lifetime = timedelta(hours=24)

    def __init__(self, access: Access) -> None:
        given = access.text("folder") or access.host
        if given and "\x00" in given:
            raise access.bad("folder", "holds a null character")
        home = Path(os.environ.get("AIRFLOW_HOME", "~/airflow"))
        self.folder = (Path(given) if given else home / "outbox").expanduser().absolute()
        self.default_sender = sender_of(access)
        self._conn_id = access.conn_id

    def send(self, batches: Iterable[Batch]) -> Iterator[Answer]:
        outage: Deferred | None = None
        for batch in batches:
            outcomes: list[Outcome] = []
            for position, message in enumerate(batch.messages):
                outcome = outage or self._write(batch, position, message)
                if isinstance(outcome, Deferred):
                    outage = outcome
                outcomes.append(outcome)
            yield Answer(batch, tuple(outcomes))

    def test(self) -> str:
        """Write and remove a file; return what works. Raises OSError if that fails."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=self.folder) as probe:
            probe.write(b"probe")
        return f"messages are written to {self.folder}"

    def _write(self, batch: Batch, position: int, message: Message) -> Outcome:
        sender = message.sender or self.default_sender
        if not sender:
            return Deferred(f"connection {self._conn_id}: no sender: set the extra 'from'", certain=True)
        if reason := fault(message, sender):
            return Rejected(reason)
        name = stem(batch, position)
        path = self.folder / f"{name}.eml"
        try:
            if path.exists():
                return self._already_there(path, message, sender, name)
            content = mime_bytes(message, sender, name, datetime.now(UTC))
            self._replace(path, content)
        except ValueError as error:
            return Rejected(str(error))
        except OSError as error:
            return Deferred(f"outbox {self.folder}: {error.strerror or error}", certain=True)
        return Accepted(name)

    def _already_there(self, path: Path, message: Message, sender: str, name: str) -> Outcome:
        there = path.read_bytes()
        try:
            date = parsedate_to_datetime(BytesHeaderParser().parsebytes(there)["Date"])
        except (TypeError, ValueError):
            return Unknown(f"outbox: {path.name} is there and is not this message")
        if there != mime_bytes(message, sender, name, date):
            return Unknown(f"outbox: {path.name} is there with another content")
        return Accepted(name)

    def _replace(self, path: Path, content: bytes) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        descriptor, unfinished = tempfile.mkstemp(prefix=".", suffix=".unfinished", dir=self.folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            Path(unfinished).replace(path)
        except BaseException:
            Path(unfinished).unlink(missing_ok=True)
            raise
