"""A certificate gets its PDF once; a newer one stands beside it when somebody asks, or when it has expired."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Mapping
from datetime import date
from typing import Any

import psycopg
import pytest
from sqlalchemy import Row

from include.clearpath import certificate_expiry, certificate_rendering
from include.clearpath.certificate_pdf import CertificateText
from include.clearpath.tables import CERTIFICATES, RESULTS, USERS
from include.errors import BadInput, Outage, Refused
from include.odd_dates import OddDate
from include.preview import preview
from include.run import Run
from tests.clearpath.rows import AS_OF, Rows
from tests.fakes.world import FakePrinter, FakeStorage

ORIGINAL = "certificates/original.pdf"


class Broken(FakePrinter):
    """A printer that refuses some holders, or is out of order."""

    def __init__(self, refuses: str = "", outage: Exception | None = None) -> None:
        self.refuses = refuses
        self.outage = outage

    def render(self, certificate: CertificateText) -> bytes:
        if self.outage:
            raise self.outage
        if self.refuses and self.refuses in certificate.holder:
            raise BadInput(f"no font shows {certificate.holder}")
        return super().render(certificate)

    def mark_expired(self, pdf: bytes) -> bytes:
        if self.outage:
            raise self.outage
        return super().mark_expired(pdf)


class Shop:
    """Where certificates are printed and kept."""

    def __init__(self, files: Mapping[str, bytes] | None = None, printer: FakePrinter | None = None) -> None:
        self.storage = FakeStorage(files=dict(files or {}))
        self.outside = certificate_rendering.Outside(printer or FakePrinter(), self.storage)

    def render(self, rows: Rows, certificate: uuid.UUID | None = None) -> Run:
        wanted = None if certificate is None else str(certificate)
        return rows.perform(certificate_rendering, self.outside, certificate_id=wanted)

    def fresh(self, rows: Rows, certificate: uuid.UUID) -> str | None:
        run = rows.run(certificate_rendering, certificate_id=str(certificate))
        return certificate_rendering.fresh_pdf(run, self.outside, certificate)

    def printed(self, name: str) -> dict[str, str]:
        """Return what a file says."""
        return json.loads(self.storage.files[name].removeprefix(b"EXPIRED "))


def row(rows: Rows, certificate: uuid.UUID) -> Row[Any]:
    """Return a certificate as it stands."""
    return rows.one(CERTIFICATES, certificate)


@pytest.mark.parametrize(
    ("values", "rendered"),
    [
        ({}, True),
        ({"pdf_path": ORIGINAL}, False),
        # Last night's expired are left to whoever downloads them.
        ({"pdf_path": ORIGINAL, "status": "expired", "pdf_needs_regeneration": True}, False),
        ({"pdf_path": ORIGINAL, "pdf_needs_regeneration": True}, False),
        # One that expired before anybody printed it waits for its first PDF like any other.
        ({"status": "expired", "pdf_needs_regeneration": True}, True),
        ({"past_at_adoption": True}, False),
    ],
    ids=str,
)
def test_without_an_id(rows: Rows, values: dict[str, Any], *, rendered: bool) -> None:
    """All that have no PDF yet, and no others."""
    certificate = rows.certificate(**values)
    before = row(rows, certificate)
    shop = Shop({ORIGINAL: b"original"})
    run = shop.render(rows)
    assert run.counts["rendered"] == int(rendered)
    if not rendered:
        assert row(rows, certificate) == before
        assert list(shop.storage.files) == [ORIGINAL]


def test_what_rendering_does(rows: Rows) -> None:
    """The file holds what the row says, and the row where the file is."""
    session = rows.session("complete", kit_serial_number="KIT-7", address="7 Rue Ñ")
    rows.insert(RESULTS, test_session_id=session, value_bq_m3=11.1, below_detection=True)
    certificate = rows.certificate(session, certificate_number="CP-7")
    shop = Shop()
    shop.render(rows)
    after = row(rows, certificate)
    assert after.pdf_path == after.current_pdf_path
    assert after.rendered_at is not None
    assert after.pdf_path.startswith(f"certificates/{certificate}/")
    assert shop.printed(after.pdf_path) == {
        "number": "CP-7", "holder": "Ana Ñ", "address": "7 Rue Ñ", "kit_serial_number": "KIT-7",
        "value_bq_m3": "11.1", "below_detection": "True", "issued_on": "2026-03-10",
        "valid_until": "2028-03-10", "contractor": "None",
    }  # fmt: skip


def test_by_id(rows: Rows) -> None:
    """One certificate that is asked for is printed anew, and the original stays."""
    certificate = rows.certificate(pdf_path=ORIGINAL, current_pdf_path=ORIGINAL)
    other = rows.certificate()
    shop = Shop({ORIGINAL: b"original"})
    run = shop.render(rows, certificate)
    after = row(rows, certificate)
    assert (after.pdf_path, shop.storage.files[ORIGINAL]) == (ORIGINAL, b"original")
    assert after.current_pdf_path != ORIGINAL
    assert shop.printed(after.current_pdf_path)["holder"] == "Ana Ñ"
    assert row(rows, other).pdf_path is None
    assert run.counts["processed"] == 1


def test_no_such_certificate(rows: Rows) -> None:
    """An id that names nothing fails the run, unretried, with the id."""
    missing = uuid.uuid4()
    with pytest.raises(BadInput, match=str(missing)):
        Shop().render(rows, missing)
    with pytest.raises(BadInput, match=str(missing)):
        Shop().fresh(rows, missing)


def test_nothing_waits(rows: Rows) -> None:
    """R1: processed 0 is a success."""
    run = Shop().render(rows)
    assert (run.state, run.counts["processed"]) == ("success", 0)


def test_twice_is_as_once(rows: Rows) -> None:
    """A second run prints nothing; the same certificate printed again is the same file."""
    certificate = rows.certificate()
    shop = Shop()
    shop.render(rows)
    once, files = row(rows, certificate), dict(shop.storage.files)
    assert shop.render(rows).counts["processed"] == 0
    assert row(rows, certificate) == once
    shop.render(rows, certificate)
    assert shop.storage.files == files


def test_more_than_are_printed_together(rows: Rows) -> None:
    """A batch size is a chunk, not a cap; one that can't be printed holds up none of the others."""
    certificates = [rows.certificate() for _ in range(45)]
    broken = certificates[::9]
    for one in broken:
        rows.change(CERTIFICATES, one, issued_on=None)
    run = Shop().render(rows)
    assert (run.counts["processed"], run.counts["rendered"], run.counts["failed"]) == (45, 40, 5)
    assert all("no dates" in row(rows, one).render_error for one in broken)
    assert all(row(rows, one).pdf_path for one in certificates if one not in broken)


