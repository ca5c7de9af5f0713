"""Operators hear of a certification that ends once a month, from 60 days ahead; one that has ended is inactive."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import func, insert, select

from include.clearpath import cnrpp_expiry_alert
from include.clearpath.tables import CNRPP_ALERTS, CONTRACTORS, EMAIL_ATTEMPTS, JOBS_STATE
from include.errors import BadInput, Busy
from include.mail import Deferred
from include.odd_dates import OddDate
from include.run import EngineDatabase, Run
from tests.clearpath.rows import AS_OF, Rows, noon
from tests.fakes.world import FakeAlerts, FakeMail

OPS = "ops@clearpath.test"
MARCH = datetime(2027, 3, 1, 6, tzinfo=UTC)
"""The midnight at which March begins in Edmonton."""


def outside(mail: FakeMail | None = None, alerts: FakeAlerts | None = None) -> cnrpp_expiry_alert.Outside:
    """Return the job's collaborators."""
    return cnrpp_expiry_alert.Outside(mail or FakeMail(), alerts or FakeAlerts())


def alert(rows: Rows, mail: FakeMail, as_of: datetime = AS_OF, **changed: Any) -> Run:
    """Run the job once."""
    return rows.perform(cnrpp_expiry_alert, outside(mail), as_of, **changed)


def inactive(rows: Rows, contractor: uuid.UUID) -> bool:
    """Say whether a contractor is inactive."""
    return rows.status(CONTRACTORS, contractor) == "inactive"


@pytest.mark.parametrize(
    ("expiry", "today", "alerts", "goes_inactive"),
    [
        # 60 days ahead of 9 May is 10 March.
        ("2027-05-09", "2027-03-09", 0, False),
        ("2027-05-09", "2027-03-10", 1, False),
        ("2027-05-09", "2027-03-11", 1, False),
        # The day itself is still good; the day after it is over, and told of all the same.
        ("2027-03-10", "2027-03-09", 1, False),
        ("2027-03-10", "2027-03-10", 1, False),
        ("2027-03-10", "2027-03-11", 1, True),
        # Ends of months, the leap day, the new year.
        ("2027-04-30", "2027-03-01", 1, False),
        ("2027-04-30", "2027-02-28", 0, False),
        ("2028-04-29", "2028-02-29", 1, False),
        ("2028-04-30", "2028-02-29", 0, False),
        ("2028-02-29", "2028-02-29", 1, False),
        ("2028-02-29", "2028-03-01", 1, True),
        ("2027-03-01", "2026-12-31", 1, False),
        ("2027-03-02", "2026-12-31", 0, False),
        # Long over, and without a date.
        ("2020-01-01", "2027-03-10", 1, True),
        (None, "2027-03-10", 0, False),
    ],
)
def test_the_day(rows: Rows, expiry: str | None, today: str, alerts: int, *, goes_inactive: bool) -> None:
    """Alert at `expiry <= today + 60 days`, inactive at `expiry < today`."""
    contractor = rows.contractor(expiry)
    mail = FakeMail()
    run = alert(rows, mail, noon(today))
    assert len(mail.delivered) == run.counts["sent"] == alerts
    assert inactive(rows, contractor) is goes_inactive


@pytest.mark.parametrize(("window", "alerts"), [(0, 0), (29, 0), (30, 1), (366, 1)])
def test_another_window(rows: Rows, window: int, alerts: int) -> None:
    """The window is a param; whoever has expired is told of whatever it is."""
    rows.contractor("2027-04-09")
    mail = FakeMail()
    alert(rows, mail, window_days=window)
    assert len(mail.delivered) == alerts


