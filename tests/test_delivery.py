"""Claims go out once: begun in a commit, sent under their key, and each answer kept as it comes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from include.clearpath import email_queue_dispatch
from include.clearpath.tables import EMAIL_ATTEMPTS, EMAIL_LOG
from include.delivery import Delivered, deliver
from include.mail import Accepted, Answer, Batch, Deferred
from include.run import EngineDatabase, Run
from tests.clearpath.rows import Rows
from tests.fakes.world import FakeAlerts, FakeMail

PACKAGE = "include.clearpath"


@pytest.fixture
def rows(clearpath: EngineDatabase) -> Rows:
    """Return what makes claims in a database of its own."""
    return Rows(clearpath)


def claimed(rows: Rows, number: int, mail: FakeMail) -> Run:
    """Claim so many mails, the oldest first, in batches of the provider's size; return the run."""
    for n in range(number):
        rows.mail(rows.session(user_id=rows.user(f"{n:03d}@example.test")), late=number - n)
    run = rows.run(email_queue_dispatch, datetime.now(UTC), batch_limit=100_000)
    email_queue_dispatch.claim_due(run, email_queue_dispatch.Outside(mail, FakeAlerts()))
    assert len(rows.all(EMAIL_ATTEMPTS)) == number
    return run


def send(run: Run, mail: Any) -> Delivered:
    """Send what is open."""
    return deliver(run, mail, PACKAGE, "open_claims")


def begun(rows: Rows) -> int:
    """Return how many messages may be out by what the database says."""
    return sum(row.begun_at is not None for row in rows.all(EMAIL_ATTEMPTS))


def test_nothing_is_open(rows: Rows) -> None:
    """A run without claims asks nobody, and says that nobody answered."""
    mail = FakeMail()
    delivered = send(claimed(rows, 0, mail), mail)
    assert (mail.requests, delivered) == (0, Delivered())


def test_in_the_order_of_the_claim(rows: Rows) -> None:
    """What waits longest goes first, in its batch and among the batches."""
    mail = FakeMail(batch_size=2)
    delivered = send(claimed(rows, 41, mail), mail)
    assert [message.to for message in mail.delivered] == [f"{n:03d}@example.test" for n in range(41)]
    assert (dict(delivered.counts), delivered.answered, delivered.outage) == ({"accepted": 41}, True, None)


def test_all_that_is_sent_has_begun(rows: Rows) -> None:
    """Ruling 3: the commit that says "it may be out" comes before the provider hears of it."""
    mail = FakeMail(batch_size=2)
    run = claimed(rows, 5, mail)
    seen: list[int] = []
    mail.tick = lambda event: seen.append(begun(rows)) if event == "mail before" else None
    send(run, mail)
    # With keys all of them together: a repeat is harmless, and one commit is cheaper than three.
    assert seen == [5, 5, 5]


def test_without_keys_one_at_a_time(rows: Rows) -> None:
    """SMTP: a process that dies leaves one message in doubt, not all of them."""
    mail = FakeMail(batch_size=1, key_lifetime=timedelta(0))
    run = claimed(rows, 4, mail)
    seen: list[int] = []
    mail.tick = lambda event: seen.append(begun(rows)) if event == "mail before" else None
    send(run, mail)
    assert seen == [1, 2, 3, 4]


def test_an_answer_is_kept_before_the_next_is_awaited(rows: Rows) -> None:
    """Killed at the second answer, the first is on record."""
    mail = FakeMail(batch_size=1)
    run = claimed(rows, 3, mail)
    answers: list[str] = []

    def die(event: str) -> None:
        answers.append(event)
        if answers.count("mail before") == 2:
            raise KeyboardInterrupt

    mail.tick = die
    with pytest.raises(KeyboardInterrupt):
        send(run, mail)
    assert sorted(row.status for row in rows.all(EMAIL_LOG)) == ["queued", "queued", "sent"]


class Backwards(FakeMail):
    """A provider whose answers come in the other order, as those of many requests in flight do."""

    def send(self, batches: Iterable[Batch]) -> Iterator[Answer]:
        yield from reversed(list(super().send(batches)))


def test_answers_in_any_order(rows: Rows) -> None:
    """An answer belongs to its batch, whenever it comes."""
    mail = Backwards(batch_size=1, refuse={"001@example.test"})
    delivered = send(claimed(rows, 3, mail), mail)
    assert dict(delivered.counts) == {"accepted": 2, "rejected": 1}
    refused = [row for row in rows.all(EMAIL_LOG) if row.status == "failed"]
    assert len(refused) == 1
    ids = {row.provider_message_id.split()[2] for row in rows.all(EMAIL_LOG) if row.status == "sent"}
    assert ids == {"000@example.test", "002@example.test"}


