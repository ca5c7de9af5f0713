"""Permits that speak of what another module is for: noted for each document, and offered to a company once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import Row

from include.ecocomply import notices
from include.ecocomply.keyword_search import found_in, normalise
from include.ecocomply.notices import Notice, tell
from include.ecocomply.recipients import OWNERS
from include.isolation import each_chunk, pages
from include.job import NothingOutside
from include.run import Run, Transaction
from include.statements import statement

PACKAGE = "include.ecocomply"
NAME = "crossSellTriggerDetection"
SETTINGS = notices.SETTINGS
QUEUES: tuple[str, ...] = ()
Outside = NothingOutside

TEXTS = 20
"""The documents of a chunk: their texts, which may be long, are all in memory."""

CERTAIN = 5
"""So many keywords make a confidence of 1."""


def scan_documents(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Look for each module's keywords, note what is found beside the document's stamp, and tell the owners."""
    with run.transaction() as tx:
        modules = tx.rows(statement(PACKAGE, "cross_sell_modules"))
        total: int = tx.value(statement(PACKAGE, "documents_counted"), **_which(run), **_when(run))

    def scan(tx: Transaction, ids: Sequence[UUID]) -> None:
        texts = tx.rows(statement(PACKAGE, "documents_texts"), ids=ids, **_when(run))
        run.count("skipped", len(ids) - len(texts))
        run.count("processed", len(texts))
        found = [one for row in texts for one in _found(row, modules)]
        run.count("documents_with_keywords", len({one["document_id"] for one in found}))
        _note(run, tx, found, modules)
        scanned = [row.id for row in texts]
        tx.execute(statement(PACKAGE, "mark_documents_scanned"), ids=scanned, as_of=run.as_of)

    looked_at = 0
    for page in pages(run, statement(PACKAGE, "documents_to_scan"), **_which(run), **_when(run)):
        each_chunk(run, [row.id for row in page], scan, TEXTS)
        looked_at += len(page)
        made = run.counts["triggers_created"]
        run.progress(looked_at, total, f"Scanned {looked_at}/{total} documents, {made} triggers created")


def _which(run: Run) -> dict[str, Any]:
    return {name: run.params[name] for name in ("company_id", "document_id")}


def _when(run: Run) -> dict[str, Any]:
    return {"as_of": run.as_of, "changed_only": run.params["process_recent_only"]}


def _found(row: Row[Any], modules: Sequence[Row[Any]]) -> list[dict[str, Any]]:
    text = normalise(row.extracted_text)
    return [
        {
            "document_id": row.id,
            "module_id": module.id,
            "keywords": keywords,
            "confidence": min(len(keywords) / CERTAIN, 1.0),
        }
        for module in modules
        if (keywords := found_in(text, module.keywords))
    ]


def _note(run: Run, tx: Transaction, found: list[dict[str, Any]], modules: Sequence[Row[Any]]) -> None:
    if not found:
        return
    made = tx.rows(statement(PACKAGE, "add_cross_sell_triggers"), found=msgspec.json.encode(found).decode())
    run.count("triggers_created", len(made))
    names = {module.id: module.module_name for module in modules}
    first = {(str(one["document_id"]), one["module_id"]): one["keywords"][0] for one in found}
    offers = [
        _notice(row, names[row.target_module_id], first[row.trigger_source, row.target_module_id])
        for row in made
    ]
    run.count("notifications_sent", tell(run, tx, offers))


def _notice(row: Row[Any], module: str, keyword: str) -> Notice:
    return Notice(
        kind="module_suggestion",
        company_id=row.company_id,
        entity_id=row.id,
        # A module is offered to a company once, however many of its documents speak of it.
        told_of=f"{row.company_id}:{row.target_module_id}",
        counts_toward="offer",
        recipients=OWNERS,
        values={"module": module, "module_id": row.target_module_id, "keyword": keyword},
    )


STEPS = (scan_documents,)
