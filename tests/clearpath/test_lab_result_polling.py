"""Every result of the lab once, however often and however late the lab tells of it; the rest with its reason."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import Row, insert

from hooks.lab import HttpLab, lab
from include.clearpath import lab_result_polling
from include.clearpath.lab import LabPage
from include.clearpath.lab_records import SetAside, read
from include.clearpath.tables import (
    CERTIFICATES,
    EMAIL_LOG,
    JOBS_STATE,
    LAB_SET_ASIDE,
    RESULTS,
    SEQUENCED_TYPES,
    SESSION_STATUSES,
    TEST_SESSIONS,
)
from include.errors import BadInput, Outage, Refused
from include.odd_dates import OddDate
from include.preview import preview
from include.run import EngineDatabase, Run
from stack.fakes.http_fake import Sent
from stack.fakes.lab_server import LabServer
from tests.clearpath.rows import AS_OF, Rows, noon
from tests.fakes.world import FakeAlerts, FakeLab

HOUR = timedelta(hours=1)
POISON = "\ud83d\ude80"


def record(name: str, **changed: Any) -> dict[str, Any]:
    """Return a result as the lab sends it, of the kit of that name, made an hour before the run."""
    made = changed.pop("made", AS_OF - HOUR)
    ordinary = {
        "id": f"lab-{name}",
        "kit_serial_number": name,
        "value": 148,
        "unit": "Bq/m3",
        "measured_at": "2027-03-01T12:00:00Z",
        "created_at": made.isoformat(),
    }
    return ordinary | changed


def poll(rows: Rows, *records: Any, as_of: datetime = AS_OF, **changed: Any) -> Run:
    """Poll a lab that has these records, or the lab that is given."""
    source = changed.pop("lab", None) or FakeLab(records)
    outside = lab_result_polling.Outside(source, changed.pop("alerts", None) or FakeAlerts())
    return rows.perform(lab_result_polling, outside, as_of, **changed)


def waiting(rows: Rows, kit: str = "K1", status: str = "mailed", **values: Any) -> uuid.UUID:
    """Insert a session that waits for the result of a kit."""
    return rows.session(status, kit_serial_number=kit, **values)


def watermark(rows: Rows) -> datetime | None:
    """Return the instant from which the lab is asked next."""
    state = rows.state("labPoll")
    return None if state is None else state.last_poll_timestamp


def aside(rows: Rows) -> dict[str, Row[Any]]:
    """Return the open set-aside records by key."""
    return {row.lab_record_key: row for row in rows.all(LAB_SET_ASIDE) if row.resolved_at is None}


# Whether to poll


@pytest.mark.parametrize("model", [None, "manual", "API", "api ", "csv"])
def test_another_model(rows: Rows, model: str | None, caplog: pytest.LogCaptureFixture) -> None:
    """Not `api`: the one line, success, and nothing else is done, nobody is asked."""
    waiting(rows)

    class Untouchable:
        def results_since(self, since: datetime | None, cursor: str | None = None) -> LabPage:
            raise AssertionError((since, cursor))

    with caplog.at_level(logging.INFO, "almanac"):
        run = poll(rows, lab=Untouchable(), LAB_INTEGRATION_MODEL=model)
    assert caplog.messages == [f"lab polling skipped (model: {model or 'not set'})"]
    assert (run.state, dict(run.counts)) == ("skipped", {})
    assert rows.state("labPoll") is None
    lab_result_polling.note_run(
        rows.run(lab_result_polling, LAB_INTEGRATION_MODEL=model),
        lab_result_polling.Outside(FakeLab([]), FakeAlerts()),
    )
    assert rows.state("labPoll") is None


def test_nothing_new(rows: Rows) -> None:
    """R1: an empty page is a success with processed 0; the watermark stays, and the run is noted."""
    run = poll(rows)
    assert (run.state, run.counts["processed"], run.counts["ingested"]) == ("success", 0, 0)
    state = rows.state("labPoll")
    assert state is not None
    assert (state.last_run_at, state.last_poll_timestamp) == (AS_OF, None)


# Which session


def test_what_saving_does(rows: Rows) -> None:
    """The result, the complete session, the cancelled reminders and the certificate, all at once."""
    session = waiting(rows)
    reminder = rows.mail(session, "results_prompt")
    run = poll(rows, record("K1", value="4.0", unit="pCi/L"))
    (result,) = rows.all(RESULTS)
    assert (result.test_session_id, result.value_bq_m3, result.below_detection) == (session, 148, False)
    assert (result.reported_value, result.reported_unit) == ("4.0", "pCi/L")
    assert (result.source, result.lab_record_id) == ("lab_api", "lab-K1")
    assert result.measured_at == datetime(2027, 3, 1, 12, tzinfo=UTC)
    after = rows.one(TEST_SESSIONS, session)
    assert after.status == "complete"
    assert abs(after.completed_at - datetime.now(UTC)) < timedelta(minutes=1)
    assert rows.mail_status(reminder) == "cancelled"
    assert rows.one(EMAIL_LOG, reminder).status_reason == "result saved on 2027-03-10"
    (certificate,) = rows.all(CERTIFICATES)
    assert (certificate.test_session_id, certificate.status) == (session, "valid")
    assert (certificate.issued_on, certificate.valid_until) == (date(2027, 3, 10), date(2029, 3, 10))
    assert certificate.pdf_path is None
    assert (run.counts["ingested"], run.counts["processed"], run.counts["skipped"]) == (1, 1, 0)


def test_saving_is_one_transaction(rows: Rows) -> None:
    """A session that can't be completed gets no result and no certificate, and keeps its reminders."""
    bad, good = waiting(rows), waiting(rows, "K2")
    reminder = rows.mail(bad)
    rows.refuse(TEST_SESSIONS, bad)
    run = poll(rows, record("K1"), record("K2"))
    assert [row.test_session_id for row in rows.all(RESULTS)] == [good]
    assert [row.test_session_id for row in rows.all(CERTIFICATES)] == [good]
    assert rows.mail_status(reminder) == "queued"
    assert (run.counts["failed"], run.counts["ingested"], run.counts["set_aside"]) == (1, 1, 1)
    assert aside(rows)["lab-K1"].reason_code == "not_saved"


