"""A preview over the API: the first task does it all, nothing changes, and the real run then does the same."""

from __future__ import annotations

import pytest

from tests.clearpath import world
from tests.dags import states
from tests.live.conftest import FirstDay, Previewed
from tests.live.desk import CLEARPATH_IDS, Desk

every_dag = pytest.mark.parametrize("dag_id", CLEARPATH_IDS)


@every_dag
def test_the_first_task_does_it_all(desk: Desk, first_day: FirstDay, dag_id: str) -> None:
    """Ruling 9: a person sees at a glance that nothing else ran: the other tasks show as skipped."""
    tasks = desk.tasks(first_day.early[dag_id])
    assert tasks.pop("check_run")["state"] == "success"
    assert tasks
    assert {task["state"] for task in tasks.values()} == {"skipped"}
    summary = desk.summary(first_day.early[dag_id])
    assert summary["preview"]
    assert summary["state"] == "success"
    assert "preview: nothing was changed" in summary["notes"]


@every_dag
def test_there_is_something_to_show(desk: Desk, first_day: FirstDay, dag_id: str) -> None:
    """A preview of nothing would equal any run that does nothing."""
    previews = {one: run for group in first_day.groups for one, run in group.previews.items()}
    assert desk.preview(previews[dag_id])["counts"]["processed"] > 0


def test_it_changes_no_row(first_day: FirstDay) -> None:
    """Ruling 9: all tables are the same before and after."""
    for group in first_day.groups:
        assert states.changes(group.rows_previewed, group.rows_before) == {}


def test_the_real_run_makes_the_difference_that_was_shown(desk: Desk, first_day: FirstDay) -> None:
    """Ruling 9: row by row what the preview showed is what the run then did, counts and messages included."""
    for group in first_day.groups:
        shown = {dag_id: desk.preview(run) for dag_id, run in group.previews.items()}
        assert _sum(shown) == states.changes(group.rows_before, group.rows_after)
        assert sum(one["messages"]["count"] for one in shown.values()) == group.mails
        for dag_id, one in shown.items():
            summary = desk.summary(group.runs[dag_id])
            assert one["counts"] == summary["counts"], dag_id
            assert one["state"] == summary["state"], dag_id
        _assert_rows_equal(group, shown)


def _sum(shown: dict) -> dict[str, dict[str, int]]:
    total: dict[str, dict[str, int]] = {}
    for one in shown.values():
        for table in one["tables"]:
            counts = total.setdefault(table["table"], {"inserted": 0, "updated": 0, "deleted": 0})
            for kind in counts:
                counts[kind] += table[kind]
    return total


def _assert_rows_equal(group: Previewed, shown: dict) -> None:
    known = states.known_uuids(group.rows_before)
    told: dict[str, list[str]] = {}
    for one in shown.values():
        for table in one["tables"]:
            told.setdefault(table["table"], []).extend(
                _plain(table["table"], (c["before"], c["after"]), known, group) for c in table["changes"]
            )
    for name, changes in told.items():
        before, after = group.rows_before[name], group.rows_after[name]
        made = [
            _plain(name, (before.get(key), after.get(key)), known, group)
            for key in before.keys() | after.keys()
            if before.get(key) != after.get(key)
        ]
        assert sorted(changes) == sorted(made), name


def _plain(table: str, change: tuple, known: set[str], group: Previewed) -> str:
    ignored = world.BOOKKEEPING.get(table, set()) | {"provider_message_id", "run_id", "certificate_number"}
    rows = [states.plain_row(row, known, group.started, ignored) for row in change]
    return str([{key: str(value)[:200] for key, value in sorted((row or {}).items())} for row in rows])
