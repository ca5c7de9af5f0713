"""Certificates as files: what is printed on one, and who prints it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Protocol


@dataclass(frozen=True, slots=True)
class CertificateText:
    """What a certificate says. `value_bq_m3` is the radon concentration in Bq/m³."""

    number: str
    holder: str
    address: str
    kit_serial_number: str | None
    value_bq_m3: Decimal
    below_detection: bool
    issued_on: date
    valid_until: date
    contractor: str | None = None


class CertificatePrinter(Protocol):
    """Makes certificate PDFs. The same input gives the same bytes."""

    def render(self, certificate: CertificateText) -> bytes:
        """Return the certificate as a PDF. Raises Permanent if it can't be printed."""
        ...

    def mark_expired(self, pdf: bytes) -> bytes:
        """Return the PDF with EXPIRED across every page, upright as the page is seen, whatever its rotation.

        Raises Refused if the bytes are not a PDF that can be opened.
        """
        ...