@pytest.mark.parametrize("status", SESSION_STATUSES)
def test_only_a_session_that_waits_takes_a_result(rows: Rows, status: str) -> None:
    """`mailed` or `results_pending`: for any other the record is set aside with the status as the reason."""
    session = waiting(rows, status=status)
    poll(rows, record("K1"))
    takes = status in ("mailed", "results_pending")
    assert len(rows.all(RESULTS)) == int(takes)
    assert rows.status(TEST_SESSIONS, session) == ("complete" if takes else status)
    if not takes:
        assert aside(rows)["lab-K1"].reason == f"the session does not wait for a result: it is {status}"


@pytest.mark.parametrize(
    ("names", "outcome"),
    [
        ({"order_id": "O1", "kit_serial_number": "K1"}, "saved"),
        ({"order_id": "O1", "kit_serial_number": None}, "saved"),
        ({"order_id": None, "kit_serial_number": "K1"}, "saved"),
        ({"order_id": "", "kit_serial_number": "K1"}, "saved"),
        # A serial number that nobody knows does not spoil an order that is known, nor the other way round.
        ({"order_id": "O1", "kit_serial_number": "K9"}, "saved"),
        ({"order_id": "O9", "kit_serial_number": "K1"}, "saved"),
        ({"order_id": "O2", "kit_serial_number": "K1"}, "ambiguous"),
        ({"order_id": "twice", "kit_serial_number": None}, "ambiguous"),
        ({"order_id": "O9", "kit_serial_number": "K9"}, "unmatched"),
        ({"order_id": "o1", "kit_serial_number": None}, "unmatched"),
        ({"order_id": None, "kit_serial_number": None}, "malformed"),
        ({"order_id": 7, "kit_serial_number": "K1"}, "malformed"),
        ({"order_id": "x" * 201, "kit_serial_number": None}, "malformed"),
        ({"order_id": "O1\x00", "kit_serial_number": None}, "malformed"),
    ],
    ids=str,
)
def test_which_session(rows: Rows, names: dict[str, Any], outcome: str) -> None:
    """By order id or serial number; two sessions named, none, or nothing: set aside with that reason."""
    first = waiting(rows, clearpath_order_id="O1")
    waiting(rows, "K2", clearpath_order_id="O2")
    for kit in ("K3", "K4"):
        waiting(rows, kit, clearpath_order_id="twice")
    run = poll(rows, record("K1") | names)
    if outcome == "saved":
        assert [row.test_session_id for row in rows.all(RESULTS)] == [first]
        assert aside(rows) == {}
    else:
        assert rows.all(RESULTS) == []
        assert aside(rows)["lab-K1"].reason_code == outcome
        assert (run.counts["set_aside"], run.counts["ingested"]) == (1, 0)


def test_a_result_that_is_there_is_not_overwritten(rows: Rows, caplog: pytest.LogCaptureFixture) -> None:
    """A result entered by the user stands; the lab's is a duplicate, logged and skipped."""
    session = waiting(rows, status="results_pending")
    rows.result(session, 90)
    with caplog.at_level(logging.DEBUG, "almanac"):
        run = poll(rows, record("K1"))
    (result,) = rows.all(RESULTS)
    assert (result.value_bq_m3, result.source) == (90, "user")
    assert (run.counts["skipped"], run.counts["ingested"], aside(rows)) == (1, 0, {})
    assert "the session has a result already" in caplog.text


