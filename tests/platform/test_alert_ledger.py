"""Operators hear of every cause once: the ledger holds it, and the provider's keys stop a second mail."""

from __future__ import annotations

import logging
import threading
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Row, event, select

from include.alerts import RecordedAlerts
from include.effects import Effects
from include.mail import Deferred
from include.platform.alert_ledger import (
    About,
    AlertLedger,
    deliver_alerts,
    listening_since,
    nobody_to_tell,
    undelivered,
)
from include.platform.tables import ALERT, OUTAGE
from include.run import EngineDatabase
from tests.fakes.world import FakeMail

OPS = "ops@clearpath.test"


def alerts(almanac: EngineDatabase) -> list[Row[Any]]:
    """Return all alerts, oldest first."""
    with almanac.transaction() as tx:
        return list(tx.rows(select(ALERT).order_by(ALERT.c.created_at)))


def outages(almanac: EngineDatabase) -> list[Row[Any]]:
    """Return all outages, oldest first."""
    with almanac.transaction() as tx:
        return list(tx.rows(select(OUTAGE).order_by(OUTAGE.c.opened_at)))


def age(almanac: EngineDatabase, by: str) -> None:
    """Let claims be older, as if the time had passed."""
    with almanac.engine.begin() as connection:
        connection.exec_driver_sql(
            f"UPDATE alert SET delivery_claimed_at = delivery_claimed_at - interval '{by}'"
        )


def tell(almanac: EngineDatabase, cause: str = "task:a:1") -> bool:
    """Put an alert of a task on the ledger."""
    return AlertLedger(almanac, About("clearpath_x", "run 1", "work")).tell(cause, "task", "a failed", "body")


def test_a_cause_is_told_once(almanac: EngineDatabase) -> None:
    """Ruling 11: the second time it is known; another cause is another alert."""
    assert [tell(almanac), tell(almanac), tell(almanac, "task:a:2")] == [True, False, True]
    first = alerts(almanac)[0]
    assert (first.dag_id, first.run_id, first.task_id, first.kind) == ("clearpath_x", "run 1", "work", "task")
    assert AlertLedger(almanac).known("task:a:1")
    assert not AlertLedger(almanac).known("task:a:3")