@pytest.mark.parametrize("zone", ["UTC", "Europe/Madrid"])
@pytest.mark.parametrize(
    ("as_of", "goes_inactive"), [("2027-03-11T05:59:59Z", False), ("2027-03-11T06:00:00Z", True)]
)
def test_the_local_day_decides(
    database_of: Callable[..., EngineDatabase], zone: str, as_of: str, *, goes_inactive: bool
) -> None:
    """T4: who expires on 10 March is inactive from midnight in Edmonton on."""
    rows = Rows(database_of("clearpath", zone))
    contractor = rows.contractor("2027-03-10")
    alert(rows, FakeMail(), datetime.fromisoformat(as_of))
    assert inactive(rows, contractor) is goes_inactive


@pytest.mark.parametrize("expiry", ["2027-03-09", "2027-04-09"])
def test_an_inactive_contractor_is_left_alone(rows: Rows, expiry: str) -> None:
    """Only who is active is told of, and only who is active can become inactive."""
    contractor = rows.contractor(expiry, "inactive")
    before = rows.one(CONTRACTORS, contractor)
    mail = FakeMail()
    run = alert(rows, mail)
    assert (mail.delivered, run.counts["processed"]) == ([], 0)
    assert rows.one(CONTRACTORS, contractor) == before


@pytest.mark.parametrize(
    ("sent_at", "alerts"),
    [
        (None, 1),
        (MARCH - timedelta(seconds=1), 1),
        (MARCH, 0),
        (MARCH + timedelta(days=8), 0),
        (datetime(2026, 3, 10, tzinfo=UTC), 1),
    ],
)
def test_told_of_this_month_already(rows: Rows, sent_at: datetime | None, alerts: int) -> None:
    """What an application's own job told this month counts; the month begins at local midnight."""
    rows.contractor("2027-04-09", last_cnrpp_alert_sent_at=sent_at)
    mail = FakeMail()
    alert(rows, mail)
    assert len(mail.delivered) == alerts


def test_expired_and_told_of_already(rows: Rows) -> None:
    """Inactive when the day is over, alert due or not, and the log says so."""
    contractor = rows.contractor("2027-03-09", last_cnrpp_alert_sent_at=MARCH)
    mail = FakeMail()
    run = alert(rows, mail)
    assert mail.delivered == []
    assert inactive(rows, contractor)
    assert (run.counts["deactivated"], run.counts["processed"], run.counts["skipped"]) == (1, 1, 0)


def test_the_deactivation_is_logged(rows: Rows, caplog: pytest.LogCaptureFixture) -> None:
    """The specification asks for a line that names the contractor."""
    contractor = rows.contractor("2027-03-09")
    with caplog.at_level(logging.INFO, "almanac"):
        alert(rows, FakeMail())
    assert f"contractor deactivated: job=cnrpp recordId={contractor}" in caplog.messages


def test_one_alert_a_month(rows: Rows) -> None:
    """However often the job runs: the ledger has one row per contractor and local month, and it decides."""
    rows.contractor("2027-05-20")
    mail = FakeMail()
    # 21 March is the first day within the window; every night of four weeks, twice.
    for day in range(28):
        for _ in range(2):
            alert(rows, mail, noon(date(2027, 3, 15) + timedelta(days=day)))
    assert len(mail.delivered) == 2
    assert {row.alert_month for row in rows.all(CNRPP_ALERTS)} == {date(2027, 3, 1), date(2027, 4, 1)}


@pytest.mark.parametrize(
    ("as_of", "month"),
    [
        ("2027-04-01T05:59:59Z", date(2027, 3, 1)),
        ("2027-04-01T06:00:00Z", date(2027, 4, 1)),
        ("2028-03-01T05:59:59Z", date(2028, 2, 1)),
        ("2027-01-01T05:30:00Z", date(2026, 12, 1)),
    ],
)
def test_the_month_is_local(rows: Rows, as_of: str, month: date) -> None:
    """The ledger's key is the month in Edmonton of the run's as-of."""
    rows.contractor("2026-12-31")
    alert(rows, FakeMail(), datetime.fromisoformat(as_of))
    assert [row.alert_month for row in rows.all(CNRPP_ALERTS)] == [month]