def test_a_result_that_comes_meanwhile(rows: Rows) -> None:
    """The user was faster, between the poll's look and its change: one result, the user's."""
    session = waiting(rows)
    with rows.meanwhile("one row with the instant from which", lambda: rows.result(session, 90)):
        poll(rows, record("K1"))
    assert [row.value_bq_m3 for row in rows.all(RESULTS)] == [90]


def test_a_session_that_ends_meanwhile(rows: Rows) -> None:
    """Expired between the poll's look and its change: the record is set aside, not saved."""
    session = waiting(rows)
    with rows.meanwhile(
        "one row with the instant from which",
        lambda: rows.change(TEST_SESSIONS, session, status="expired"),
    ):
        poll(rows, record("K1"))
    assert rows.all(RESULTS) == []
    assert aside(rows)["lab-K1"].reason_code == "not_waiting"


@pytest.mark.parametrize(
    ("mail", "after"),
    [
        *(({"email_type": name}, "cancelled") for name in SEQUENCED_TYPES),
        ({"status": "failed", "retry_count": 2}, "cancelled"),
        ({"late": -999}, "cancelled"),
        ({"status": "failed", "permanent": True}, "failed"),
        ({"status": "abandoned"}, "abandoned"),
        ({"status": "sent"}, "sent"),
        # Not a reminder: the application's own.
        ({"email_type": "your certificate is ready"}, "queued"),
    ],
    ids=str,
)
def test_its_reminders(rows: Rows, mail: dict[str, Any], after: str) -> None:
    """A saved result cancels the session's reminders, queued or still to be retried, and nothing else."""
    session = waiting(rows)
    one, other = rows.mail(session, **mail), rows.mail(waiting(rows, "K2"))
    poll(rows, record("K1"))
    assert (rows.mail_status(one), rows.mail_status(other)) == (after, "queued")


# Certificates


@pytest.mark.parametrize(
    ("as_of", "years", "issued", "until"),
    [
        ("2027-03-10T18:00:00Z", "2", date(2027, 3, 10), date(2029, 3, 10)),
        # T4: the local day, not UTC's.
        ("2027-03-10T05:59:59Z", "2", date(2027, 3, 9), date(2029, 3, 9)),
        # T5: anchored: a leap day is 28 February where there is none, and comes back where there is one.
        ("2028-02-29T18:00:00Z", "1", date(2028, 2, 29), date(2029, 2, 28)),
        ("2028-02-29T18:00:00Z", "2", date(2028, 2, 29), date(2030, 2, 28)),
        ("2028-02-29T18:00:00Z", "4", date(2028, 2, 29), date(2032, 2, 29)),
        ("2027-02-28T18:00:00Z", "1", date(2027, 2, 28), date(2028, 2, 28)),
        ("2027-12-31T18:00:00Z", "5", date(2027, 12, 31), date(2032, 12, 31)),
    ],
)
def test_a_certificates_dates(rows: Rows, as_of: str, years: str, issued: date, until: date) -> None:
    """Issued on the local day, good for the Variable's years."""
    waiting(rows)
    poll(rows, record("K1"), as_of=datetime.fromisoformat(as_of), clearpath_certificate_years=years)
    (certificate,) = rows.all(CERTIFICATES)
    assert (certificate.issued_on, certificate.valid_until) == (issued, until)


def test_a_session_has_one_certificate(rows: Rows) -> None:
    """Unique per session: one that an application made first stays the one."""
    session = waiting(rows)
    rows.certificate(session)
    before = rows.all(CERTIFICATES)
    poll(rows, record("K1"))
    assert len(rows.all(RESULTS)) == 1
    assert rows.all(CERTIFICATES) == before


@pytest.mark.parametrize("name", ["clearpath_certificate_years", "clearpath_lab_overlap_hours"])
@pytest.mark.parametrize("value", ["two", "-1", "1.5", "", "999999", "٢", "1" * 5_000])
def test_a_wrong_setting_is_no_fault_of_a_record(rows: Rows, name: str, value: str) -> None:
    """A slip in a Variable fails the run before anything is asked, saved or set aside."""
    waiting(rows)
    source = FakeLab([record("K1")])
    slip: dict[str, Any] = {name: value}
    with pytest.raises(BadInput, match=name):
        poll(rows, lab=source, **slip)
    assert (rows.all(RESULTS), aside(rows)) == ([], {})


# Values