def test_one_that_cant_be_printed(rows: Rows, caplog: pytest.LogCaptureFixture) -> None:
    """Its reason stands in the row and the log; mended, it is printed by the next run, and the reason goes."""
    certificate = rows.certificate()
    shop = Shop(printer=Broken("Ana"))
    with caplog.at_level(logging.WARNING, "almanac"):
        run = shop.render(rows)
    after = row(rows, certificate)
    assert (run.counts["failed"], run.counts["rendered"], run.state) == (1, 0, "success")
    assert after.render_error == "no font shows Ana Ñ"
    assert after.render_failed_at is not None
    assert str(certificate) in caplog.text
    assert rows.all(RESULTS)
    Shop().render(rows)
    after = row(rows, certificate)
    assert after.pdf_path is not None
    assert (after.render_error, after.render_failed_at) == (None, None)


@pytest.mark.parametrize("missing", ["result", "issued_on", "valid_until"])
def test_a_certificate_that_lacks_something(rows: Rows, missing: str) -> None:
    """Without a result or its dates there is nothing true to print."""
    certificate = rows.certificate(rows.session("complete")) if missing == "result" else rows.certificate()
    if missing != "result":
        rows.change(CERTIFICATES, certificate, **{missing: None})
    Shop().render(rows)
    assert "it has no result, or no dates" in row(rows, certificate).render_error


def test_an_outage_fails_the_task(rows: Rows) -> None:
    """A store that is out of reach is nobody's fault: Airflow tries again, and no certificate is blamed."""
    certificate = rows.certificate()
    with pytest.raises(Outage):
        Shop(printer=Broken(outage=Outage("storage: no answer"))).render(rows)
    assert row(rows, certificate).render_error is None
    assert Shop().render(rows).counts["rendered"] == 1


