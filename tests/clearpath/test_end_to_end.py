"""The end-to-end list of the specification's fourth chapter, through the real hooks.

Mail goes into an outbox folder or to a Resend on loopback, results come from a lab on loopback, certificates are
printed as PDF and kept in a folder.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from email import message_from_bytes
from email.policy import default
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfReader

from hooks.certificate_pdf import certificate_printer
from hooks.postgres import database
from hooks.storage import FolderStorage, storage
from include.clearpath import ZONE, certificate_rendering
from include.clearpath.email_sequence import make_sequence
from include.clearpath.tables import (
    CERTIFICATES,
    CNRPP_ALERTS,
    CONTRACTORS,
    EMAIL_LOG,
    RESULTS,
    TEST_SESSIONS,
)
from include.platform.tables import ALERT
from include.run import EngineDatabase, Run
from stack.fakes.lab_server import LabServer
from stack.fakes.resend_server import ResendServer
from tests.clearpath.processes import begin, ended, outside
from tests.clearpath.rows import Rows, noon

OPS = "ops@clearpath.test"
DAY = timedelta(days=1)
LONG_AGO = date(2026, 1, 1)

Perform = Callable[..., Run]


@pytest.fixture
def rows(own_rows: Rows) -> Rows:
    """Return rows in the database that the connections name."""
    return own_rows


@pytest.fixture
def perform(rows: Rows, connections: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Perform]:
    """Return a function that runs a job with the collaborators that its DAG would have."""

    def run(name: str, as_of: datetime | None = None, **changed: Any) -> Run:
        for variable, value in connections.items():
            monkeypatch.setenv(variable, value)
        job = importlib.import_module(f"include.clearpath.{name}")
        return rows.perform(job, outside(job), as_of or datetime.now(UTC), **changed)

    database.cache_clear()
    yield run
    for name in ("ALMANAC_DB", "CLEARPATH_DB"):
        monkeypatch.setenv(f"AIRFLOW_CONN_{name}", connections[f"AIRFLOW_CONN_{name}"])
        database(name.lower()).engine.dispose()
    database.cache_clear()


def outbox(folder: Path) -> list[Any]:
    """Return the messages in the outbox, parsed as a mail program would."""
    files = sorted((folder / "outbox").glob("*.eml"))
    return [message_from_bytes(path.read_bytes(), policy=default) for path in files]


def today() -> date:
    """Return the local day."""
    return datetime.now(ZONE).date()


def test_a_queued_row_is_dispatched(rows: Rows, perform: Perform, tmp_path: Path) -> None:
    """Test: manually insert a queued email_log row and confirm it is dispatched within 15 minutes.

    That a run comes within 15 minutes is held in test_schedules.
    """
    mail = rows.mail(rows.session(), "day_60", late=0)
    perform("email_queue_dispatch")
    (message,) = outbox(tmp_path)
    assert message["To"] == "ana@example.test"
    assert message.get_body(("html",)) is not None
    assert message.get_body(("plain",)) is not None
    row = rows.one(EMAIL_LOG, mail)
    assert (row.status, row.sent_at is not None) == ("sent", True)
    assert row.provider_message_id


def test_a_session_91_days_past_is_expired(rows: Rows, perform: Perform) -> None:
    """Test: set a session's expected_completion_date to 91+ days ago, run the job, confirm status = expired."""
    sessions = [rows.session("mailed", expected_completion_date=today() - n * DAY) for n in (91, 92, 400)]
    perform("session_expiry")
    assert {rows.status(TEST_SESSIONS, session) for session in sessions} == {"expired"}


def test_a_certificate_of_yesterday_is_expired(rows: Rows, perform: Perform) -> None:
    """Test: set a certificate's valid_until to yesterday, run the job, confirm status = expired."""
    certificate = rows.certificate(valid_until=today() - DAY)
    perform("certificate_expiry")
    assert rows.status(CERTIFICATES, certificate) == "expired"