def test_values_and_units(rows: Rows) -> None:
    """S2: 148 Bq/m³ equals 4.0 pCi/L; "<0.3" is kept as a limit; NaN and no unit are set aside; the rest is saved."""
    kits = ("K1", "K2", "K3", "K4", "K5")
    sessions = {kit: waiting(rows, kit) for kit in kits}
    run = poll(
        rows,
        record("K1", value=148, unit="Bq/m³"),
        record("K2", value="4.0", unit="pCi/L"),
        record("K3", value="<0.3", unit="pCi/L"),
        record("K4", value="NaN"),
        record("K5", unit=None),
    )
    saved = {row.test_session_id: row for row in rows.all(RESULTS)}
    first, second, third = (saved[sessions[kit]] for kit in kits[:3])
    assert first.value_bq_m3 == second.value_bq_m3 == 148
    assert (third.value_bq_m3, third.below_detection) == (Decimal("11.1"), True)
    assert len(saved) == 3
    reasons = {key: (row.reason_code, row.reason) for key, row in aside(rows).items()}
    assert reasons == {
        "lab-K4": ("bad_value", "value 'NaN' is not a finite number"),
        "lab-K5": ("bad_value", "unit is missing; it must be Bq/m³ or pCi/L"),
    }
    assert (run.counts["ingested"], run.counts["set_aside"]) == (3, 2)


@pytest.mark.parametrize(
    ("changed", "code", "reason"),
    [
        ({"value": float("nan")}, "bad_value", "not a finite number"),
        ({"value": -1}, "bad_value", "is negative"),
        ({"value": "-0.5"}, "bad_value", "is negative"),
        ({"value": None}, "bad_value", "value is missing"),
        ({"value": "148,5"}, "bad_value", "comma"),
        ({"value": [148]}, "bad_value", "is not a number"),
        ({"unit": ""}, "bad_value", "unit is missing"),
        ({"unit": "mSv"}, "bad_value", "neither"),
        ({"created_at": None}, "malformed", "created_at"),
        ({"created_at": "2027-03-10"}, "malformed", "created_at"),
        ({"created_at": "2027-03-10T02:00:00"}, "malformed", "offset"),
        ({"measured_at": "yesterday"}, "malformed", "measured_at"),
        ({"created_at": "0001-01-01T00:00:00Z"}, "malformed", "created_at: 0001-01-01"),
        ({"created_at": "9999-12-31T23:59:59Z"}, "malformed", "created_at: 9999-12-31"),
        ({"measured_at": "0001-01-01T00:00:00Z"}, "malformed", "measured_at: 0001-01-01"),
        ({"kit_serial_number": {"a": 1}}, "malformed", "kit_serial_number"),
    ],
    ids=str,
)
def test_what_is_set_aside(rows: Rows, changed: dict[str, Any], code: str, reason: str) -> None:
    """A record that can't be a result becomes a row with an excerpt and its reason, and the poll goes on."""
    waiting(rows)
    other = waiting(rows, "K2")
    run = poll(rows, record("K1", **changed), record("K2"))
    row = aside(rows)["lab-K1"]
    assert row.reason_code == code
    assert reason in row.reason
    assert '"id": "lab-K1"' in row.excerpt
    assert [result.test_session_id for result in rows.all(RESULTS)] == [other]
    assert run.state == "success"


@pytest.mark.parametrize(
    "sent", ["not a record", 7, None, True, ["a"], {}, {"id": ""}, {"id": {"x": 1}}], ids=str
)
def test_what_is_no_record(rows: Rows, sent: Any) -> None:
    """R5 and the unexpected format: anything JSON knows, null included, is one row however often it is tried."""
    for _ in range(3):
        poll(rows, sent, sent)
    (row,) = rows.all(LAB_SET_ASIDE)
    assert row.reason_code == "malformed"
    assert row.lab_record_key.startswith("sha256:")
    assert json.loads(row.excerpt) == sent


def test_null_is_as_absent(rows: Rows) -> None:
    """R5: JSON null, an absent key and SQL NULL give the same result."""
    for kit in ("K1", "K2"):
        waiting(rows, kit)
    absent = record("K2")
    del absent["measured_at"]
    poll(rows, record("K1", order_id=None, measured_at=None), absent)
    found = {(row.value_bq_m3, row.measured_at) for row in rows.all(RESULTS)}
    assert found == {(148, None)}
    assert len(rows.all(RESULTS)) == 2


@pytest.mark.parametrize(
    "note", [POISON, "Ñ 測定 ☢️ 🏠", "a\\u0000b", "\u202e\u200b", '"; DROP TABLE results; --'], ids=ascii
)
def test_a_record_is_kept_whole(rows: Rows, note: str) -> None:
    """What is set aside is tried again as it came, whatever letters are in it."""
    sent = record("K1", note=note.encode("utf-16", "surrogatepass").decode("utf-16"))
    poll(rows, sent)
    waiting(rows)
    poll(rows)
    assert len(rows.all(RESULTS)) == 1
    assert aside(rows) == {}


