"""Certificates become PDFs: the original once, and a newer one beside it when somebody asks."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Row

from include.clearpath.certificate_pdf import CertificatePrinter, CertificateText
from include.effects import Effects
from include.errors import BadInput, Permanent, Transient
from include.isolation import each_chunk
from include.odd_dates import OddDate
from include.run import Run, Transaction
from include.statements import statement
from include.storage import RecordedStorage, Storage

PACKAGE = "include.clearpath"
NAME = "certificateRendering"
SETTINGS: dict[str, str | None] = {}
QUEUES: tuple[str, ...] = ()

_TOGETHER = 20
_MARKED = ".expired.pdf"


class Outside(NamedTuple):
    """Who prints certificates, and where the files lie."""

    printer: CertificatePrinter
    storage: Storage

    def in_preview(self, run: Run, effects: Effects) -> Outside:
        return self._replace(storage=RecordedStorage(self.storage, effects, _read_ahead(run, self.storage)))


class _Rendered(NamedTuple):
    certificate_id: uuid.UUID
    original: str
    current: str
    status: str

    def __str__(self) -> str:
        return str(self.certificate_id)


def render_certificates(run: Run, outside: Outside) -> None:
    """Render the certificate that was asked for, or all that have no PDF yet."""
    wanted = run.params.get("certificate_id")
    if wanted is not None:
        with run.transaction() as tx:
            row = tx.row(statement(PACKAGE, "certificate_to_render"), id=wanted)
        if row is None:
            raise BadInput(f"certificate_id: there is no certificate {wanted}")
        _render_together(run, outside, [row])
        return
    after: uuid.UUID | None = None
    while True:
        with run.transaction() as tx:
            rows = tx.rows(statement(PACKAGE, "certificates_without_pdf"), after=after, limit=_TOGETHER)
        if not rows:
            return
        _render_together(run, outside, rows)
        after = rows[-1].id


def fresh_pdf(run: Run, outside: Outside, certificate_id: uuid.UUID) -> str | None:
    """Return the name of the file that a download gives, made anew where the certificate asks for that.

    If that fails it is logged, and the name is that of the PDF as it was; None if there never was one.
    Raises BadInput if there is no such certificate.
    """
    with run.transaction() as tx:
        row = tx.row(statement(PACKAGE, "certificate_to_render"), id=certificate_id)
    if row is None:
        raise BadInput(f"certificate_id: there is no certificate {certificate_id}")
    if row.pdf_path is not None and not row.pdf_needs_regeneration:
        return row.current_pdf_path or row.pdf_path
    try:
        made = _render_together(run, outside, [row])
    except Transient as error:
        run.row_failed(row.id, error)
        made = []
    return made[0].current if made else row.current_pdf_path or row.pdf_path


def _read_ahead(run: Run, storage: Storage) -> dict[str, bytes]:
    """Read the one file that a run for a single certificate would read."""
    if run.params.get("certificate_id") is None:
        return {}
    with run.transaction() as tx:
        row = tx.row(statement(PACKAGE, "certificate_to_render"), id=run.params["certificate_id"])
    last = None if row is None else _to_mark(row)
    if last is None:
        return {}
    try:
        return {last: storage.get(last)}
    except Permanent:
        # The run itself will come upon it, and say so.
        return {}


def _render_together(run: Run, outside: Outside, rows: Sequence[Row[Any]]) -> list[_Rendered]:
    made: list[_Rendered] = []
    failed: list[tuple[uuid.UUID, str]] = []
    for row in rows:
        run.count("processed")
        try:
            made.append(_render(outside, row))
        except Permanent as error:
            run.row_failed(row.id, error)
            failed.append((row.id, str(error)))
    each_chunk(run, made, _record_rendered)
    each_chunk(run, failed, _record_failed)
    run.count("rendered", len(made))
    return made


def _render(outside: Outside, row: Row[Any]) -> _Rendered:
    """Make and store what is missing; names come from the content, so that a repeat writes the same files."""
    last = _to_mark(row)
    if last is None:
        plain = outside.printer.render(_text(row))
        current = _store(outside, row, plain, ".pdf")
    else:
        plain = outside.storage.get(last)
        current = last
    original = row.pdf_path or current
    if row.status == "expired":
        current = _store(outside, row, outside.printer.mark_expired(plain), _MARKED)
    return _Rendered(row.id, original, current, row.status)


def _to_mark(row: Row[Any]) -> str | None:
    """Return the file of an expired certificate that is to be marked; None if a new one is to be printed."""
    if row.pdf_path is None or not row.pdf_needs_regeneration or row.status != "expired":
        return None
    # What a person last had printed anew, unless that is marked already.
    current = row.current_pdf_path or row.pdf_path
    return row.pdf_path if current.endswith(_MARKED) else current


def _store(outside: Outside, row: Row[Any], pdf: bytes, ending: str) -> str:
    name = f"certificates/{row.id}/{hashlib.sha256(pdf).hexdigest()[:16]}{ending}"
    return outside.storage.put(name, pdf, "application/pdf").name


def _text(row: Row[Any]) -> CertificateText:
    if row.value_bq_m3 is None or row.issued_on is None or row.valid_until is None:
        raise BadInput(f"certificate {row.id}: it has no result, or no dates")
    for name in ("issued_on", "valid_until"):
        if isinstance(value := getattr(row, name), OddDate):
            raise BadInput(f"certificate {row.id}: {name} {value} is no date that can be printed")
    return CertificateText(
        number=row.certificate_number or str(row.id),
        holder=row.holder or "",
        address=row.address or "",
        kit_serial_number=row.kit_serial_number,
        value_bq_m3=row.value_bq_m3,
        below_detection=row.below_detection,
        issued_on=row.issued_on,
        valid_until=row.valid_until,
        contractor=row.contractor,
    )


def _record_rendered(tx: Transaction, chunk: Sequence[_Rendered]) -> None:
    tx.execute(
        statement(PACKAGE, "record_rendered"),
        ids=[made.certificate_id for made in chunk],
        originals=[made.original for made in chunk],
        currents=[made.current for made in chunk],
        statuses=[made.status for made in chunk],
    )


def _record_failed(tx: Transaction, chunk: Sequence[tuple[uuid.UUID, str]]) -> None:
    tx.execute(
        statement(PACKAGE, "record_render_failed"),
        ids=[one for one, _ in chunk],
        errors=[why for _, why in chunk],
    )


STEPS = (render_certificates,)
