"""Results come from the lab: every one once, however often and however late the lab tells of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from dateutil.relativedelta import relativedelta

from include.alerts import Alerts, RecordedAlerts
from include.as_of import instant
from include.clearpath.jobs_state import record_run
from include.clearpath.lab import Lab, LabPage
from include.clearpath.lab_records import LabRecord, SetAside, created_at, read
from include.clearpath.tables import SEQUENCED_TYPES
from include.effects import Effects
from include.errors import BadInput, Outage
from include.isolation import CHUNK, each_chunk
from include.odd_dates import OddDate
from include.run import Run, Transaction
from include.statements import statement

PACKAGE = "include.clearpath"
NAME = "labPoll"
SETTINGS = {
    "LAB_INTEGRATION_MODEL": None,
    "clearpath_certificate_years": "2",
    "clearpath_lab_overlap_hours": "24",
    "ADMIN_ALERT_EMAIL": None,
}
QUEUES: tuple[str, ...] = ()
SERVICE = "clearpath_lab"
MOST_PAGES = 10_000
"""A lab that gives more pages than these in one poll gives them for ever."""

_MOST_DIGITS = 9

_SET_ASIDE = {
    "unmatched": "no session has this order id or kit serial number",
    "ambiguous": "the order id and the kit serial number name more than one session",
    "not_waiting": "the session does not wait for a result: it is {status}",
}


class PagesRead:
    """A preview's lab: the pages as they were read before its transaction opened."""

    def __init__(self, pages: Sequence[LabPage]) -> None:
        self._pages = pages

    def results_since(self, since: datetime | None, cursor: str | None = None) -> LabPage:  # noqa: ARG002
        place = 0 if cursor is None else int(cursor)
        last = place + 1 >= len(self._pages)
        return LabPage(self._pages[place].records, None if last else str(place + 1))


class Outside(NamedTuple):
    """The lab, and the operators' ledger."""

    lab: Lab
    alerts: Alerts

    def in_preview(self, run: Run, effects: Effects) -> Outside:
        alerts = RecordedAlerts(self.alerts, effects, run.settings["ADMIN_ALERT_EMAIL"])
        if not _active(run):
            return self._replace(alerts=alerts)
        return Outside(PagesRead(list(_pages(self, _since(run)))), alerts)


def check_model(run: Run, outside: Outside) -> bool:  # noqa: ARG001 - a step's form
    """Go on only where results come by the lab's API."""
    if _active(run):
        return True
    run.note(f"lab polling skipped (model: {run.settings['LAB_INTEGRATION_MODEL'] or 'not set'})")
    run.state = "skipped"
    return False


def fetch_results(run: Run, outside: Outside) -> dict[str, Any]:
    """Fetch and save page by page; hand on when that began, and the newest time that the data holds."""
    # A slip in a setting is told before anything is asked or saved.
    _overlap(run)
    _years(run)
    with run.transaction() as tx:
        began = tx.value(statement("include", "database_now"))
    newest: datetime | None = None
    for page in _pages(outside, _since(run)):
        times = [time for time in map(created_at, page.records) if time is not None]
        newest = max([*times, *([newest] if newest else [])], default=None)
        _save(run, [read(record) for record in page.records])
    outside.alerts.recovered(SERVICE)
    return {"newest": newest.isoformat() if newest else None, "began": began.isoformat()}


def retry_set_aside(run: Run, outside: Outside) -> None:  # noqa: ARG001 - a step's form
    """Try again what earlier polls set aside: an order may have been entered since."""
    after = ""
    # What this poll itself set aside was tried a moment ago.
    before = run.handed.get("began")
    while True:
        with run.transaction() as tx:
            rows = tx.rows(statement(PACKAGE, "set_aside_open"), before=before, after=after, limit=CHUNK)
        if not rows:
            return
        _save(run, [read(row.record, row.lab_record_key) for row in rows], again=True)
        after = rows[-1].lab_record_key


def move_watermark(run: Run, outside: Outside) -> None:  # noqa: ARG001 - a step's form
    """Move the watermark to the newest time in the data less the overlap; never back, never past the run."""
    newest = run.handed.get("newest")
    if newest is None:
        return
    if run.params.get("since") is not None:
        since, watermark = _since(run), _watermark(run)
        if since is not None and (watermark is None or since > watermark):
            run.note("the watermark stays where it is: what came before this run's since was not fetched")
            return
    upto = min(instant(newest, "newest"), run.as_of) - _overlap(run)
    with run.transaction() as tx:
        tx.execute(statement(PACKAGE, "move_watermark"), job=NAME, upto=upto)


def note_run(run: Run, outside: Outside) -> None:  # noqa: ARG001 - a step's form
    """Note that the job has run; where the lab is not polled, it has not."""
    if _active(run):
        record_run(run, NAME)


def _active(run: Run) -> bool:
    return run.settings["LAB_INTEGRATION_MODEL"] == "api"


def _overlap(run: Run) -> timedelta:
    return timedelta(hours=_whole(run, "clearpath_lab_overlap_hours", 0, 24 * 366))