@pytest.mark.parametrize("note", ["\x00", "\ud83d", "x\x00y"], ids=ascii)
def test_a_record_that_no_database_holds(rows: Rows, note: str) -> None:
    """It is set aside with its excerpt; itself can't be kept, and the next poll fetches it anew."""
    poll(rows, record("K1", note=note))
    row = aside(rows)["lab-K1"]
    assert (row.reason_code, row.record) == ("unmatched", None)
    waiting(rows)
    poll(rows, record("K1", note=note))
    assert len(rows.all(RESULTS)) == 1


def test_an_excerpt_is_short(rows: Rows) -> None:
    """A record of a megabyte is a row of a few hundred characters on a page."""
    poll(rows, record("K1", note="x" * 1_000_000))
    row = aside(rows)["lab-K1"]
    assert len(row.excerpt) == 500


def test_a_record_that_nests_too_deep(rows: Rows) -> None:
    """Hostile JSON must not end every poll in a recursion error."""
    deep: Any = []
    for _ in range(800):
        deep = [deep]
    waiting(rows, "K2")
    for _ in range(2):
        run = poll(rows, record("K1", note=deep), deep, record("K2"))
        assert run.state == "success"
    assert {row.reason for row in aside(rows).values()} == {"it is nested more than 50 deep"}
    assert set(aside(rows)) >= {"lab-K1"}
    assert len(rows.all(RESULTS)) == 1


def test_a_long_wrong_value_makes_no_long_reason() -> None:
    """Reasons are shown on a page and in a log."""
    entry = read(record("K1", created_at="x" * 100_000))
    assert isinstance(entry, SetAside)
    assert len(entry.reason) < 200


# Trying again


def test_an_order_that_is_entered_later(rows: Rows) -> None:
    """Every poll tries the open ones again: once the session is there, the result finds its place."""
    poll(rows, record("K1"))
    first = aside(rows)["lab-K1"]
    # A poll counts once, though it looks at what is set aside after it has set something aside itself.
    assert (first.reason_code, first.tries) == ("unmatched", 1)
    session = waiting(rows, status="active")
    poll(rows)
    second = aside(rows)["lab-K1"]
    assert (second.reason_code, second.tries) == ("not_waiting", 2)
    rows.change(TEST_SESSIONS, session, status="mailed")
    run = poll(rows)
    assert [row.test_session_id for row in rows.all(RESULTS)] == [session]
    assert aside(rows) == {}
    assert run.counts["ingested"] == 1
    assert len(rows.all(LAB_SET_ASIDE)) == 1


def test_a_record_that_the_lab_mends(rows: Rows) -> None:
    """The same record, corrected by the lab: saved, and the row is closed."""
    waiting(rows)
    poll(rows, record("K1", unit=None))
    poll(rows, record("K1"))
    assert (len(rows.all(RESULTS)), aside(rows)) == (1, {})


def test_a_record_without_an_id_is_the_same_when_tried_again(rows: Rows) -> None:
    """Its key is the hash of what the lab sent, also once Postgres has written the numbers its own way."""
    sent = record("K1", value=1e2, depth=-0.0, factor=1e22)
    del sent["id"]
    poll(rows, sent)
    (key,) = aside(rows)
    waiting(rows)
    poll(rows)
    assert [row.lab_record_key for row in rows.all(LAB_SET_ASIDE)] == [key]
    assert aside(rows) == {}
    assert len(rows.all(RESULTS)) == 1


def test_many_are_tried_again(rows: Rows) -> None:
    """Page by page: more than a thousand open records are all looked at."""
    poll(rows, lab=FakeLab([record(f"N{n}") for n in range(1_005)], page_size=500))
    waiting(rows, "N1004")
    waiting(rows, "N3")
    assert poll(rows).counts["ingested"] == 2


def test_the_same_record_twice_in_a_page(rows: Rows) -> None:
    """It is one result, and counted as one."""
    waiting(rows)
    run = poll(rows, record("K1"), record("K1"))
    assert (run.counts["ingested"], run.counts["processed"], run.counts["skipped"]) == (1, 2, 1)
    assert len(rows.all(RESULTS)) == 1


@pytest.mark.parametrize("turned", [False, True])
def test_a_broken_and_a_whole_form_of_a_record(rows: Rows, *, turned: bool) -> None:
    """The lab sends a record twice, once without its unit: the form that can be read counts, in either order."""
    waiting(rows)
    forms = [record("K1"), record("K1", unit=None)]
    poll(rows, *(reversed(forms) if turned else forms))
    assert (len(rows.all(RESULTS)), aside(rows)) == (1, {})


