"""The certificate's page and its download: a fresh PDF where one is due, the old one where that fails."""

from __future__ import annotations

import io
import json
import os
import time
from datetime import date, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

import pytest
from fastapi.testclient import TestClient
from pypdf import PdfReader
from sqlalchemy import text

from hooks.certificate_pdf import certificate_printer
from hooks.storage import storage
from include.clearpath.certificate_pdf import CertificateText
from include.clearpath.tables import RESULTS
from tests.console import sample
from tests.console.conftest import OWN, Console
from tests.console.sample import number
from tests.console.test_pages import words

CERTIFICATES = "/almanac/clearpath/certificates"
ORIGINAL = "certificates/evil/original.pdf"
EXPIRED = f"{CERTIFICATES}/{number('evil certificate')}/download"


@pytest.fixture
def original(console: Console) -> bytes:
    """Put the expired certificate's original PDF into the store, and return its bytes."""
    pdf = certificate_printer().render(
        CertificateText(
            number="CP-2027-EVIL",
            holder="Somebody",
            address="4 Jasper Avenue, Edmonton",
            kit_serial_number="K-evil",
            value_bq_m3=Decimal(148),
            below_detection=False,
            issued_on=date(2025, 3, 10),
            valid_until=date(2027, 3, 9),
        )
    )
    storage("clearpath_storage").put(ORIGINAL, pdf, "application/pdf")
    result = {"test_session_id": number("evil session"), "value_bq_m3": 148, "source": "lab"}
    sample.put(console.clearpath.engine, RESULTS, result)
    return pdf


def row(console: Console, who: str = "evil") -> Any:
    """Return a certificate as the database has it."""
    with console.clearpath.engine.connect() as connection:
        query = text("SELECT * FROM certificates WHERE id = :id")
        return connection.execute(query, {"id": number(f"{who} certificate")}).one()


def fetched(console: Console, url: str) -> Any:
    """Open a signed link as somebody without a login."""
    assert url.startswith(OWN)
    return console.as_user(None).get(urlsplit(url).path)


def test_certificates_are_listed_with_the_state_of_their_pdf(reader: TestClient) -> None:
    """Who looks here wants to know whether there is a PDF to give, and if not, why."""
    shown = words(reader.get(CERTIFICATES).text)
    assert "none yet: the next rendering makes it; the last try failed on 9 March 2027, 03:00" in shown
    assert "certificate: it has no result, or no dates" in shown
    assert "ready, not yet marked EXPIRED: the next download adds the mark" in shown


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, {"ADA", "EVIL", "ZOE"}),
        ({"show": "valid"}, {"ADA", "ZOE"}),
        ({"show": "expired"}, {"EVIL"}),
        ({"show": "without_pdf"}, {"ADA", "ZOE"}),
        ({"show": "failed"}, {"ZOE"}),
        ({"q": "CP-2027-ADA"}, {"ADA"}),
        ({"q": " zoe.quint "}, {"ZOE"}),
        ({"q": str(number("evil certificate"))}, {"EVIL"}),
        ({"q": str(number("ada session"))}, {"ADA"}),
        ({"q": "nobody"}, set()),
    ],
    ids=str,
)
def test_certificates_are_searched(reader: TestClient, query: dict[str, str], found: set[str]) -> None:
    """By number, person, id and state."""
    shown = words(reader.get(CERTIFICATES, params=query).text)
    assert {who for who in ("ADA", "EVIL", "ZOE") if f"CP-2027-{who}" in shown.replace("value", "")} == found


def test_many_certificates_are_paged(console: Console, viewer: TestClient) -> None:
    """Every certificate once, those without a date among them."""
    with console.clearpath.engine.begin() as connection:
        connection.execute(
            text(
                "WITH s AS (INSERT INTO test_sessions (user_id, status) "
                "SELECT :user, 'complete' FROM generate_series(1, 120) RETURNING id) "
                "INSERT INTO certificates (test_session_id, certificate_number, issued_on) "
                "SELECT id, 'BULK-' || n, CASE WHEN n > 60 THEN DATE '2020-01-01' + n / 7 END "
                "FROM (SELECT id, (row_number() OVER ())::int AS n FROM s)"
            ),
            {"user": number("zoe")},
        )
    seen: list[str] = []
    query: dict[str, str] = {"q": "zoe"}
    while query:
        page = viewer.get(CERTIFICATES, params=query)
        seen += sample.numbers_in(page.text, "BULK-")
        assert len(seen) <= 120
        query = sample.next_page(page.text)
    assert sorted(seen) == sorted(f"BULK-{n}" for n in range(1, 121))


