"""Certificates as PDF/A files: set by Typst, marked as expired by pypdf in a program of its own.

No service and no secret stands behind it, so the connection is optional; its extra may name a `font_folder`
for scripts that the built-in fonts lack.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import unicodedata
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from pathlib import Path
from typing import Any

import include.clearpath
from hooks.connections import access
from include.clearpath.certificate_pdf import CertificateText
from include.clearpath.units import BQ_M3_PER_PCI_L, HIGHEST_BQ_M3
from include.dates_in_words import day
from include.errors import AlmanacError, BadInput, Outage, Refused

GUIDELINE_BQ_M3 = Decimal(200)
"""Health Canada's guideline for the annual average in a normally occupied area."""

LARGEST_PDF = 20 * 1024 * 1024
LONGEST_TEXT = 500_000

_HERE = Path(include.clearpath.__file__).parent
_TEMPLATE = _HERE / "templates" / "certificate.typ"
_STAMP = _HERE / "templates" / "expired_stamp.typ"
_MARK = _HERE / "expired_mark.py"
_UNREADABLE = 3
_PATIENCE = 6
# Archival, and an error where a letter would be missing from the page.
_STANDARD = "a-2u"


def certificate_printer(conn_id: str | None = None) -> TypstPrinter:
    """Return the printer, with what an Airflow connection says of it if one is named."""
    folder = access(conn_id).text("font_folder") if conn_id else None
    return TypstPrinter(font_folder=folder)


class TypstPrinter:
    """Prints with the fonts that Typst brings, so that every machine makes the same bytes.

    A letter that they lack is looked for in `font_folder`, then among the machine's fonts. Marking a file
    takes at most `seconds` (whole) of processor time.
    """

    def __init__(self, *, font_folder: str | None = None, seconds: int = 20) -> None:
        self._font_folders = [font_folder] if font_folder else []
        self._seconds = seconds

    def render(self, certificate: CertificateText) -> bytes:
        """Return the certificate as one letter page, and more only for very long texts.

        Raises BadInput for a letter that no font shows, and for texts beyond LONGEST_TEXT characters.
        """
        said = _said(certificate)
        text = json.dumps(said)
        if len(text) > LONGEST_TEXT:
            name = certificate.number[:60]
            raise BadInput(f"certificate {name}: its texts are longer than {LONGEST_TEXT:,} characters")
        try:
            return self._set(_TEMPLATE, certificate.issued_on, certificate=text)
        except RuntimeError as error:
            if "could not be displayed" not in str(error):
                raise BadInput(f"certificate {certificate.number[:60]}: {_first_line(error)}") from None
        try:
            return self._set(_TEMPLATE, certificate.issued_on, system_fonts=True, certificate=text)
        except RuntimeError as error:
            letter = re.search(r'the text `"(.{1,20}?)"`', str(error))
            what = f"no font here shows {letter[1]!r}" if letter else _first_line(error)
            raise BadInput(f"certificate {certificate.number[:60]}: {what}") from None

    def mark_expired(self, pdf: bytes) -> bytes:
        """Return the marked file, as `include.clearpath.certificate_pdf.CertificatePrinter` promises."""
        if b"%PDF-" not in pdf[:1024]:
            begins = pdf[:40].decode("utf-8", "replace")
            raise Refused(f"certificate PDF: it is no PDF: it begins with {begins!r}")
        if len(pdf) > LARGEST_PDF:
            raise Refused(f"certificate PDF: {len(pdf):,} bytes are more than {LARGEST_PDF:,}")
        stamp = _stamp()
        # -P: the program's own folder must not stand in for the standard library.
        command = [sys.executable, "-P", str(_MARK), str(self._seconds)]
        given = b"%d\n" % len(stamp) + stamp + pdf
        try:
            done = subprocess.run(  # noqa: S603 - our own program, no shell
                command, input=given, capture_output=True, timeout=_PATIENCE * self._seconds, check=False
            )
        except subprocess.TimeoutExpired:
            # Its processor time is bound, so the machine gave it none.
            raise Outage("certificate PDF: the machine is too busy to run the marking program") from None
        except OSError as error:
            raise Outage(f"certificate PDF: the marking program did not start: {error.strerror}") from None
        if done.returncode == _UNREADABLE:
            raise Refused(f"certificate PDF: {_line(done.stderr)}")
        if done.returncode == -signal.SIGXCPU:
            raise Refused(f"certificate PDF: it was not worked through within {self._seconds} s")
        if done.returncode:
            raise Refused(f"certificate PDF: marking it ended with {done.returncode}: {_line(done.stderr)}")
        return done.stdout

    def test_connection(self) -> tuple[bool, str]:
        """Print and mark a sample, and say whether that works."""
        today = datetime.now(UTC).date()
        sample = CertificateText(
            number="SAMPLE",
            holder="Zoë Sample",
            address="1 First Street",
            kit_serial_number=None,
            value_bq_m3=Decimal(148),
            below_detection=False,
            issued_on=today,
            valid_until=today,
        )
        try:
            marked = self.mark_expired(self.render(sample))
        except AlmanacError as error:
            return False, str(error)
        return True, f"A sample certificate has {len(marked):,} bytes"

    def _set(self, template: Path, day: date, *, system_fonts: bool = False, **inputs: str) -> bytes:
        return _typeset(template, day, self._font_folders, system_fonts=system_fonts, **inputs)