def test_two_records_for_one_session(rows: Rows) -> None:
    """A session has one result; the second record is a duplicate."""
    waiting(rows, clearpath_order_id="O1")
    run = poll(rows, record("K1", id="a", value=1), record("K1", id="b", value=2))
    assert len(rows.all(RESULTS)) == 1
    assert (run.counts["ingested"], run.counts["skipped"]) == (1, 1)


def test_one_bad_record_stops_no_other(rows: Rows) -> None:
    """The database refuses one session's change: its record is set aside for the next poll, the rest is saved."""
    sessions = [waiting(rows, f"K{n}") for n in range(6)]
    rows.refuse(TEST_SESSIONS, sessions[4])
    run = poll(rows, lab=FakeLab([record(f"K{n}") for n in range(6)], page_size=9))
    assert run.counts["ingested"] == 5
    assert set(aside(rows)) == {"lab-K4"}


# The watermark


@pytest.mark.parametrize(
    ("newest", "hours", "expected"),
    [
        (AS_OF - HOUR, "24", AS_OF - 25 * HOUR),
        (AS_OF - HOUR, "0", AS_OF - HOUR),
        (AS_OF - 48 * HOUR, "24", AS_OF - 72 * HOUR),
        # A lab whose clock is ahead does not carry it into the future.
        (AS_OF + 240 * HOUR, "24", AS_OF - 24 * HOUR),
    ],
)
def test_the_watermark(rows: Rows, newest: datetime, hours: str, expected: datetime) -> None:
    """The newest time in the data less the overlap, and never past the run."""
    older = record("K2", made=newest - HOUR)
    poll(rows, older, record("K1", made=newest), clearpath_lab_overlap_hours=hours)
    assert watermark(rows) == expected


def test_the_watermark_never_moves_back(rows: Rows) -> None:
    """Neither by old data nor by a run of the past, nor by `since`."""
    poll(rows, record("K1"))
    mark = watermark(rows)
    poll(rows, record("K2", made=AS_OF - 99 * HOUR))
    poll(rows, record("K3", made=AS_OF - 90 * HOUR), as_of=AS_OF - 80 * HOUR)
    poll(rows, record("K4", made=AS_OF - 99 * HOUR), since="2026-01-01T00:00:00Z")
    assert watermark(rows) == mark


def test_an_older_since_may_move_it_on(rows: Rows) -> None:
    """A poll from before the watermark has fetched all that comes after it."""
    poll(rows, record("K1", made=AS_OF - 99 * HOUR))
    poll(rows, record("K2"), since="2026-01-01T00:00:00Z")
    assert watermark(rows) == AS_OF - 25 * HOUR


@pytest.mark.parametrize("first", [True, False])
def test_a_later_since_leaves_it(rows: Rows, *, first: bool) -> None:
    """What lies between the watermark and a later `since` was not fetched, so the watermark must not pass it."""
    if not first:
        poll(rows, record("K1", made=AS_OF - 240 * HOUR))
    mark = watermark(rows)
    run = poll(rows, record("K2"), since=(AS_OF - 5 * HOUR).isoformat())
    assert watermark(rows) == mark
    assert any("the watermark stays" in note for note in run.notes)


def test_since_is_an_instant(rows: Rows) -> None:
    """A since without an offset is refused before the lab is asked."""
    with pytest.raises(BadInput, match="since"):
        poll(rows, record("K1"), since="2027-03-01")


class Asked(FakeLab):
    """A lab that remembers from when it was asked."""

    def results_since(self, since: datetime | None, cursor: str | None = None) -> LabPage:
        self.since = since
        return super().results_since(since, cursor)


@pytest.mark.parametrize(
    ("as_of", "zone"),
    [
        # T1: the nights on which clocks change; Alberta's own, and others'.
        ("2025-03-09T12:00:00Z", "UTC"),
        ("2025-11-02T13:00:00Z", "Europe/Madrid"),
        ("2027-03-14T12:00:00Z", "UTC"),
        ("2027-11-07T12:00:00Z", "Europe/Madrid"),
    ],
)
def test_the_window_of_work(database_of: Callable[..., EngineDatabase], as_of: str, zone: str) -> None:
    """T1: the window comes from the watermark: never empty and never in the future, on any day."""
    rows = Rows(database_of("clearpath", zone))
    moment = datetime.fromisoformat(as_of)
    for night in range(-1, 3):
        run_at = moment + timedelta(days=night)
        asked = Asked([record(f"N{night}", made=run_at - timedelta(minutes=1))])
        poll(rows, lab=asked, as_of=run_at)
        mark = watermark(rows)
        assert mark is not None
        assert mark < run_at
        assert asked.since is None or asked.since < run_at