def test_the_ledger_is_unique(rows: Rows) -> None:
    """R4: a constraint holds "once a month", not a look before the leap."""
    contractor = rows.contractor("2027-04-09")
    both = threading.Barrier(2)
    mail = FakeMail()
    runs = [rows.run(cnrpp_expiry_alert) for _ in range(2)]

    def settle(run: Run) -> None:
        both.wait()
        cnrpp_expiry_alert.settle_contractors(run, outside(mail))

    workers = [threading.Thread(target=settle, args=(run,)) for run in runs]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [row.contractor_id for row in rows.all(CNRPP_ALERTS)] == [contractor]


def test_the_alert_and_the_deactivation_commit_together(rows: Rows) -> None:
    """Nobody becomes inactive untold, nor is told of as inactive and stays active."""
    contractor = rows.contractor("2027-03-09")
    other = rows.contractor("2027-03-09")
    rows.refuse(CONTRACTORS, contractor)
    mail = FakeMail()
    run = alert(rows, mail)
    assert not inactive(rows, contractor)
    assert inactive(rows, other)
    assert [row.contractor_id for row in rows.all(CNRPP_ALERTS)] == [other]
    assert (run.counts["failed"], run.counts["deactivated"]) == (1, 1)


def test_who_is_told_what(rows: Rows) -> None:
    """One plain-text mail to ADMIN_ALERT_EMAIL for each contractor, with its name, number and date."""
    rows.contractor("2027-04-09", name="Ana & Co <b>Radon</b>", cnrpp_id="CRT-204")
    rows.contractor("2027-03-09", name="Vieux Père")
    mail = FakeMail()
    alert(rows, mail)
    assert {message.to for message in mail.delivered} == {OPS}
    assert {message.html for message in mail.delivered} == {None}
    by_subject = {message.subject: message.text for message in mail.delivered}
    ahead = next(text for subject, text in by_subject.items() if "Ana & Co <b>Radon</b>" in subject)
    assert "CRT-204" in ahead
    assert "9 April 2027" in ahead
    assert any("expired 1 day ago" in subject for subject in by_subject)


def test_last_sent_moves_forward_only(rows: Rows) -> None:
    """The stamp that a later rule reads is the run's as-of, and a late run never moves it back."""
    fresh = rows.contractor("2027-04-09")
    later = rows.contractor("2027-04-09", last_cnrpp_alert_sent_at=MARCH - timedelta(seconds=1))
    mail = FakeMail()
    run = rows.run(cnrpp_expiry_alert)
    cnrpp_expiry_alert.settle_contractors(run, outside(mail))
    newer = AS_OF + timedelta(days=40)
    rows.change(CONTRACTORS, later, last_cnrpp_alert_sent_at=newer)
    cnrpp_expiry_alert.claim_alerts(run, outside(mail))
    cnrpp_expiry_alert.send_alerts(run, outside(mail))
    assert len(mail.delivered) == 2
    assert rows.one(CONTRACTORS, fresh).last_cnrpp_alert_sent_at == AS_OF
    assert rows.one(CONTRACTORS, later).last_cnrpp_alert_sent_at == newer


def test_a_failed_alert_is_tried_again(rows: Rows) -> None:
    """Refused: last_cnrpp_alert_sent_at stays, and the next run sends it, once."""
    contractor = rows.contractor("2027-04-09")
    mail = FakeMail(refuse={OPS})
    run = alert(rows, mail)
    assert (run.counts["failed"], run.counts["sent"]) == (1, 0)
    assert rows.one(CONTRACTORS, contractor).last_cnrpp_alert_sent_at is None
    assert rows.all(CNRPP_ALERTS)[0].last_error == "invalid address"
    mail.refuse.clear()
    for days in (1, 2):
        alert(rows, mail, AS_OF + timedelta(days=days))
    assert len(mail.delivered) == 1
    told = rows.all(CNRPP_ALERTS)[0]
    assert (told.sent_at is not None, told.last_error) == (True, None)


