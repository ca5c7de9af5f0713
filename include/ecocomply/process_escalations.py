"""What stays overdue is told higher up: one level a day, by the company's own workflow or by 7, 14, 21 and 30 days."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from include.ecocomply import notices
from include.ecocomply.notices import Notice, tell
from include.ecocomply.recipients import NAMED_ELSE_OWNERS_AND_ADMINS
from include.errors import BadInput
from include.isolation import each_chunk, pages
from include.job import NothingOutside
from include.run import Run, Transaction
from include.statements import statement

PACKAGE = "include.ecocomply"
NAME = "processEscalations"
SETTINGS = notices.SETTINGS
QUEUES: tuple[str, ...] = ()
Outside = NothingOutside


def resolve_escalations(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Resolve each escalation of what is no longer overdue; if that is overdue again, its levels begin anew."""

    def resolve(tx: Transaction, ids: Sequence[UUID]) -> None:
        resolved = tx.rows(
            statement(PACKAGE, "resolve_escalations"), ids=ids, today=run.today, as_of=run.as_of
        )
        run.count("resolved", len(resolved))
        # The world moved between the look and the change.
        run.count("skipped", len(ids) - len(resolved))
        tx.execute(statement(PACKAGE, "resolve_escalation_notices"), ids=[row.entity_id for row in resolved])

    look = statement(PACKAGE, "escalations_over")
    for page in pages(run, look, int(run.params["batch_size"]), as_of=run.as_of, **_which(run)):
        each_chunk(run, [row.id for row in page], resolve)


def escalate_overdue(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Escalate each overdue deadline, or obligation without deadlines, to its next level, and tell those of it."""

    def escalate(tx: Transaction, ids: Sequence[UUID]) -> None:
        made = tx.rows(statement(PACKAGE, "escalate"), ids=ids, today=run.today, as_of=run.as_of)
        run.count("escalations", len(made))
        run.count("skipped", len(ids) - len(made))
        for row in made:
            run.count(f"level_{row.level}")
        tell(run, tx, [_notice(row) for row in made])
        told = tx.rows(
            statement(PACKAGE, "keep_escalated_to"),
            ids=[row.id for row in made],
            due_dates=[row.due_date for row in made],
        )
        _warn_of_strangers(run, made, {row.id: set(_users(row.escalated_to)) for row in told})

    for look in ("overdue_deadlines", "overdue_obligations"):
        for page in pages(run, statement(PACKAGE, look), int(run.params["batch_size"]), **_which(run)):
            run.count("processed", len(page))
            each_chunk(run, [row.id for row in page], escalate)


def _which(run: Run) -> dict[str, Any]:
    return {"today": run.today} | {name: run.params[name] for name in ("company_id", "obligation_category")}


def _notice(row: Row[Any]) -> Notice:
    return Notice(
        kind="escalation",
        company_id=row.company_id,
        site_id=row.site_id,
        entity_type=row.entity_type.lower(),
        entity_id=row.entity_id,
        obligation_id=row.obligation_id,
        recipients=NAMED_ELSE_OWNERS_AND_ADMINS,
        named=_users(row.named),
        counts_toward=row.due_date,
        threshold=row.level,
        escalation_level=row.level,
        values={
            "obligation": row.summary,
            "site": row.site_name,
            "level": row.level,
            "days_overdue": row.days,
        },
        metadata={
            "escalation_level": row.level,
            "days_overdue": row.days,
            "workflow_id": row.workflow_id,
        },
    )


def _users(listed: Iterable[Any]) -> list[UUID]:
    """Return the users in a column, which may be an array of arrays, of texts, or JSON, and have gaps.

    Raises BadInput for what is no user's id.
    """
    found: list[UUID] = []
    for one in listed:
        if isinstance(one, list):
            found += _users(one)
        elif one is not None:
            try:
                found.append(one if isinstance(one, UUID) else UUID(str(one)))
            except ValueError:
                raise BadInput(f"escalation workflow: {str(one)[:80]!r} is no user's id") from None
    return found


def _warn_of_strangers(run: Run, made: Sequence[Row[Any]], told: dict[UUID, set[UUID]]) -> None:
    """Warn of whom a workflow names and nobody can tell: who has left, or is of another company."""
    for row in made:
        for stranger in sorted(set(_users(row.named)) - told.get(row.id, set())):
            run.count("invalid_recipients")
            run.log.warning(
                "escalation names somebody who can't be told: job=%s recordId=%s userId=%s",
                run.job,
                row.entity_id,
                stranger,
                extra={"job": run.job, "recordId": str(row.entity_id), "userId": str(stranger)},
            )


STEPS = (resolve_escalations, escalate_overdue)