# The lab's faults, through the real hook


@pytest.fixture
def server() -> Iterator[LabServer]:
    """Run a lab with two results a page."""
    with LabServer(token="lab-secret", base_path="/v1", page_size=2) as running:
        yield running


@pytest.fixture
def real_lab(server: LabServer, monkeypatch: pytest.MonkeyPatch) -> HttpLab:
    """Return the hook that the DAG uses, on that lab."""
    said = {"conn_type": "http", "host": server.url, "password": "lab-secret"}
    monkeypatch.setenv("AIRFLOW_CONN_CLEARPATH_LAB", json.dumps(said))
    return lab("clearpath_lab")


def now_record(name: str, **changed: Any) -> dict[str, Any]:
    """Return a record that was made now, by our clock."""
    return record(name, made=datetime.now(UTC), **changed)


def results(rows: Rows) -> list[str]:
    """Return the lab's ids of all results that were saved."""
    return sorted(row.lab_record_id for row in rows.all(RESULTS))


def poll_now(rows: Rows, source: HttpLab, **changed: Any) -> Run:
    """Poll through the hook, as of now."""
    return poll(rows, lab=source, as_of=datetime.now(UTC), **changed)


def test_s1_created_while_the_poll_runs(rows: Rows, server: LabServer, real_lab: HttpLab) -> None:
    """S1: a result that comes into being between two pages is fetched by this poll or the next, once."""
    for n in range(6):
        waiting(rows, f"K{n}")
    server.add(*[now_record(f"K{n}") for n in range(4)])
    server.appear_after(1, now_record("K4"))
    server.appear_after(2, record("K5", made=datetime.now(UTC) - HOUR))
    poll_now(rows, real_lab)
    poll_now(rows, real_lab)
    assert results(rows) == [f"lab-K{n}" for n in range(6)]


def test_s1_equal_times_across_a_page_break(rows: Rows, server: LabServer, real_lab: HttpLab) -> None:
    """S1: five results of one instant, two a page: each is saved, once."""
    at = datetime.now(UTC)
    for n in range(5):
        waiting(rows, f"K{n}")
    server.add(*[record(f"K{n}", made=at) for n in range(5)])
    run = poll_now(rows, real_lab)
    assert (results(rows), run.counts["ingested"]) == ([f"lab-K{n}" for n in range(5)], 5)
    # The window overlaps, so the next poll sees them again, and saves nothing.
    run = poll_now(rows, real_lab)
    assert (run.counts["processed"], run.counts["ingested"], run.counts["skipped"]) == (5, 0, 5)


def test_s1_two_hours_late(rows: Rows, server: LabServer, real_lab: HttpLab) -> None:
    """S1: a result that the lab dates two hours back arrives after the poll: the overlap finds it."""
    for n in range(2):
        waiting(rows, f"K{n}")
    server.add(now_record("K0"))
    poll_now(rows, real_lab)
    server.add(record("K1", made=datetime.now(UTC) - 2 * HOUR))
    poll_now(rows, real_lab)
    assert results(rows) == ["lab-K0", "lab-K1"]


def test_s1_a_slow_clock(rows: Rows, server: LabServer, real_lab: HttpLab) -> None:
    """S1: the lab's clock is five minutes slow: the watermark is the lab's time, so nothing falls between."""
    for n in range(3):
        waiting(rows, f"K{n}")
    server.clock = timedelta(minutes=-5)
    for n in range(3):
        fresh = record(f"K{n}")
        del fresh["created_at"]
        server.add(fresh)
        poll_now(rows, real_lab, clearpath_lab_overlap_hours="0")
    assert results(rows) == [f"lab-K{n}" for n in range(3)]
    mark = watermark(rows)
    assert mark is not None
    assert mark < datetime.now(UTC) - timedelta(minutes=4)


def test_s1_page_two_fails(rows: Rows, server: LabServer, real_lab: HttpLab) -> None:
    """S1: what came is saved, the watermark stays, and the next poll fetches all, each result once."""
    for n in range(5):
        waiting(rows, f"K{n}")
    server.add(*[now_record(f"K{n}") for n in range(5)])
    server.fail(2, Sent(status=503))
    with pytest.raises(Outage, match="HTTP 503") as failed:
        poll_now(rows, real_lab)
    assert failed.value.service == "clearpath_lab"
    assert len(results(rows)) == 2
    assert rows.state("labPoll") is None
    run = poll_now(rows, real_lab)
    assert (results(rows), run.counts["ingested"]) == ([f"lab-K{n}" for n in range(5)], 3)
    assert watermark(rows) is not None