# Downloads


def expired(rows: Rows, **values: Any) -> uuid.UUID:
    """Insert a certificate with a PDF that expired last night."""
    printed: dict[str, Any] = {"pdf_path": ORIGINAL, "current_pdf_path": ORIGINAL}
    certificate = rows.certificate(valid_until=date(2027, 3, 9), **printed | values)
    rows.perform(certificate_expiry, certificate_expiry.Outside())
    return certificate


def test_a_download_of_one_that_is_valid(rows: Rows) -> None:
    """Nothing is rendered: the file is there."""
    certificate = rows.certificate(pdf_path=ORIGINAL)
    shop = Shop({ORIGINAL: b"original"})
    assert shop.fresh(rows, certificate) == ORIGINAL
    assert list(shop.storage.files) == [ORIGINAL]


def test_a_download_of_one_without_a_pdf(rows: Rows) -> None:
    """Whoever asks first gets it made."""
    certificate = rows.certificate()
    shop = Shop()
    name = shop.fresh(rows, certificate)
    assert name == row(rows, certificate).pdf_path
    assert list(shop.storage.files) == [name]


def test_a_download_of_one_that_has_expired(rows: Rows) -> None:
    """The flag makes the download mark the original, which stays; the next download finds the marked one."""
    certificate = expired(rows)
    shop = Shop({ORIGINAL: b"original"})
    name = shop.fresh(rows, certificate)
    after = row(rows, certificate)
    assert name is not None
    assert name == after.current_pdf_path
    assert (shop.storage.files[name], shop.storage.files[ORIGINAL]) == (b"EXPIRED original", b"original")
    assert (after.pdf_path, after.pdf_needs_regeneration) == (ORIGINAL, False)
    assert Shop(shop.storage.files, Broken(outage=Outage("off"))).fresh(rows, certificate) == name


def test_what_was_printed_anew_is_what_is_marked(rows: Rows) -> None:
    """A holder's name was put right before the certificate expired: the mark goes on the right one."""
    certificate = rows.certificate(valid_until=date(2027, 3, 9), pdf_path=ORIGINAL, current_pdf_path=ORIGINAL)
    shop = Shop({ORIGINAL: b"{}"})
    shop.render(rows, certificate)
    corrected = row(rows, certificate).current_pdf_path
    rows.perform(certificate_expiry, certificate_expiry.Outside())
    name = shop.fresh(rows, certificate)
    assert name is not None
    assert shop.storage.files[name] == b"EXPIRED " + shop.storage.files[corrected]
    # Flagged once more, it is not marked twice.
    rows.change(CERTIFICATES, certificate, pdf_needs_regeneration=True)
    name = shop.fresh(rows, certificate)
    assert name is not None
    assert shop.storage.files[name].count(b"EXPIRED") == 1


def test_an_application_flags_a_valid_one(rows: Rows) -> None:
    """The flag on a valid certificate asks for a new print of what the rows say now."""
    certificate = rows.certificate(pdf_path=ORIGINAL, current_pdf_path=ORIGINAL, pdf_needs_regeneration=True)
    shop = Shop({ORIGINAL: b"original"})
    name = shop.fresh(rows, certificate)
    assert name is not None
    assert name != ORIGINAL
    assert shop.printed(name)["holder"] == "Ana Ñ"
    assert not row(rows, certificate).pdf_needs_regeneration


def test_an_expired_one_is_printed_anew_by_id(rows: Rows) -> None:
    """A person asks for a new PDF of an expired certificate: new, and marked."""
    certificate = expired(rows)
    shop = Shop({ORIGINAL: b"original"})
    shop.fresh(rows, certificate)
    user = rows.all(USERS)[0].id
    rows.change(USERS, user, full_name="Renamed")
    shop.render(rows, certificate)
    current = row(rows, certificate).current_pdf_path
    assert shop.storage.files[current].startswith(b"EXPIRED ")
    assert shop.printed(current)["holder"] == "Renamed"