def test_a_download_marks_an_expired_certificate(
    console: Console, viewer: TestClient, original: bytes
) -> None:
    """The specification's on-demand rendering: marked when somebody asks, and the original file stays."""
    answer = viewer.get(EXPIRED)
    assert answer.status_code == 303
    file = fetched(console, answer.headers["location"])
    assert file.status_code == 200
    assert file.headers["content-type"] == "application/pdf"
    assert file.headers["content-disposition"].startswith('attachment; filename="CP-2027-EVIL.pdf"')
    assert file.headers["cache-control"] == "private, no-store"
    assert "EXPIRED" in "".join(page.extract_text() for page in PdfReader(io.BytesIO(file.content)).pages)
    after = row(console)
    assert not after.pdf_needs_regeneration
    assert after.pdf_path == ORIGINAL
    assert storage("clearpath_storage").get(ORIGINAL) == original
    assert "ready since" in words(viewer.get(CERTIFICATES, params={"show": "expired"}).text)
    # The second time there is nothing left to do.
    assert fetched(console, viewer.get(EXPIRED).headers["location"]).content == file.content


@pytest.mark.usefixtures("original")
def test_a_rendering_that_fails_gives_the_old_pdf(
    console: Console, viewer: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    """The specification: log, and return the old PDF; a person who needs it now gets it now."""
    broken = b"%PDF-1.7 of another program, damaged"
    storage("clearpath_storage").put(ORIGINAL, broken, "application/pdf")
    file = fetched(console, viewer.get(EXPIRED).headers["location"])
    assert file.content == broken
    assert str(number("evil certificate")) in caplog.text
    assert row(console).render_error


def test_whatever_breaks_a_rendering_the_old_pdf_is_given(
    console: Console,
    viewer: TestClient,
    original: bytes,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What goes wrong may be nothing that the rendering knows of; here a table can't be read."""
    monkeypatch.setattr("console.databases.STATEMENT_TIMEOUT_SECONDS", 0.3)
    with console.clearpath.engine.begin() as held:
        held.execute(text("LOCK TABLE results IN ACCESS EXCLUSIVE MODE"))
        file = fetched(console, viewer.get(EXPIRED).headers["location"])
    assert file.content == original
    assert "no fresh PDF, the old one is given" in caplog.text


def test_a_certificate_without_a_pdf_gets_one_at_the_download(console: Console, viewer: TestClient) -> None:
    """Somebody who waits at the telephone does not wait for the next run."""
    result = {"test_session_id": number("ada session"), "value_bq_m3": 148, "source": "lab"}
    sample.put(console.clearpath.engine, RESULTS, result)
    file = fetched(
        console, viewer.get(f"{CERTIFICATES}/{number('ada certificate')}/download").headers["location"]
    )
    assert "CP-2027-ADA" in PdfReader(io.BytesIO(file.content)).pages[0].extract_text()
    assert row(console, "ada").pdf_path is not None


def test_a_certificate_that_can_not_be_printed_says_so(reader: TestClient) -> None:
    """No old PDF, and none to be made: a clear answer, not an empty file."""
    answer = reader.get(f"{CERTIFICATES}/{number('zoe certificate')}/download")
    assert answer.status_code == 404
    assert "CP-2027-ZOE has no PDF" in words(answer.text)


@pytest.mark.usefixtures("original")
def test_a_program_gets_the_link_as_json(console: Console, viewer: TestClient) -> None:
    """The application's service account wants the address, not a redirect that it would follow blindly."""
    answer = viewer.get(EXPIRED, headers={"accept": "application/json"})
    assert answer.status_code == 200
    assert answer.json()["expires_in"] == 300
    assert fetched(console, answer.json()["url"]).status_code == 200


def test_an_unknown_certificate_is_named(reader: TestClient) -> None:
    """A typing error must not pass for a certificate without a PDF."""
    answer = reader.get(f"{CERTIFICATES}/{number('nobody')}/download")
    assert answer.status_code == 404
    assert f"There is no certificate {number('nobody')}" in answer.text


@pytest.mark.usefixtures("original")
def test_a_link_ends(console: Console, viewer: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ruling 19: a link that was forwarded opens nothing next week."""
    monkeypatch.setattr("console.certificates.LINK_LIFETIME", timedelta(seconds=1))
    url = viewer.get(EXPIRED).headers["location"]
    time.sleep(1.1)
    answer = fetched(console, url)
    assert answer.status_code == 404
    assert "This link has expired." in words(answer.text)


@pytest.mark.usefixtures("original")
def test_a_link_opens_its_own_file_alone(
    console: Console, viewer: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token that was changed, or signed with another key, opens nothing and says nothing of files."""
    url = viewer.get(EXPIRED).headers["location"]
    assert fetched(console, f"{url[:-2]}xx").status_code == 404
    stored = json.loads(os.environ["AIRFLOW_CONN_CLEARPATH_STORAGE"])
    monkeypatch.setenv("AIRFLOW_CONN_CLEARPATH_STORAGE", json.dumps(stored | {"password": "other" * 8}))
    answer = fetched(console, url)
    assert answer.status_code == 404
    assert "original" not in answer.text
    assert "This link is not valid." in words(answer.text)


@pytest.mark.usefixtures("original")
def test_a_file_from_a_link_can_not_act_as_a_page(console: Console, viewer: TestClient) -> None:
    """A file that is really HTML must not run on our origin."""
    file = fetched(console, viewer.get(EXPIRED).headers["location"])
    assert file.headers["content-security-policy"] == "sandbox; default-src 'none'"
    assert file.headers["x-content-type-options"] == "nosniff"
