"""Delivery of claimed mail: what is recorded when, and what becomes of a claim that is gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from sqlalchemy import delete, event

from include.clearpath import email_queue_dispatch
from include.clearpath.tables import EMAIL_ATTEMPTS, EMAIL_LOG
from include.mail import Accepted, Answer, Batch, Message
from tests.clearpath.rows import Rows
from tests.fakes.world import FakeAlerts, FakeMail


class Slip(Exception):
    """A fault of our own in the middle of the sending."""


@dataclass
class Hasty(FakeMail):
    """A provider whose answers all come at once; `slip_after` so many it breaks."""

    slip_after: int | None = None

    def send(self, batches: Iterable[Batch]) -> Iterator[Answer]:
        taken = list(batches)
        for number, batch in enumerate(taken, 1):
            outcomes = tuple(Accepted(f"id {batch.key}") for _ in batch.messages)
            yield Answer(batch, outcomes, more=number < len(taken) or self.slip_after is not None)
            if number == self.slip_after:
                raise Slip


def dispatch(rows: Rows, mail: FakeMail) -> Any:
    """Run the job once."""
    return rows.perform(email_queue_dispatch, email_queue_dispatch.Outside(mail, FakeAlerts()))


def recorded(rows: Rows) -> list[str]:
    """Return what is on record of every claim."""
    return sorted(attempt.outcome or "open" for attempt in rows.all(EMAIL_ATTEMPTS))


def test_answers_that_come_together_are_recorded_together(rows: Rows) -> None:
    """A commit a message would make the database, not the provider, the limit of a long queue."""
    for _ in range(6):
        rows.mail(rows.session())
    records: list[str] = []

    def look(conn: Any, cursor: Any, sql: str, *rest: Any) -> None:
        if sql.startswith("-- a row is a claimed message with what the provider said"):
            records.append(sql)

    event.listen(rows.database.engine, "after_cursor_execute", look)
    run = dispatch(rows, Hasty(batch_size=1))
    event.remove(rows.database.engine, "after_cursor_execute", look)
    assert run.counts["sent"] == 6
    assert recorded(rows) == ["accepted"] * 6
    assert len(records) == 1


def test_what_was_said_is_kept_when_the_sending_breaks(rows: Rows) -> None:
    """A message that is known to be out is not asked about again; the rest stays claimed as it was."""
    for _ in range(4):
        rows.mail(rows.session())
    with pytest.raises(Slip):
        dispatch(rows, Hasty(batch_size=1, slip_after=3))
    assert recorded(rows) == ["accepted"] * 3 + ["open"]


def test_a_mail_that_is_deleted_while_others_go_out(rows: Rows) -> None:
    """An application that deletes a mail takes its claim with it: the others go out, and nothing fails."""
    mails = [rows.mail(rows.session(), late=30 - number) for number in range(3)]

    def delete_one() -> None:
        with rows.database.transaction() as tx:
            tx.execute(delete(EMAIL_LOG).where(EMAIL_LOG.c.id == mails[1]))

    mail = FakeMail(batch_size=2)
    with rows.meanwhile("a row is a message of a batch of mail that has an answer outstanding", delete_one):
        run = dispatch(rows, mail)
    assert run.counts["sent"] == len(mail.delivered) == 2
    assert recorded(rows) == ["accepted"] * 2


def test_a_claimed_message_comes_back_as_it_was() -> None:
    """What is resumed must be the same request, byte for byte; any text can stand in a message."""
    message = Message(
        sender="A <a@b.test>",
        to="c@d.test",
        subject='Ñ "quoted" \\ back\\slash',
        text="line\r\nline\u2028\x00\t🏠",
        html=None,
        headers={"X-B": "2", "X-A": "1"},
    )
    stored = message.to_json()
    assert Message.from_json(stored) == message
    assert b"\n" not in stored
    assert replace(message, headers={"X-A": "1", "X-B": "2"}).to_json() == stored