def _typeset(
    template: Path, day: date, font_folders: list[str], *, system_fonts: bool = False, **inputs: str
) -> bytes:
    import typst  # noqa: PLC0415 - not at parse time

    made = typst.compile(
        str(template),
        root=str(template.parent),
        font_paths=font_folders,
        ignore_system_fonts=not system_fonts,
        sys_inputs=inputs,
        format="pdf",
        pdf_standards=_STANDARD,
        # The file's own date, in place of the clock: the same certificate gives the same bytes.
        timestamp=int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()),
    )
    if not isinstance(made, bytes):
        raise BadInput(f"{template.name}: Typst gave no single file")
    return made


@cache
def _stamp() -> bytes:
    return _typeset(_STAMP, date(2026, 1, 1), [])


def _said(certificate: CertificateText) -> dict[str, Any]:
    """Return all that the template prints, as text: nothing in it is markup."""
    value = certificate.value_bq_m3
    if not value.is_finite() or not 0 <= value <= HIGHEST_BQ_M3:
        raise BadInput(f"certificate {certificate.number[:60]}: value {value} is no concentration")
    above = value > GUIDELINE_BQ_M3
    sign = "< " if certificate.below_detection else ""
    facts = [
        ("Certificate number", certificate.number),
        ("Test kit", certificate.kit_serial_number or ""),
        ("Issued on", day(certificate.issued_on)),
        ("Valid until", day(certificate.valid_until)),
        ("Contractor", certificate.contractor or ""),
    ]
    return {
        "number": _plain(certificate.number),
        "holder": _plain(certificate.holder),
        "address": [line for text in certificate.address.splitlines() if (line := _plain(text))],
        "measured": "Radon below the test\u2019s detection limit" if sign else "Radon concentration",
        "becquerels": sign + _figure(value, 0),
        "picocuries": sign + _figure(value / BQ_M3_PER_PCI_L, 1),
        "above": above,
        "share": float(min(value / (2 * GUIDELINE_BQ_M3), Decimal(1))),
        "verdict": _verdict(value, below_detection=certificate.below_detection),
        "facts": [(name, text) for name, given in facts if (text := _plain(given))],
    }


def _verdict(value: Decimal, *, below_detection: bool) -> str:
    if below_detection and value > GUIDELINE_BQ_M3:
        return "The test could not tell whether the level is above Health Canada\u2019s guideline."
    if value > GUIDELINE_BQ_M3:
        return "This result is above Health Canada\u2019s guideline; lowering the level is advised."
    if value == GUIDELINE_BQ_M3:
        return "This result is at Health Canada\u2019s guideline."
    return "This result is below Health Canada\u2019s guideline."


def _figure(value: Decimal, least: int) -> str:
    """Return a figure with two decimals at most and `least` at least; a trace shows its first digit."""
    places = min(max(2, -value.adjusted()), 12)
    text = f"{value.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP):,f}"
    whole, _, decimals = text.partition(".")
    decimals = decimals.rstrip("0").ljust(least, "0")
    return f"{whole}.{decimals}" if decimals else whole


def _plain(text: str) -> str:
    """Return a text on one line, without the characters that have no shape of their own."""
    joiners = "\u200c\u200d"
    kept = (c if c in joiners or unicodedata.category(c)[0] not in "CZ" else " " for c in text)
    return " ".join(unicodedata.normalize("NFC", "".join(kept)).split())


def _first_line(error: BaseException) -> str:
    return _line(str(error).encode())


def _line(said: bytes) -> str:
    text = "".join(c if c.isprintable() else " " for c in said.decode("utf-8", "replace"))
    return " ".join(text.split())[:200] or "no reason given"