@pytest.mark.parametrize("status", [500, 503, 401, 403, 408, 429])
def test_the_lab_is_out_of_reach(rows: Rows, server: LabServer, real_lab: HttpLab, status: int) -> None:
    """The error has the HTTP status, names the service for the ledger, and the watermark has not moved."""
    server.fail(1, Sent(status=status))
    with pytest.raises(Outage, match=f"HTTP {status}") as failed:
        poll_now(rows, real_lab)
    assert failed.value.service == "clearpath_lab"
    assert "lab-secret" not in str(failed.value)
    assert watermark(rows) is None


def test_the_lab_refuses(rows: Rows, server: LabServer, real_lab: HttpLab) -> None:
    """Any other 4xx is an answer to us: the run fails, unretried."""
    server.fail(1, Sent(status=400))
    with pytest.raises(Refused, match="HTTP 400"):
        poll_now(rows, real_lab)


def test_an_answer_that_is_no_page(rows: Rows, server: LabServer, real_lab: HttpLab) -> None:
    """HTML from a proxy is an outage with an excerpt, not an empty page."""
    server.fail(1, Sent(body=b"<html>maintenance</html>"))
    with pytest.raises(Outage, match="maintenance"):
        poll_now(rows, real_lab)


def test_the_next_success_ends_the_outage(rows: Rows) -> None:
    """One alert from first failure to first success."""
    alerts = FakeAlerts(outages={"clearpath_lab": "HTTP 503"})
    poll(rows, record("K1"), alerts=alerts)
    assert alerts.outages == {}


def test_pages_in_a_circle(rows: Rows) -> None:
    """A lab that gives page 2 after page 3 again keeps neither a poll nor a preview for ever."""

    class Circle:
        def results_since(self, since: datetime | None, cursor: str | None = None) -> LabPage:
            return LabPage((), {None: "2", "2": "3"}.get(cursor, "2"))

    with pytest.raises(Outage, match="comes again"):
        poll(rows, lab=Circle())
    outside = lab_result_polling.Outside(Circle(), FakeAlerts())
    with pytest.raises(Outage, match="comes again"):
        preview(rows.database.engine, lab_result_polling, lambda _: rows.run(lab_result_polling), outside)


def test_twice_is_as_once(rows: Rows) -> None:
    """The same poll again saves nothing, sets nothing aside anew and completes nothing again."""
    session = waiting(rows)
    poll(rows, record("K1"), record("K2"))
    once = rows.all(RESULTS), rows.one(TEST_SESSIONS, session), rows.all(CERTIFICATES)
    run = poll(rows, record("K1"), record("K2"))
    assert (run.counts["ingested"], len(rows.all(LAB_SET_ASIDE))) == (0, 1)
    assert (rows.all(RESULTS), rows.one(TEST_SESSIONS, session), rows.all(CERTIFICATES)) == once


def test_a_missed_morning_is_made_up(rows: Rows) -> None:
    """T6: the scheduler was down for four days; the next poll asks from the watermark on."""
    waiting(rows)
    poll(rows, record("K0", made=noon("2027-03-06")), as_of=noon("2027-03-06"))
    asked = Asked([record("K1", made=noon("2027-03-08"))])
    poll(rows, lab=asked)
    assert asked.since == noon("2027-03-05")
    assert len(rows.all(RESULTS)) == 1


@pytest.mark.parametrize("value", ["infinity", "0044-03-15 00:00:00+00 BC"])
def test_a_watermark_that_can_not_be(rows: Rows, value: str) -> None:
    """A slip in jobs_state is named with its row and column, rather than asked of the lab."""
    with rows.database.transaction() as tx:
        tx.execute(insert(JOBS_STATE).values(job_name="labPoll", last_poll_timestamp=OddDate(value)))
    with pytest.raises(BadInput, match=r"jobs_state labPoll: last_poll_timestamp .* is no instant"):
        poll(rows)


@pytest.mark.parametrize(
    "created", ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59Z"]
)
def test_absurd_dates_move_no_watermark(rows: Rows, created: str) -> None:
    """A page of nothing else ends the poll well, and the watermark stays where it was."""
    run = poll(rows, record("K1", created_at=created))
    assert (run.state, run.counts["set_aside"], watermark(rows)) == ("success", 1, None)


def test_a_lab_that_never_ends(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fresh cursors for ever would keep the job asking until it is killed, without a word of why."""
    monkeypatch.setattr(lab_result_polling, "MOST_PAGES", 20)

    class Endless:
        def results_since(self, since: datetime | None, cursor: str | None = None) -> LabPage:
            return LabPage((), str(int(cursor or 0) + 1))

    with pytest.raises(Outage, match="still a next page after 20") as outage:
        poll(rows, lab=Endless())
    assert outage.value.service == "clearpath_lab"
