"""Corrective actions go on once everything in them is done, and their owners hear of it once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from include.ecocomply import auto_transition_corrective_actions
from include.isolation import CHUNK
from include.job import NothingOutside
from include.run import EngineDatabase, Run
from tests.ecocomply.rows import AS_OF, Rows

EARLIER, LATER = AS_OF - timedelta(hours=1), AS_OF + timedelta(microseconds=1)


@pytest.fixture
def rows(database_of: Callable[..., EngineDatabase]) -> Rows:
    """Make a company with a user who makes actions."""
    made = Rows(database_of("ecocomply"))
    made.user("ana", "STAFF")
    return made


def action(rows: Rows, *statuses: str, done_at: Any = EARLIER, **values: Any) -> UUID:
    """Add an action of ana's with items of these statuses."""
    (ana,) = (row.id for row in rows.all("users") if row.full_name == "ana")
    given = {
        "company_id": rows.company, "site_id": rows.site, "corrective_action_name": "Spill", "created_by": ana,
        "lifecycle_phase": "ACTION", "status": "IN_PROGRESS",
    }  # fmt: skip
    key = rows.add("corrective_actions", **(given | values))
    for status in statuses:
        done = {"completed_at": done_at} if status == "COMPLETED" else {}
        rows.add("corrective_action_items", corrective_action_id=key, item_title="Dig", status=status, **done)
    return key


def perform(rows: Rows, as_of: Any = AS_OF, **params: Any) -> Run:
    """Run the job for every company, unless told otherwise."""
    return rows.perform(
        auto_transition_corrective_actions, NothingOutside(), as_of, **({"company_id": None} | params)
    )


def phase(rows: Rows, key: UUID) -> str:
    """Return an action's phase."""
    return next(row.lifecycle_phase for row in rows.all("corrective_actions") if row.id == key)


@pytest.mark.parametrize(
    ("statuses", "moves"),
    [
        (["COMPLETED"], True),
        (["COMPLETED", "COMPLETED"], True),
        (["COMPLETED", "CANCELLED"], True),
        (["COMPLETED", "PENDING"], False),
        (["COMPLETED", "IN_PROGRESS"], False),
        (["CANCELLED"], False),
        (["CANCELLED", "CANCELLED"], False),
        ([], False),
    ],
)
def test_which_items_it_takes(rows: Rows, statuses: list[str], *, moves: bool) -> None:
    """As ruled: cancelled items are ignored, and at least one must be completed."""
    key = action(rows, *statuses)
    run = perform(rows)
    assert phase(rows, key) == ("RESOLUTION" if moves else "ACTION")
    assert run.counts["transitioned"] == run.counts["processed"] == run.counts["owners_notified"] == moves
    assert not run.counts["skipped"]
    assert bool(rows.all("notifications")) == moves


@pytest.mark.parametrize(
    "values",
    [
        {"lifecycle_phase": "IDENTIFICATION"},
        {"lifecycle_phase": "RESOLUTION"},
        {"lifecycle_phase": "CLOSED", "status": "CLOSED"},
        {"status": "OPEN"},
        {"status": "CANCELLED"},
    ],
)
def test_only_actions_in_work_move(rows: Rows, values: dict[str, Any]) -> None:
    """What was called off, or is in another phase, is a person's."""
    key = action(rows, "COMPLETED", **values)
    perform(rows)
    assert phase(rows, key) == values.get("lifecycle_phase", "ACTION")
    assert not rows.all("notifications")


@pytest.mark.parametrize(("done_at", "moves"), [(EARLIER, True), (AS_OF, True), (LATER, False), (None, True)])
def test_the_as_of_decides(rows: Rows, done_at: Any, *, moves: bool) -> None:
    """A run for an hour that has passed does what it would have done then; without a stamp the word counts."""
    key = action(rows, "COMPLETED", done_at=done_at)
    assert not perform(rows).counts["skipped"]
    assert phase(rows, key) == ("RESOLUTION" if moves else "ACTION")


