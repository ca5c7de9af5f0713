"""Telling people: one row of `notifications` for each recipient and channel, many notices by one statement.

A notice says what happened to which entity, who is to know, and what day or window it counts toward; who that is,
by which channels, and whether they know it already, the statement finds out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any
from uuid import UUID

import msgspec

from include.ecocomply.notice_words import clean, kind_of, kinds, word
from include.ecocomply.recipients import Rule
from include.ecocomply.tables.notifications import CHANNELS
from include.errors import BadInput
from include.isolation import CHUNK, each_chunk
from include.odd_dates import as_text
from include.run import Run, Transaction
from include.statements import statement

PACKAGE = "include.ecocomply"

SETTINGS: dict[str, str | None] = {"APP_URL": "http://127.0.0.1:3000"}
"""What a job that tells people declares beside its own."""


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """What some people are to be told once.

    `kind` is one of the catalogue. `counts_toward` is the due or expiry date, the window or the day that it is told
    for: the same kind, entity, `counts_toward` and `threshold` are told a recipient once for each channel. `named`
    are the users that the rule's NAMED means. `values` fill the words; `priority` and `channels` stand where they
    differ from the kind's. An `escalation_level` makes it an escalation. `told_of` stands for the entity where several
    entities are one occasion to tell of.
    """

    kind: str
    company_id: UUID
    entity_id: UUID
    recipients: Rule
    counts_toward: date | str
    threshold: str | float | None = None
    values: Mapping[str, Any] = {}
    site_id: UUID | None = None
    named: Sequence[UUID | None] = ()
    entity_type: str | None = None
    obligation_id: UUID | None = None
    evidence_id: UUID | None = None
    priority: str | None = None
    channels: Sequence[str] = ()
    escalation_level: int | None = None
    metadata: Mapping[str, Any] = {}
    told_of: str | None = None

    def __str__(self) -> str:
        """Return what finds it, as a row's error names it."""
        kind = kinds().get(self.kind)
        about = self.entity_type or (kind.about if kind else "entity")
        return f"{self.kind} of {about} {self.entity_id}"


def notify(run: Run, notices: Sequence[Notice]) -> None:
    """Tell people, a chunk a transaction; a notice that can't be written stands alone, is counted and logged."""
    each_chunk(run, notices, lambda tx, chunk: tell(run, tx, chunk), CHUNK)


def tell(run: Run, tx: Transaction, notices: Sequence[Notice]) -> int:
    """Tell people in a transaction that does other things as well; at most CHUNK notices.

    Returns how many of the notices told anybody something new.

    Counts `notifications` made, `already_told`, `without_phone` and `without_email` (channels left out),
    `of_deleted` (notices of a company or site that is deleted, which nobody gets), and `without_recipient` (other
    notices that reach nobody, each with a warning). Raises Permanent for a notice that can't be worded.
    """
    if not notices:
        return 0
    # There are few rules, and many notices of each.
    rules = {rule: number for number, rule in enumerate(dict.fromkeys(one.recipients for one in notices))}
    rows = [
        _row(run, place, notice) | {"rule": rules[notice.recipients]} for place, notice in enumerate(notices)
    ]
    groups = [
        (number, chain, rank, group)
        for rule, number in rules.items()
        for chain, names in enumerate(rule)
        for rank, group in enumerate(names)
    ]
    (told,) = tx.rows(
        statement(PACKAGE, "create_notifications"),
        notices=msgspec.json.encode(rows, enc_hook=as_text).decode(),
        rules=[number for number, _, _, _ in groups],
        chains=[chain for _, chain, _, _ in groups],
        ranks=[rank for _, _, rank, _ in groups],
        words=[group for _, _, _, group in groups],
    )
    run.count("notifications", told.made)
    run.count("already_told", told.wanted - told.made)
    run.count("without_phone", told.without_phone)
    run.count("without_email", told.without_email)
    if told.of_deleted:
        run.count("of_deleted", told.of_deleted)
    for place in told.for_nobody:
        _warn_of_nobody(run, notices[place])
    return told.news


def _row(run: Run, place: int, notice: Notice) -> dict[str, Any]:
    kind = kind_of(notice.kind)
    if notice.channels and not set(notice.channels) <= set(CHANNELS):
        raise BadInput(f"{notice}: an unknown channel among {', '.join(notice.channels)}")
    entity_type = notice.entity_type or kind.about
    values = _with_ids(entity_type, notice)
    worded = word(notice.kind, values, today=run.today, app_url=run.settings["APP_URL"] or "")
    toward = notice.counts_toward
    return {
        "place": place,
        "company_id": notice.company_id,
        "site_id": notice.site_id,
        "named": [user for user in notice.named if user is not None],
        "notification_type": kind.type,
        "priority": notice.priority or kind.priority,
        "channels": list(notice.channels or kind.channels) or None,
        "subject": worded.subject,
        "body_text": worded.text,
        "body_html": worded.html,
        "action_url": worded.action_url,
        "variables": values | {"action_url": worded.action_url},
        "entity_type": entity_type,
        "entity_id": notice.entity_id,
        "obligation_id": notice.obligation_id,
        "evidence_id": notice.evidence_id,
        "escalation_level": notice.escalation_level,
        "metadata": notice.metadata,
        "told_key": "/".join(
            [
                notice.kind,
                entity_type,
                notice.told_of or str(notice.entity_id),
                toward.isoformat() if isinstance(toward, date) else toward,
                "" if notice.threshold is None else str(notice.threshold),
            ]
        ),
    }


def _with_ids(entity_type: str, notice: Notice) -> dict[str, Any]:
    ids = {
        "site_id": notice.site_id,
        "obligation_id": notice.obligation_id,
        "evidence_id": notice.evidence_id,
        f"{entity_type}_id": notice.entity_id,
    }
    return {name: one for name, one in ids.items() if one is not None} | clean(notice.values)


def _warn_of_nobody(run: Run, notice: Notice) -> None:
    run.count("without_recipient")
    run.log.warning(
        "nobody to tell: job=%s recordId=%s",
        run.job,
        notice,
        extra={"job": run.job, "recordId": str(notice)},
    )