@pytest.mark.parametrize("certain", [True, False])
def test_unsent_alerts_go_out_whatever_became_of_the_contractor(rows: Rows, *, certain: bool) -> None:
    """The provider was out when a contractor expired; inactive by now, its alert still reaches the operators."""
    contractor = rows.contractor("2027-03-09")
    mail, alerts = FakeMail(down=Deferred("503", certain=certain)), FakeAlerts()
    run = rows.perform(cnrpp_expiry_alert, outside(mail, alerts))
    assert inactive(rows, contractor)
    assert (run.state, run.counts["deferred"]) == ("deferred", 1)
    assert alerts.outages == {"clearpath_email": "503"}
    mail.down = None
    run = rows.perform(cnrpp_expiry_alert, outside(mail, alerts), AS_OF + timedelta(days=30))
    assert (run.state, run.counts["sent"], len(mail.delivered)) == ("success", 1, 1)
    assert alerts.outages == {}


def test_no_address(rows: Rows, caplog: pytest.LogCaptureFixture) -> None:
    """No ADMIN_ALERT_EMAIL: a warning, no mail, no crash; who has expired is inactive all the same."""
    expired, ahead = rows.contractor("2027-03-09"), rows.contractor("2027-04-09")
    mail = FakeMail()
    with caplog.at_level(logging.WARNING, "almanac"):
        run = alert(rows, mail, ADMIN_ALERT_EMAIL=None)
    assert mail.delivered == []
    assert (inactive(rows, expired), inactive(rows, ahead)) == (True, False)
    assert run.state == "success"
    assert any("ADMIN_ALERT_EMAIL is not set" in record.message for record in caplog.records)
    assert run.notes == ["ADMIN_ALERT_EMAIL is not set: 2 alerts wait"]
    # Once there is an address, they go out.
    alert(rows, mail, AS_OF + timedelta(days=1))
    assert len(mail.delivered) == 2


@pytest.mark.parametrize("name", [None, "", "  \u200b"])
def test_an_alert_that_cant_be_written_stops_no_other(rows: Rows, name: str | None) -> None:
    """A contractor without a name is a bad row: counted, said on the ledger, and tried again when mended."""
    nameless = rows.contractor("2027-04-09", name=name)
    rows.contractor("2027-04-09")
    mail = FakeMail()
    run = alert(rows, mail)
    assert (run.counts["sent"], run.counts["failed"]) == (1, 1)
    (broken,) = [row for row in rows.all(CNRPP_ALERTS) if row.contractor_id == nameless]
    assert "contractor_name is missing" in broken.last_error
    rows.change(CONTRACTORS, nameless, name="Named")
    alert(rows, mail)
    assert len(mail.delivered) == 2


def test_two_months_alerts_in_one_batch(rows: Rows) -> None:
    """An outage over the turn of a month: both months' alerts go out, and the stamp is the later one's."""
    contractor = rows.contractor("2027-04-20")
    mail = FakeMail(down=Deferred("503", certain=True), batch_size=10)
    april = noon("2027-04-02")
    for as_of in (AS_OF, april):
        alert(rows, mail, as_of)
    mail.down = None
    alert(rows, mail, april)
    assert (len(mail.delivered), mail.requests) == (2, 3)
    assert rows.one(CONTRACTORS, contractor).last_cnrpp_alert_sent_at == april


def test_an_old_run_tells_of_nothing_old(rows: Rows) -> None:
    """T3: a backfill of January after March's run sends no second alert, and says that it came too late."""
    rows.contractor("2027-03-20")
    mail = FakeMail(down=Deferred("503", certain=True))
    alert(rows, mail)
    mail.down = None
    run = alert(rows, mail, noon("2027-01-25"))
    assert [row.alert_month for row in rows.all(CNRPP_ALERTS)] == [date(2027, 3, 1)]
    assert any("older than the latest one" in note for note in run.notes)
    for day in range(20, 29):
        alert(rows, mail, noon(date(2027, 1, day)))
    assert len(mail.delivered) == 1