def _years(run: Run) -> int:
    return _whole(run, "clearpath_certificate_years", 1, 100)


def _whole(run: Run, name: str, least: int, most: int) -> int:
    text = run.settings[name] or ""
    # Python reads no number of thousands of digits.
    digits = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    if not digits or not least <= int(text) <= most:
        raise BadInput(f"variable {name}: {text[:60]!r} is not a whole number from {least} to {most}")
    return int(text)


def _since(run: Run) -> datetime | None:
    given = run.params.get("since")
    return _watermark(run) if given is None else instant(given, "since")


def _watermark(run: Run) -> datetime | None:
    with run.transaction() as tx:
        found = tx.value(statement(PACKAGE, "watermark"), job=NAME)
    if isinstance(found, OddDate):
        raise BadInput(f"jobs_state {NAME}: last_poll_timestamp {found} is no instant to ask the lab from")
    return found


def _pages(outside: Outside, since: datetime | None) -> Iterator[LabPage]:
    """Yield page after page to the end. Raises Outage if the lab is out of reach or never ends."""
    cursor: str | None = None
    asked: set[str] = set()
    while True:
        try:
            page = outside.lab.results_since(since, cursor)
        except Outage as error:
            error.service = SERVICE
            raise
        yield page
        cursor = page.next_cursor
        if cursor is None:
            return
        if cursor in asked:
            raise Outage(f"lab: page {cursor[:60]!r} comes again after itself", service=SERVICE)
        asked.add(cursor)
        if len(asked) >= MOST_PAGES:
            raise Outage(f"lab: there is still a next page after {MOST_PAGES:,}", service=SERVICE)


def _save(run: Run, records: Sequence[LabRecord | SetAside], *, again: bool = False) -> None:
    """Save a page's records, chunk by chunk; what can't be saved is set aside, so that nothing is lost."""
    entries: dict[str, LabRecord | SetAside] = {}
    for record in records:
        # A record that the page holds twice is one, and one that can be read is the better form of it.
        if not isinstance(entries.get(record.key), LabRecord):
            entries[record.key] = record
    aside = {key: entry for key, entry in entries.items() if isinstance(entry, SetAside)}
    results = [entry for entry in entries.values() if isinstance(entry, LabRecord)]
    done: dict[str, str] = {}

    def change(tx: Transaction, chunk: Sequence[LabRecord]) -> None:
        for row in _save_chunk(run, tx, chunk):
            record = chunk[row.n - 1]
            # A chunk that is tried again may come out otherwise.
            aside.pop(record.key, None)
            done.pop(record.key, None)
            if row.outcome in _SET_ASIDE:
                reason = _SET_ASIDE[row.outcome].format(status=row.session_status)
                aside[record.key] = SetAside(record.key, row.outcome, reason, record.source)
            else:
                done[record.key] = row.outcome
        settled = [record.key for record in chunk if record.key in done]
        tx.execute(statement(PACKAGE, "resolve_set_aside"), keys=settled)

    bad = each_chunk(run, results, change)
    for record in bad:
        done.pop(record.key, None)
        aside[record.key] = SetAside(
            record.key, "not_saved", "the database refused it; see the log", record.source
        )
    left = list(aside.values())
    each_chunk(run, left, _set_aside)
    _count(run, len(records), done, left, again=again)


def _count(run: Run, number: int, done: Mapping[str, str], left: Sequence[SetAside], *, again: bool) -> None:
    saved = sum(outcome == "saved" for outcome in done.values())
    run.count("ingested", saved)
    if again:
        return
    run.count("processed", number)
    run.count("skipped", number - saved - len(left))
    run.count("set_aside", len(left))
    for key, outcome in done.items():
        if outcome == "duplicate":
            run.row_skipped(key, "the session has a result already")
    for entry in left:
        run.log.warning("record set aside: job=%s recordId=%s reason=%s", NAME, entry.key, entry.reason)


def _save_chunk(run: Run, tx: Transaction, chunk: Sequence[LabRecord]) -> Sequence[Any]:
    return tx.rows(
        statement(PACKAGE, "save_results"),
        lab_ids=[record.lab_id for record in chunk],
        orders=[record.order_id for record in chunk],
        serials=[record.kit_serial_number for record in chunk],
        values=[record.value_bq_m3 for record in chunk],
        below=[record.below_detection for record in chunk],
        reported_values=[record.reported_value for record in chunk],
        reported_units=[record.reported_unit for record in chunk],
        measured=[record.measured_at for record in chunk],
        source="lab_api",
        reminders=list(SEQUENCED_TYPES),
        issued_on=run.today,
        valid_until=run.today + relativedelta(years=_years(run)),
    )


def _set_aside(tx: Transaction, chunk: Sequence[SetAside]) -> None:
    tx.execute(
        statement(PACKAGE, "set_aside"),
        keys=[entry.key for entry in chunk],
        codes=[entry.reason_code for entry in chunk],
        reasons=[entry.reason for entry in chunk],
        excerpts=[entry.excerpt for entry in chunk],
        records=[entry.record for entry in chunk],
    )


STEPS = (check_model, fetch_results, retry_set_aside, move_watermark, note_run)
