"""Consignment notes are checked by their company's rules; who wrote one that fails is told why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from sqlalchemy import Row

from include.ecocomply import notices
from include.ecocomply.expressions import Answer, Asked, Evaluator
from include.ecocomply.notices import Notice, tell
from include.ecocomply.recipients import ASSIGNEE
from include.ecocomply.waste_rules import FAIL, SKIPPED, Rule, Verdict, applicable, asked, status, verdict
from include.isolation import each_chunk, pages
from include.job import NothingOutside
from include.run import Run, Transaction
from include.statements import statement

PACKAGE = "include.ecocomply"
NAME = "autoValidateConsignmentNotes"
SETTINGS = notices.SETTINGS
QUEUES: tuple[str, ...] = ()
Outside = NothingOutside


class Checked(NamedTuple):
    """A note with what each of its rules says."""

    note: Row[Any]
    verdicts: Sequence[tuple[Rule, Verdict]]

    @property
    def status(self) -> str:
        return status(self.verdicts)

    @property
    def errors(self) -> list[str]:
        return [found.message or "" for _, found in self.verdicts if found.result == FAIL]


def validate_notes(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Check each note that waits by its rules, and record all of it: a note's checks, standing and message are one."""

    def record(tx: Transaction, chunk: Sequence[Checked]) -> None:
        recorded = {
            row.id for row in tx.rows(statement(PACKAGE, "record_validations"), **_record(run, chunk))
        }
        # The world moved: what was changed or checked in between is left to the next run.
        run.count("skipped", len(chunk) - len(recorded))
        done = [one for one in chunk if one.note.id in recorded]
        _count(run, done)
        tell(run, tx, [_failure(run, one) for one in done if one.status == "FAILED"])

    warned: set[UUID] = set()
    look = statement(PACKAGE, "notes_to_validate")
    with Evaluator() as evaluator:
        for notes in pages(run, look, company_id=run.params["company_id"]):
            checked = _check(run, evaluator, notes)
            _warn(run, checked, warned)
            each_chunk(run, checked, record, int(run.params["batch_size"]))


def _check(run: Run, evaluator: Evaluator, notes: Sequence[Row[Any]]) -> list[Checked]:
    streams = {note.waste_stream_id for note in notes} - {None}
    with run.transaction() as tx:
        rules = tx.rows(
            statement(PACKAGE, "validation_rules_of"),
            companies=sorted({note.company_id for note in notes}),
            streams=sorted(streams),
        )
    of_company: dict[UUID, list[Rule]] = defaultdict(list)
    for row in rules:
        of_company[row.company_id].append(Rule.of(row))
    kinds = {(note.company_id, note.waste_stream_id) for note in notes}
    rules_of = {(company, stream): applicable(of_company[company], stream) for company, stream in kinds}
    pairs = [(note, rule) for note in notes for rule in rules_of[note.company_id, note.waste_stream_id]]
    answers = _answers(run, evaluator, pairs)
    return [
        Checked(
            note,
            [
                (rule, verdict(note, rule, run.today, answers.get((note.id, rule.id))))
                for rule in rules_of[note.company_id, note.waste_stream_id]
            ],
        )
        for note in notes
    ]


def _answers(
    run: Run, evaluator: Evaluator, pairs: Sequence[tuple[Row[Any], Rule]]
) -> Mapping[tuple[UUID, UUID], Answer]:
    """Evaluate the expressions of CUSTOM rules, before any transaction is open."""
    questions: dict[tuple[UUID, UUID], Asked] = {}
    for note, rule in pairs:
        question = asked(note, rule, run.today)
        if question is not None:
            questions[note.id, rule.id] = question
    return dict(zip(questions, evaluator.answers(list(questions.values())), strict=True))


def _record(run: Run, chunk: Sequence[Checked]) -> dict[str, Any]:
    notes = [
        {"id": one.note.id, "seen": one.note.seen, "status": one.status, "errors": one.errors}
        for one in chunk
    ]
    results = [
        {"note": one.note.id, "rule": rule.id, "result": found.result, "message": found.message}
        for one in chunk
        for rule, found in one.verdicts
    ]
    return {
        "ids": [one.note.id for one in chunk],
        "notes": msgspec.json.encode(notes).decode(),
        "results": msgspec.json.encode(results).decode(),
        "as_of": run.as_of,
    }


def _count(run: Run, done: Sequence[Checked]) -> None:
    run.count("processed", len(done))
    for one in done:
        run.count({"PASSED": "passed", "FAILED": "validation_failed"}.get(one.status, "passed_with_warnings"))
        for rule, found in one.verdicts:
            if found.result == FAIL:
                run.count(f"failed_{rule.type.lower()}")
            run.count("rules_skipped", found.result == SKIPPED)
            run.count("rules_not_evaluated", found.undecided)


def _warn(run: Run, checked: Sequence[Checked], warned: set[UUID]) -> None:
    """Warn of each rule that is left out or can't be evaluated, once a run."""
    for one in checked:
        for rule, found in one.verdicts:
            if (found.undecided or found.result == SKIPPED) and rule.id not in warned:
                warned.add(rule.id)
                run.log.warning(
                    "validation rule: job=%s recordId=%s err=%s",
                    run.job,
                    rule.id,
                    found.message,
                    extra={"job": run.job, "recordId": str(rule.id), "err": found.message},
                )


def _failure(run: Run, one: Checked) -> Notice:
    note = one.note
    return Notice(
        kind="consignment_note_failed",
        company_id=note.company_id,
        site_id=note.site_id,
        entity_id=note.id,
        recipients=ASSIGNEE,
        named=[note.created_by],
        # A note that is mended and fails again is told of again.
        counts_toward=run.as_of.isoformat(),
        values={
            "note_number": note.consignment_number or str(note.id)[:8],
            "error_details": "; ".join(one.errors),
        },
    )


STEPS = (validate_notes,)
