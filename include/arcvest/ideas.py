"""Ideas as the scans find them: each URL once, whoever finds it and however often."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from include.isolation import each_chunk
from include.run import Run, Transaction
from include.statements import statement

PACKAGE = "include.arcvest"


class FoundIdea(NamedTuple):
    """One article or letter. `published_at` is aware; None if nobody says."""

    source: str
    source_name: str
    url: str
    title: str
    summary: str
    published_at: datetime | None


class ScanState(NamedTuple):
    """What is kept of one source after a scan; an `error` leaves what was read before as it is."""

    source: str
    etag: str | None = None
    last_modified: str | None = None
    position: str | None = None
    error: str | None = None


def save(run: Run, found: Sequence[FoundIdea]) -> None:
    """Add what is new as ideas with the status `new`; count `found` and `added`."""
    each: dict[str, FoundIdea] = {}
    for idea in found:
        each.setdefault(idea.url, idea)

    def add(tx: Transaction, chunk: Sequence[FoundIdea]) -> None:
        added = tx.execute(
            statement(PACKAGE, "save_ideas"),
            sources=[idea.source for idea in chunk],
            names=[idea.source_name for idea in chunk],
            urls=[idea.url for idea in chunk],
            titles=[idea.title for idea in chunk],
            summaries=[idea.summary for idea in chunk],
            published=[idea.published_at for idea in chunk],
        )
        run.count("added", added)

    run.count("found", len(each))
    each_chunk(run, list(each.values()), add)


def note_scans(run: Run, states: Sequence[ScanState]) -> None:
    """Keep how far sources have been read, or why they could not be."""
    ordered = sorted(states)
    with run.transaction() as tx:
        tx.execute(
            statement(PACKAGE, "note_scans"),
            sources=[state.source for state in ordered],
            etags=[state.etag for state in ordered],
            modified=[state.last_modified for state in ordered],
            positions=[state.position for state in ordered],
            errors=[state.error for state in ordered],
        )