def test_a_quota_weighs_more_than_another_outage(rows: Rows) -> None:
    """Of several outages in one sending the quota is kept: it says how long the queue has to wait."""
    until = datetime.now(UTC) + timedelta(hours=3)
    outages = [
        Deferred("503", certain=True),
        Deferred("429 quota", certain=True, retry_at=until, quota=True),
        Deferred("timeout", certain=True),
    ]

    class Failing(FakeMail):
        def _take(self, batch: Batch) -> Any:
            return [outages[self.requests - 1]]

    mail = Failing(batch_size=1)
    delivered = send(claimed(rows, 3, mail), mail)
    assert delivered.outage == outages[1]
    assert (delivered.counts["deferred"], delivered.answered) == (3, False)


def test_a_batch_that_is_half_answered_goes_out_whole(rows: Rows) -> None:
    """The same batch gives the same request, or its key would be refused; who has an answer keeps it."""
    mail = FakeMail(batch_size=3)
    run = claimed(rows, 3, mail)

    class Halved(FakeMail):
        def _take(self, batch: Batch) -> Any:
            super()._take(batch)
            return [Accepted("first"), *[Deferred("no answer", certain=False)] * 2]

    halved = Halved(batch_size=3)
    send(run, halved)
    assert sorted(row.status for row in rows.all(EMAIL_LOG)) == ["queued", "queued", "sent"]
    mail.keys, mail.delivered = halved.keys, halved.delivered
    delivered = send(run, mail)
    assert (len(mail.delivered), mail.requests, dict(delivered.counts)) == (3, 1, {"accepted": 2})
    assert {row.status for row in rows.all(EMAIL_LOG)} == {"sent"}
    assert "first" in {row.provider_message_id for row in rows.all(EMAIL_LOG)}


DAMAGES = {
    "nothing": "message = ''",
    "cut off": "message = substr(message, 1, length(message) - 1)",
    "JSON of something else": "message = '{\"other\": 1}'",
    "its frame is gone": "frame = 'other'",
    "its frame is forgotten": "frame = NULL",
}


@pytest.mark.parametrize("begun_before", [False, True])
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=list(DAMAGES))
def test_a_stored_message_that_is_damaged_stops_its_batch_alone(
    rows: Rows, caplog: pytest.LogCaptureFixture, damage: str, *, begun_before: bool
) -> None:
    """What can't be read is not sent; the batch and the place are named, and the others go out."""
    mail = FakeMail(batch_size=2)
    run = claimed(rows, 6, mail)
    with rows.database.engine.begin() as connection:
        batch = connection.exec_driver_sql(
            "SELECT email_attempts.batch_id FROM email_attempts JOIN email_log ON email_log.id = email_id "
            "ORDER BY scheduled_at, position OFFSET 2 LIMIT 1"
        ).scalar_one()
        which = f"WHERE batch_id = '{batch}'"
        connection.exec_driver_sql(f"UPDATE email_attempts SET {damage} {which} AND position = 2")
        if begun_before:
            connection.exec_driver_sql(f"UPDATE email_attempts SET begun_at = now() {which}")
    delivered = send(run, mail)
    assert [message.to for message in mail.delivered] == [f"{n:03d}@example.test" for n in (0, 1, 4, 5)]
    # Never begun, it is surely not out, and is claimed anew; else a person decides.
    outcome = "unknown" if begun_before else "rejected"
    assert dict(delivered.counts) == {"accepted": 4, outcome: 2}
    assert f"batch {batch}, position 2: " in caplog.text
    damaged = [row for row in rows.all(EMAIL_LOG) if row.status != "sent"]
    assert [(row.status, row.batch_id, row.outcome_unknown) for row in damaged] == [
        ("failed", None, begun_before)
    ] * 2
    assert {f"batch {batch}, position 2: " in row.last_error for row in damaged} == {True}


def test_a_thousand_at_once(rows: Rows) -> None:
    """Many batches, few commits: 250 claims in batches of 100 begin in one, and end in three."""
    mail = FakeMail(batch_size=100)
    run = claimed(rows, 250, mail)
    delivered = send(run, mail)
    assert (mail.requests, delivered.counts["accepted"]) == (3, 250)