@pytest.mark.parametrize(
    "error",
    [Refused("no PDF that can be opened"), Outage("storage: no answer")],
    ids=lambda e: type(e).__name__,
)
def test_a_download_that_fails_gives_the_old_pdf(
    rows: Rows, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged, the old PDF without the mark is given, and the flag stays for the next download."""
    certificate = expired(rows)
    shop = Shop({ORIGINAL: b"original"}, Broken(outage=error))
    with caplog.at_level(logging.WARNING, "almanac"):
        assert shop.fresh(rows, certificate) == ORIGINAL
    assert str(error) in caplog.text
    assert row(rows, certificate).pdf_needs_regeneration
    assert Shop({ORIGINAL: b"original"}).fresh(rows, certificate) != ORIGINAL


def test_a_download_of_one_that_cant_be_printed_and_never_was(rows: Rows) -> None:
    """There is nothing to give, and that is said."""
    certificate = rows.certificate(issued_on=None)
    assert Shop().fresh(rows, certificate) is None


def test_one_that_expires_while_it_is_printed(rows: Rows) -> None:
    """The plain file that was being made is recorded, and the flag asks for the marked one."""
    certificate = rows.certificate(valid_until=date(2027, 3, 9))
    shop = Shop()

    def expire(event: str) -> None:
        if event == "file before":
            shop.storage.tick = lambda _: None
            rows.perform(certificate_expiry, certificate_expiry.Outside())

    shop.storage.tick = expire
    shop.render(rows)
    after = row(rows, certificate)
    assert (after.status, after.pdf_needs_regeneration) == ("expired", True)
    name = shop.fresh(rows, certificate)
    assert name is not None
    assert shop.storage.files[name].startswith(b"EXPIRED ")


def test_the_original_is_written_once(rows: Rows) -> None:
    """Two runs that print the first PDF at once: the first to record it is the original for ever."""
    certificate = rows.certificate()
    shop = Shop()

    def rival(event: str) -> None:
        if event == "file after":
            shop.storage.tick = lambda _: None
            rows.change(CERTIFICATES, certificate, pdf_path=ORIGINAL)

    shop.storage.tick = rival
    shop.render(rows)
    assert row(rows, certificate).pdf_path == ORIGINAL


def test_saving_a_result_starts_the_rendering(rows: Rows) -> None:
    """An insert notifies at its commit, which is what the DAG's trigger listens for."""
    dsn = rows.database.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(dsn, autocommit=True) as listener:
        listener.execute("LISTEN clearpath_certificates")
        rows.certificate()
        heard = list(listener.notifies(timeout=10, stop_after=1))
    assert [one.channel for one in heard] == ["clearpath_certificates"]


def test_a_preview_names_the_files(rows: Rows) -> None:
    """Ruling 9: the files that would be written, by the names that the real run then gives them."""
    certificate = rows.certificate()
    shop = Shop()

    def shown(wanted: uuid.UUID | None) -> list[str]:
        def make_run(db: Any) -> Run:
            run = rows.run(certificate_rendering, certificate_id=None if wanted is None else str(wanted))
            run.db = db
            return run

        result = preview(rows.database.engine, certificate_rendering, make_run, shop.outside)
        return [file["name"] for file in result["files"]["shown"]]

    (name,) = shown(None)
    assert shop.storage.files == {}
    shop.render(rows)
    assert row(rows, certificate).pdf_path == name
    rows.change(CERTIFICATES, certificate, status="expired", expired_at=AS_OF, pdf_needs_regeneration=True)
    (marked,) = shown(certificate)
    assert shop.fresh(rows, certificate) == marked


@pytest.mark.parametrize("column", ["issued_on", "valid_until"])
@pytest.mark.parametrize("value", ["infinity", "0044-03-15 BC", "12044-03-15"])
def test_a_date_beyond_the_calendar(rows: Rows, column: str, value: str) -> None:
    """One such certificate must not keep the others from being printed; its own says which column it is."""
    odd, usual = rows.certificate(), rows.certificate()
    rows.change(CERTIFICATES, odd, **{column: OddDate(value)})
    run = Shop().render(rows)
    assert (run.counts["rendered"], run.counts["failed"]) == (1, 1)
    assert row(rows, usual).pdf_path is not None
    assert f"{column} {value} is no date" in row(rows, odd).render_error