def test_an_old_run_beside_a_newer_one(rows: Rows) -> None:
    """T3: the newer run puts its month on the ledger between the older one's look and its change."""
    contractor = rows.contractor("2027-03-20")
    march = {"contractor_id": contractor, "alert_month": date(2027, 3, 1), "run_as_of": AS_OF}
    mail = FakeMail()
    with rows.meanwhile("a row is an active contractor", lambda: rows.insert(CNRPP_ALERTS, **march)):
        run = rows.run(cnrpp_expiry_alert, noon("2027-01-25"))
        cnrpp_expiry_alert.settle_contractors(run, outside(mail))
    assert [row.alert_month for row in rows.all(CNRPP_ALERTS)] == [date(2027, 3, 1)]


def test_first_enabled_in_the_middle_of_a_month(rows: Rows) -> None:
    """T3: the first run tells of this month alone; running its days again tells of nothing more."""
    rows.contractor("2027-03-25")
    mail = FakeMail()
    days = [noon("2027-03-17"), noon("2027-03-18"), noon("2027-03-19")]
    for as_of in [*days, *days]:
        alert(rows, mail, as_of)
    assert len(mail.delivered) == 1


def test_the_window_crossed_while_the_scheduler_was_down(rows: Rows) -> None:
    """T6: the 60th day was missed: the next run tells of it once; expired meanwhile, it tells that alone."""
    rows.contractor("2027-05-09")
    rows.contractor("2027-03-08")
    mail = FakeMail()
    for day in ("2027-03-14", "2027-03-15"):
        alert(rows, mail, noon(day))
    assert sorted("expired" in message.subject for message in mail.delivered) == [False, True]


def test_the_providers_wait_is_heeded(rows: Rows) -> None:
    """E3: while the mail queue waits for a quota, alerts wait too, and are claimed afterwards."""
    rows.contractor("2027-04-09")
    rows.insert(
        JOBS_STATE,
        job_name="emailQueue",
        paused_until=datetime.now(UTC) + timedelta(hours=1),
        pause_reason="the provider's quota is used up",
    )
    mail, alerts = FakeMail(), FakeAlerts()
    run = rows.perform(cnrpp_expiry_alert, outside(mail, alerts))
    assert (mail.requests, run.state) == (0, "deferred")
    assert rows.all(EMAIL_ATTEMPTS) == []
    assert "clearpath_email" in alerts.outages
    rows.unpause()
    alert(rows, mail)
    assert len(mail.delivered) == 1


def test_a_quota_pauses_the_queue(rows: Rows) -> None:
    """E3: an alert that meets the quota makes the mail queue wait as well: it is one provider."""
    rows.contractor("2027-04-09")
    until = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=3)
    alert(rows, FakeMail(down=Deferred("429 quota", certain=True, retry_at=until, quota=True)))
    state = rows.state("emailQueue")
    assert state is not None
    assert (state.paused_until, "quota" in state.pause_reason) == (until, True)


def test_two_runs_at_once(rows: Rows) -> None:
    """E1: while one run sends, another does not: it is told to come again."""
    rows.contractor("2027-04-09")
    mail = FakeMail()
    with rows.database.alone(cnrpp_expiry_alert.ALONE), pytest.raises(Busy, match="another run"):
        alert(rows, mail)
    alert(rows, mail)
    assert len(mail.delivered) == 1


@pytest.mark.parametrize(
    "change",
    [{"status": "inactive"}, {"cnrpp_expiry_date": date(2029, 1, 1)}, {"cnrpp_expiry_date": None}],
    ids=str,
)
def test_the_world_moves(rows: Rows, change: dict[str, Any]) -> None:
    """A contractor who renewed or left between the look and the change is neither told of nor deactivated."""
    contractor = rows.contractor("2027-03-09")
    mail = FakeMail()
    with rows.meanwhile(
        "a row is an active contractor", lambda: rows.change(CONTRACTORS, contractor, **change)
    ):
        alert(rows, mail)
    assert (mail.delivered, rows.all(CNRPP_ALERTS)) == ([], [])
    assert inactive(rows, contractor) is (change.get("status") == "inactive")


