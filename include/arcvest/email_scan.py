"""The mailbox that newsletters come to is scanned for ideas: one a letter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from include.arcvest import ideas
from include.arcvest.ideas import FoundIdea, ScanState
from include.arcvest.sources import Sources
from include.as_of import local_date
from include.errors import BadInput
from include.mailbox import Letter, Mailbox, MailboxAnswer
from include.queues.engine import Claim
from include.run import Run
from include.statements import statement

PACKAGE = "include.arcvest"
JOB_TYPE = "email_scan"
SECONDS = 90
"""The most that one job may take."""

SOURCE = "email"
SETTINGS: dict[str, str | None] = {}

ALL = "all"
FIRST_DAYS = 7
"""How far back a mailbox is read that has not been read before."""

MOST_READS = 3
READ_SECONDS = 25.0
_LONGEST_TITLE = 120
_NOTES = 5


def handle(run: Run, claim: Claim, sources: Sources) -> None:
    """Add the letters that came in since last time as ideas; the mailbox stays as it is."""
    wanted = senders(claim.row.payload)
    box = sources.mailbox
    if not box.is_set:
        run.note("no mailbox to scan: the connection names no host")
        return
    key = source_key(box, wanted)
    for answer in reads(run, box, position_of(run, key), claim.row.created_at):
        mine = [letter for letter in answer.letters if _is_from(letter, wanted)]
        found = [idea for letter in mine if (idea := _idea(letter)) is not None]
        ideas.save(run, found)
        # A letter that is noted as read does not come again, so what it brought is kept first.
        ideas.note_scans(run, [ScanState(key, position=answer.position)])
        run.count("letters", len(answer.letters))
        run.count("letters_skipped", len(answer.letters) - len(found) + len(answer.left_out))
        for why in answer.left_out[:_NOTES]:
            run.note(f"{box.name}: {why}")
    if answer.more:
        run.note(f"{box.name}: more letters wait; the next scan goes on")


def senders(payload: Any) -> tuple[str, ...] | None:
    """Read `sources`: None for all, else addresses and domains. Raises BadInput for anything else."""
    if payload is not None and not isinstance(payload, Mapping):
        raise BadInput(f"email_scan: payload {payload!r:.200} is no object")
    given = (payload or {}).get("sources", ALL)
    if given == ALL:
        return None
    if isinstance(given, list) and given and all(isinstance(one, str) and one.strip() for one in given):
        return tuple(sorted({one.strip().lower() for one in given}))
    raise BadInput(
        f"email_scan: sources: {given!r:.200} is neither 'all' nor a list of addresses and domains"
    )


def source_key(box: Mailbox, wanted: Sequence[str] | None) -> str:
    """Return what a scan's position is kept under: other senders have a position of their own."""
    return box.name if wanted is None else f"{box.name} {' '.join(wanted)}"


def reads(run: Run, box: Mailbox, position: str | None, made_at: datetime) -> Iterator[MailboxAnswer]:
    """Yield one read after the other, from `position` on."""
    first_day = local_date(made_at, run.zone) - timedelta(days=FIRST_DAYS)
    for _ in range(MOST_READS):
        answer = box.letters_since(position, first_day, READ_SECONDS)
        yield answer
        if not answer.more or answer.position == position:
            return
        position = answer.position


def position_of(run: Run, key: str) -> str | None:
    """Return where the last scan under `key` ended."""
    with run.transaction() as tx:
        known = tx.row(statement(PACKAGE, "scan_states"), sources=[key], made_at=None)
    return known.position if known else None


def _is_from(letter: Letter, wanted: Sequence[str] | None) -> bool:
    if wanted is None:
        return True
    domain = letter.sender.rpartition("@")[2]
    return letter.sender in wanted or any(
        domain == one.lstrip("@") or domain.endswith(f".{one.lstrip('@')}") for one in wanted
    )


def _idea(letter: Letter) -> FoundIdea | None:
    title = letter.subject or letter.text[:_LONGEST_TITLE]
    if not title:
        return None
    # A letter has no page of its own; RFC 2392 names it by its id.
    url = f"mid:{quote(letter.key, safe='@.-_+=')}"
    return FoundIdea(SOURCE, letter.sender_name, url, title, letter.text, letter.sent_at)