def test_two_at_once(almanac: EngineDatabase) -> None:
    """R4: the task and the scheduler tell of one failure together: a constraint makes it one."""
    both, new = threading.Barrier(2), []

    def told() -> None:
        both.wait()
        new.append(tell(almanac))

    workers = [threading.Thread(target=told) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(new) == [False, True]
    assert len(alerts(almanac)) == 1


def test_a_subject_is_one_line(almanac: EngineDatabase, caplog: pytest.LogCaptureFixture) -> None:
    """What comes from an error's text must not become a header or a second log line."""
    with caplog.at_level(logging.ERROR, "almanac.alerts"):
        AlertLedger(almanac).tell("c", "stuck", "two\r\nBcc: x@evil.test\n" + "x" * 999, "body")
    subject = alerts(almanac)[0].subject
    assert subject.startswith("two Bcc: x@evil.test x")
    assert len(subject) == 300
    assert len(caplog.messages) == 1
    assert "\n" not in caplog.messages[0]


def test_an_outage_is_one_alert(almanac: EngineDatabase) -> None:
    """From first failure to first success, however many runs meet it; the next one is told of anew."""
    ledger = AlertLedger(almanac)
    assert not ledger.in_outage("clearpath_email")
    for _ in range(3):
        ledger.outage("clearpath_email", "no answer")
    assert ledger.in_outage("clearpath_email")
    assert not ledger.in_outage("clearpath_lab")
    assert [(row.kind, row.subject) for row in alerts(almanac)] == [
        ("outage", "clearpath_email is out of reach")
    ]
    assert "no answer" in alerts(almanac)[0].body
    ledger.recovered("clearpath_email")
    ledger.recovered("clearpath_email")
    assert not ledger.in_outage("clearpath_email")
    ledger.outage("clearpath_email", "503")
    ledger.outage("clearpath_lab", "503")
    assert len(alerts(almanac)) == 3
    assert len(outages(almanac)) == 3


def test_an_outage_and_its_alert_come_together(almanac: EngineDatabase) -> None:
    """Ruling 3: killed at any statement, there is no outage that nobody was told of."""

    def die(conn: Any, cursor: Any, sql: str, *rest: Any) -> None:
        if "INSERT INTO alert" in sql:
            raise KeyboardInterrupt

    event.listen(almanac.engine, "before_cursor_execute", die)
    with pytest.raises(KeyboardInterrupt):
        AlertLedger(almanac).outage("clearpath_email", "no answer")
    event.remove(almanac.engine, "before_cursor_execute", die)
    assert (outages(almanac), alerts(almanac)) == ([], [])
    AlertLedger(almanac).outage("clearpath_email", "no answer")
    assert (len(outages(almanac)), len(alerts(almanac))) == (1, 1)


def test_told_elsewhere(almanac: EngineDatabase) -> None:
    """A task that failed for an outage is on the ledger, and mails nothing of its own."""
    ledger = AlertLedger(almanac)
    ledger.tell("task:a:1", "task", "a failed", "body", told_elsewhere=True)
    mail = FakeMail()
    assert (deliver_alerts(almanac, mail, OPS), mail.delivered) == (0, [])
    assert alerts(almanac)[0].delivered_at is not None


def test_delivery(almanac: EngineDatabase) -> None:
    """Each goes out once, in the order of its making, under its own id as the key."""
    for n in range(3):
        tell(almanac, f"cause {n}")
    assert undelivered(almanac) == ["clearpath"]
    mail = FakeMail(batch_size=100)
    assert deliver_alerts(almanac, mail, OPS) == 3
    assert {message.to for message in mail.delivered} == {OPS}
    assert {message.subject for message in mail.delivered} == {"[Almanac] a failed"}
    assert set(mail.keys) == {str(row.id) for row in alerts(almanac)}
    assert deliver_alerts(almanac, mail, OPS) == 0
    assert undelivered(almanac) == []


@pytest.mark.parametrize("certain", [True, False])
def test_delivery_in_an_outage(almanac: EngineDatabase, *, certain: bool) -> None:
    """What the provider did not take goes out later, once."""
    tell(almanac)
    mail = FakeMail(down=Deferred("503", certain=certain))
    assert deliver_alerts(almanac, mail, OPS) == 0
    assert alerts(almanac)[0].last_error == "503"
    mail.down = None
    # One in doubt rests for two minutes, in which its first sender may still be at it.
    assert deliver_alerts(almanac, mail, OPS) == int(certain)
    age(almanac, "3 minutes")
    deliver_alerts(almanac, mail, OPS)
    assert len(mail.delivered) == 1
    assert alerts(almanac)[0].delivered_at is not None


@pytest.mark.parametrize(("lifetime", "later"), [(24, "22 hours"), (24, "24 hours"), (0, "3 minutes")])
def test_killed_while_delivering(almanac: EngineDatabase, lifetime: int, later: str) -> None:
    """The answer was lost: mailed again while the provider's key holds, and never without one."""
    tell(almanac)
    mail = FakeMail(key_lifetime=timedelta(hours=lifetime))

    def die(happening: str) -> None:
        if happening == "mail after":
            raise KeyboardInterrupt

    mail.tick = die
    with pytest.raises(KeyboardInterrupt):
        deliver_alerts(almanac, mail, OPS)
    mail.tick = lambda happening: None
    age(almanac, later)
    deliver_alerts(almanac, mail, OPS)
    assert len(mail.delivered) == 1
    assert (alerts(almanac)[0].delivered_at is not None) is (later == "22 hours")


def test_in_doubt_until_answered(almanac: EngineDatabase) -> None:
    """An outage after the lost answer does not make the claim younger than its key."""
    tell(almanac)
    mail = FakeMail(down=Deferred("no answer", certain=False))
    deliver_alerts(almanac, mail, OPS)
    age(almanac, "20 hours")
    mail.down = Deferred("connection refused", certain=True)
    deliver_alerts(almanac, mail, OPS)
    mail.down = None
    age(almanac, "4 hours")
    assert (deliver_alerts(almanac, mail, OPS), mail.delivered) == (0, [])


def test_two_deliverers(almanac: EngineDatabase) -> None:
    """Two processes that deliver at once share the alerts between them."""
    for n in range(20):
        tell(almanac, f"cause {n}")
    mail, both = FakeMail(), threading.Barrier(2)
    taken: list[int] = []

    def deliver() -> None:
        both.wait()
        taken.append(deliver_alerts(almanac, mail, OPS))

    workers = [threading.Thread(target=deliver) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert (sum(taken), len(mail.delivered)) == (20, 20)


def test_no_address(almanac: EngineDatabase, caplog: pytest.LogCaptureFixture) -> None:
    """Ruling 11: nobody to write to: it stands in the log, and is done."""
    with caplog.at_level(logging.ERROR, "almanac.alerts"):
        tell(almanac)
    nobody_to_tell(almanac)
    assert undelivered(almanac) == []
    assert alerts(almanac)[0].no_address
    assert "cause=task:a:1" in caplog.text
    mail = FakeMail()
    assert deliver_alerts(almanac, mail, OPS) == 0


def test_listening_since(almanac: EngineDatabase) -> None:
    """The first start sets it: failures before the platform came are history."""
    first = listening_since(almanac)
    assert listening_since(almanac) == first


def test_a_previews_ledger(almanac: EngineDatabase) -> None:
    """A preview shows what operators would be told, tells nobody, and asks the real ledger what is open."""
    effects = Effects()
    recorded = RecordedAlerts(AlertLedger(almanac), effects, OPS)
    recorded.tell("stuck:1", "stuck", "The queue is stuck", "body")
    recorded.outage("clearpath_email", "503")
    assert effects.message_count == 2
    assert {message["to"] for message in effects.messages} == {OPS}
    assert (alerts(almanac), outages(almanac)) == ([], [])
    AlertLedger(almanac).outage("clearpath_email", "503")
    recorded.outage("clearpath_email", "503")
    recorded.recovered("clearpath_email")
    assert (effects.message_count, effects.call_count) == (2, 1)
    assert recorded.in_outage("clearpath_email")