def test_a_contractor_30_days_ahead_is_told_of(rows: Rows, perform: Perform, tmp_path: Path) -> None:
    """Test: set a contractor's cnrpp_expiry_date to 30 days from now, run the job, confirm alert email sent."""
    contractor = rows.contractor(today() + 30 * DAY, name="Radon Ñ & Fils", cnrpp_id="CRT-7")
    perform("cnrpp_expiry_alert")
    (message,) = outbox(tmp_path)
    assert message["To"] == OPS
    assert "Radon Ñ & Fils" in message["Subject"]
    assert message.get_content_type() == "text/plain"
    assert "CRT-7" in message.get_content()
    row = rows.one(CONTRACTORS, contractor)
    assert (row.status, row.last_cnrpp_alert_sent_at is not None) == ("active", True)


def test_no_second_alert_the_same_day(rows: Rows, perform: Perform, tmp_path: Path) -> None:
    """Test: run the job again the same day, confirm no second alert sent (idempotency)."""
    rows.contractor(today() + 30 * DAY)
    for _ in range(3):
        perform("cnrpp_expiry_alert")
    assert len(outbox(tmp_path)) == 1


def test_results_of_the_lab_are_ingested(
    rows: Rows, perform: Perform, lab_server: LabServer, tmp_path: Path
) -> None:
    """Test: the lab poll, fully, against a lab: results saved, certificates printed, nothing twice."""
    sessions = [rows.session("mailed", kit_serial_number=f"K{n}") for n in range(5)]
    reminder = rows.mail(sessions[0], "results_prompt", late=-60)
    lab_server.add(
        *[{"id": f"r{n}", "kit_serial_number": f"K{n}", "value": 148, "unit": "Bq/m3"} for n in range(5)],
        {"id": "r9", "kit_serial_number": "K9", "value": 1, "unit": "Bq/m3"},
    )
    for _ in range(2):
        perform("lab_result_polling")
    assert {rows.status(TEST_SESSIONS, session) for session in sessions} == {"complete"}
    assert (len(rows.all(RESULTS)), rows.mail_status(reminder)) == (5, "cancelled")
    run = perform("certificate_rendering")
    assert run.counts["rendered"] == 5
    for certificate in rows.all(CERTIFICATES):
        pdf = (tmp_path / "files" / certificate.pdf_path).read_bytes()
        assert certificate.certificate_number in text_of(pdf)


def text_of(pdf: bytes) -> str:
    """Return all that a PDF says."""
    return " ".join(page.extract_text() for page in PdfReader(BytesIO(pdf)).pages)


@pytest.mark.parametrize("way", ["outbox", "resend"])
def test_email_queue_day_30(
    rows: Rows, perform: Perform, resend: Callable[..., ResendServer], tmp_path: Path, way: str
) -> None:
    """Email queue: confirm day_30 email fires correctly by setting activated_at to 30 days ago."""
    server = resend() if way == "resend" else None
    activated = datetime.now(UTC) - 30 * DAY - timedelta(minutes=2)
    session = rows.session(
        activated_at=activated, expected_completion_date=activated.astimezone(ZONE).date() + 91 * DAY
    )
    early = rows.session(
        activated_at=activated + timedelta(minutes=10), expected_completion_date=today() + 61 * DAY
    )
    with rows.database.transaction() as tx:
        assert make_sequence(tx, [session, early]) == 10
    for _ in range(2):
        perform("email_queue_dispatch")
    if server is None:
        sent = [message["Subject"] for message in outbox(tmp_path)]
    else:
        sent = [delivery.message["subject"] for delivery in server.delivered]
    assert len(sent) == 1
    found = {(row.test_session_id == session, row.email_type): row.status for row in rows.all(EMAIL_LOG)}
    assert found.pop((True, "day_30")) == "sent"
    assert len(found) == 9
    assert set(found.values()) == {"queued"}


def test_session_expiry_past_the_grace_period(rows: Rows, perform: Perform, tmp_path: Path) -> None:
    """Session expiry: confirm sessions past the 90-day grace period are expired correctly."""
    past = rows.session("results_pending", expected_completion_date=today() - 91 * DAY)
    last_day = rows.session("results_pending", expected_completion_date=today() - 90 * DAY)
    with_result = rows.session("results_pending", expected_completion_date=today() - 91 * DAY)
    rows.result(with_result)
    mail, kept = rows.mail(past, "results_prompt"), rows.mail(last_day, "results_prompt")
    perform("session_expiry")
    assert [rows.status(TEST_SESSIONS, one) for one in (past, last_day, with_result)] == [
        "expired", "results_pending", "results_pending",
    ]  # fmt: skip
    perform("email_queue_dispatch")
    assert (rows.mail_status(mail), rows.mail_status(kept)) == ("cancelled", "sent")
    assert len(outbox(tmp_path)) == 1