def test_told_of_by_another_meanwhile(rows: Rows) -> None:
    """A contractor whom the application told of between the look and the change is skipped, and counted so."""
    contractor = rows.contractor("2027-04-09")
    mail = FakeMail()
    with rows.meanwhile(
        "a row is an active contractor",
        lambda: rows.change(CONTRACTORS, contractor, last_cnrpp_alert_sent_at=AS_OF),
    ):
        run = alert(rows, mail)
    assert (mail.delivered, run.counts["skipped"], run.counts["processed"]) == ([], 1, 1)


def test_an_alert_with_an_unknown_outcome_never_goes_again(rows: Rows) -> None:
    """Whether the provider has it can't be known after a day: a person decides."""
    rows.contractor("2027-04-09")
    mail = FakeMail(down=Deferred("no answer", certain=False))
    alert(rows, mail)
    with rows.database.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE email_attempts SET begun_at = begun_at - interval '25 hours'")
    mail.down = None
    for days in range(1, 4):
        alert(rows, mail, AS_OF + timedelta(days=days))
    assert mail.delivered == []
    assert rows.all(CNRPP_ALERTS)[0].outcome_unknown


def test_nothing_due(rows: Rows) -> None:
    """R1: nobody's certification ends: processed 0, and the last step runs."""
    rows.contractor("2029-01-01")
    run = alert(rows, FakeMail())
    assert (run.state, run.counts["processed"], run.counts["sent"]) == ("success", 0, 0)
    state = rows.state("cnrpp")
    assert state is not None
    assert state.last_run_at == AS_OF


def test_more_than_one_statement_changes(rows: Rows) -> None:
    """A batch size is a chunk, not a cap: 1,020 that have ended are all told of and inactive in one run."""
    with rows.database.engine.begin() as connection:
        ended = {"cnrpp_expiry_date": date(2027, 3, 9)}
        connection.execute(insert(CONTRACTORS), [{"name": f"C {n}", **ended} for n in range(1_020)])
    mail = FakeMail(batch_size=100)
    run = alert(rows, mail)
    assert (run.counts["sent"], run.counts["deactivated"], len(mail.delivered)) == (1_020, 1_020, 1_020)
    assert mail.requests == 11
    with rows.database.transaction() as tx:
        active = select(func.count()).select_from(CONTRACTORS).where(CONTRACTORS.c.status == "active")
        assert tx.value(active) == 0


@pytest.mark.parametrize("value", ["-infinity", "0044-03-15 BC"])
def test_an_expiry_date_before_the_calendar(rows: Rows, value: str) -> None:
    """One such contractor must not keep the other alerts back; its own says why, and waits to be mended."""
    rows.contractor("2027-04-01")
    odd = rows.contractor("2027-04-01")
    rows.change(CONTRACTORS, odd, cnrpp_expiry_date=OddDate(value))
    mail = FakeMail()
    run = alert(rows, mail)
    assert (run.counts["sent"], run.counts["failed"], len(mail.delivered)) == (1, 1, 1)
    (left,) = [row for row in rows.all(CNRPP_ALERTS) if row.contractor_id == odd]
    assert left.sent_at is None
    assert "expiry_date is not a date" in left.last_error
    assert inactive(rows, odd)


def test_an_address_that_is_none(rows: Rows) -> None:
    """A slip in ADMIN_ALERT_EMAIL is told by its name, and the alerts wait until it is mended."""
    rows.contractor("2027-04-09")
    mail = FakeMail()
    with pytest.raises(BadInput, match="ADMIN_ALERT_EMAIL: 'ops@'"):
        alert(rows, mail, ADMIN_ALERT_EMAIL="ops@")
    assert alert(rows, mail).counts["sent"] == 1