def test_the_owner_is_told_once_and_again_if_it_was_opened_again(rows: Rows) -> None:
    """A second run finds nothing; an action that went back and is done anew is news."""
    key = action(rows, "COMPLETED")
    perform(rows)
    assert perform(rows).counts["transitioned"] == 0
    assert {(row.channel, row.subject, row.entity_id) for row in rows.all("notifications")} == {
        ("IN_APP", "Corrective Action Ready for Resolution", key),
        ("EMAIL", "Corrective Action Ready for Resolution", key),
    }
    rows.change("corrective_actions", key, lifecycle_phase="ACTION")
    rows.add(
        "corrective_action_items",
        corrective_action_id=key,
        item_title="Fill",
        status="COMPLETED",
        completed_at=AS_OF + timedelta(minutes=20),
    )
    perform(rows, AS_OF + timedelta(hours=1))
    assert len(rows.all("notifications")) == 4


@pytest.mark.parametrize("owner", ["nobody", "one who has left"])
def test_without_an_owner_it_moves_all_the_same(rows: Rows, owner: str) -> None:
    """Nobody to tell is a count, not a reason to leave the action where it is."""
    gone = rows.user("gone", "STAFF", is_active=False)
    key = action(rows, "COMPLETED", created_by=None if owner == "nobody" else gone)
    run = perform(rows)
    assert phase(rows, key) == "RESOLUTION"
    assert (run.counts["without_recipient"], run.counts["owners_notified"]) == (1, 0)
    assert not rows.all("notifications")


def test_a_company_narrows_it(rows: Rows) -> None:
    """Another company's action stays where it is."""
    company = rows.add("companies", name="Other")
    site = rows.add("sites", company_id=company, name="Theirs")
    mine = action(rows, "COMPLETED")
    theirs = action(rows, "COMPLETED", company_id=company, site_id=site, created_by=None)
    perform(rows, company_id=str(company))
    assert (phase(rows, mine), phase(rows, theirs)) == ("ACTION", "RESOLUTION")


def test_a_bad_row_stands_alone(rows: Rows) -> None:
    """Ruling 6: an action that the database refuses to change keeps no other from going on."""
    bad, good = action(rows, "COMPLETED"), action(rows, "COMPLETED")
    rows.run_sql(
        f"ALTER TABLE corrective_actions ADD CHECK (id <> '{bad}' OR lifecycle_phase = 'ACTION') NOT VALID"
    )
    run = perform(rows)
    assert (phase(rows, bad), phase(rows, good)) == ("ACTION", "RESOLUTION")
    assert (run.counts["failed"], run.counts["transitioned"]) == (1, 1)
    assert {row.entity_id for row in rows.all("notifications")} == {good}


def test_more_than_a_chunk(rows: Rows) -> None:
    """All of them move, though what has moved is no longer among those that are looked for."""
    rows.run_sql(
        "INSERT INTO corrective_actions (company_id, corrective_action_name, lifecycle_phase, status) "
        "SELECT :company, 'Spill ' || n, 'ACTION', 'IN_PROGRESS' FROM generate_series(1, :many) AS n",
        company=rows.company,
        many=CHUNK + 1,
    )
    rows.run_sql(
        "INSERT INTO corrective_action_items (corrective_action_id, item_title, status) "
        "SELECT id, 'Dig', 'COMPLETED' FROM corrective_actions"
    )
    rows.run_sql("ANALYZE corrective_actions, corrective_action_items")
    assert perform(rows).counts["transitioned"] == CHUNK + 1


@pytest.mark.parametrize("odd", ["-infinity", "0044-03-15 BC"])
def test_an_odd_instant_of_completion(rows: Rows, odd: str) -> None:
    """It is done all the same, is told of once, and nobody else's action is held up."""
    good, bad = action(rows, "COMPLETED"), action(rows, "COMPLETED")
    rows.run_sql(
        "UPDATE corrective_action_items SET completed_at = :odd WHERE corrective_action_id = :id",
        odd=odd,
        id=bad,
    )
    assert not perform(rows).counts["failed"]
    assert [phase(rows, key) for key in (good, bad)] == ["RESOLUTION"] * 2
    assert {row.entity_id for row in rows.all("notifications")} == {good, bad}