def test_certificate_expiry_shows_expired_on_download(rows: Rows, perform: Perform, tmp_path: Path) -> None:
    """Certificate expiry: confirm expired certificates show EXPIRED watermark on PDF download."""
    certificate = rows.certificate(issued_on=today() - 400 * DAY, valid_until=today() - DAY)
    perform("certificate_rendering")
    original = rows.one(CERTIFICATES, certificate).pdf_path
    before = (tmp_path / "files" / original).read_bytes()
    assert "EXPIRED" not in text_of(before)
    perform("certificate_expiry")
    assert perform("certificate_rendering").counts["processed"] == 0

    store = storage("clearpath_storage")
    assert isinstance(store, FolderStorage)
    shop = certificate_rendering.Outside(certificate_printer(), store)
    name = certificate_rendering.fresh_pdf(rows.run(certificate_rendering), shop, certificate)
    assert name is not None
    token = store.signed_url(name, timedelta(minutes=5), "certificate.pdf").rpartition("/")[2]
    _, given, _ = store.open_signed(token, datetime.now(UTC))
    assert "EXPIRED" in text_of(given)
    assert len(PdfReader(BytesIO(given)).pages) == 1
    assert (tmp_path / "files" / original).read_bytes() == before


def test_cnrpp_alert_at_60_days_and_again_next_month(rows: Rows, perform: Perform, tmp_path: Path) -> None:
    """C-NRPP alert: confirm alert fires at 60 days and again at start of next calendar month."""
    rows.contractor(date(2027, 4, 20))
    first = date(2027, 4, 20) - 60 * DAY
    sent_on = []
    day = first - 5 * DAY
    while day <= date(2027, 3, 3):
        before = len(outbox(tmp_path))
        perform("cnrpp_expiry_alert", noon(day))
        if len(outbox(tmp_path)) > before:
            sent_on.append(day)
        day += DAY
    assert sent_on == [date(2027, 2, 19), date(2027, 3, 1)]


# Confirm all jobs survive an API restart mid-run without corrupting data


def expiring_sessions(rows: Rows) -> Callable[[], None]:
    """Make 1,100 sessions to expire, each with a mail; return what holds at any moment."""
    user = rows.user()
    sessions = [{"user_id": user, "status": "mailed", "expected_completion_date": LONG_AGO}] * 1_100
    rows.insert_many(TEST_SESSIONS, sessions)
    mail = [
        {"user_id": user, "test_session_id": row.id, "email_type": "day_30", "scheduled_at": row.created_at}
        for row in rows.all(TEST_SESSIONS)
    ]
    rows.insert_many(EMAIL_LOG, mail)

    def whole() -> None:
        expired = {row.id for row in rows.all(TEST_SESSIONS) if row.status == "expired"}
        for row in rows.all(EMAIL_LOG):
            assert (row.status == "cancelled") is (row.test_session_id in expired)

    whole()
    return whole


def sessions_are_done(rows: Rows) -> None:
    """See that all of it is done."""
    assert {row.status for row in rows.all(TEST_SESSIONS)} == {"expired"}
    assert {row.status for row in rows.all(EMAIL_LOG)} == {"cancelled"}


def expiring_certificates(rows: Rows) -> Callable[[], None]:
    """Make 1,100 certificates to expire; return what holds at any moment."""
    user = rows.user()
    rows.insert_many(TEST_SESSIONS, [{"user_id": user, "status": "complete"}] * 1_100)
    ended_ones = [{"test_session_id": row.id, "valid_until": LONG_AGO} for row in rows.all(TEST_SESSIONS)]
    rows.insert_many(CERTIFICATES, ended_ones)

    def whole() -> None:
        for row in rows.all(CERTIFICATES):
            assert (row.status == "expired") == row.pdf_needs_regeneration == (row.expired_at is not None)

    return whole


def certificates_are_done(rows: Rows) -> None:
    """See that all of it is done."""
    assert {row.status for row in rows.all(CERTIFICATES)} == {"expired"}


def expiring_contractors(rows: Rows) -> Callable[[], None]:
    """Make five contractors who have expired; return what holds at any moment."""
    for _ in range(5):
        rows.contractor(LONG_AGO)

    def whole() -> None:
        told = {row.contractor_id for row in rows.all(CNRPP_ALERTS)}
        for row in rows.all(CONTRACTORS):
            assert (row.status == "inactive") is (row.id in told)

    return whole


def contractors_are_done(rows: Rows) -> None:
    """See that all of it is done."""
    assert {row.status for row in rows.all(CONTRACTORS)} == {"inactive"}
    assert all(row.sent_at for row in rows.all(CNRPP_ALERTS))


def queued_mail(rows: Rows) -> Callable[[], None]:
    """Queue five mails, and one of a session that has ended."""
    for n in range(5):
        rows.mail(rows.session(user_id=rows.user(f"{n}@x.test")))
    rows.mail(rows.session("cancelled"))
    return lambda: None


def mail_is_done(rows: Rows) -> None:
    """See that all of it is done."""
    assert sorted(row.status for row in rows.all(EMAIL_LOG)) == ["cancelled", *["sent"] * 5]


def results_at_the_lab(rows: Rows) -> Callable[[], None]:
    """Make five sessions that wait; return what holds at any moment."""
    for n in range(5):
        rows.session("mailed", kit_serial_number=f"K{n}")

    def whole() -> None:
        saved = {row.test_session_id for row in rows.all(RESULTS)}
        assert {row.test_session_id for row in rows.all(CERTIFICATES)} == saved
        for row in rows.all(TEST_SESSIONS):
            assert (row.status == "complete") is (row.id in saved)

    return whole


def results_are_done(rows: Rows) -> None:
    """See that all of it is done."""
    assert len(rows.all(RESULTS)) == 5
    state = rows.state("labPoll")
    assert state is not None
    assert state.last_poll_timestamp is not None


def certificates_to_print(rows: Rows) -> Callable[[], None]:
    """Make 22 certificates without a PDF."""
    for _ in range(22):
        rows.certificate()
    return lambda: None


def prints_are_done(rows: Rows) -> None:
    """See that all of it is done."""
    assert all(row.pdf_path and row.pdf_path == row.current_pdf_path for row in rows.all(CERTIFICATES))


JOBS = {
    "session_expiry": (expiring_sessions, sessions_are_done, 3),
    "certificate_expiry": (expiring_certificates, certificates_are_done, 3),
    "cnrpp_expiry_alert": (expiring_contractors, contractors_are_done, 6),
    "email_queue_dispatch": (queued_mail, mail_is_done, 9),
    "lab_result_polling": (results_at_the_lab, results_are_done, 4),
    "certificate_rendering": (certificates_to_print, prints_are_done, 3),
}
"""For each job: what gives it work, what says that all of it is done, and a commit in its middle."""


@pytest.mark.parametrize("name", JOBS)
def test_all_jobs_survive_a_restart_mid_run(
    name: str,
    rows: Rows,
    connections: dict[str, str],
    lab_server: LabServer,
    almanac: EngineDatabase,
    tmp_path: Path,
) -> None:
    """Confirm all jobs survive an API restart mid-run without corrupting data: a real process, really killed."""
    set_up, all_done, middle = JOBS[name]
    lab_server.add(
        *[{"id": f"r{n}", "kit_serial_number": f"K{n}", "value": 148, "unit": "Bq/m3"} for n in range(5)]
    )
    whole = set_up(rows)
    as_of = datetime.now(UTC)
    for commit in (middle, 2):
        assert ended(begin(name, connections, as_of, dies_at_commit=commit)) == -9
        whole()
    assert ended(begin(name, connections, as_of)) == 0
    whole()
    all_done(rows)
    messages = [(message["To"], message["Subject"]) for message in outbox(tmp_path)]
    assert (
        len(messages)
        == len(set(messages))
        == {"cnrpp_expiry_alert": 5, "email_queue_dispatch": 5}.get(name, 0)
    )
    with almanac.transaction() as tx:
        assert tx.rows(ALERT.select()) == []
