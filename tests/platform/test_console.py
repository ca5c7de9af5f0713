"""What the console says of runs, previews and alerts, apart from the pages that show it."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from include.platform.console import Change, Difference, delivery, table_changes

NOW = datetime(2027, 3, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({"delivered_at": NOW, "delivery_attempts": 1}, "delivered"),
        ({"delivered_at": NOW, "delivery_attempts": 2, "last_error": "refused at first"}, "delivered"),
        ({"delivered_at": NOW, "last_error": "told by the outage's"}, "told by the outage's"),
        ({"no_address": True}, "logged only: ADMIN_ALERT_EMAIL is not set"),
        ({"delivery_attempts": 1, "last_error": "refused"}, "1 try failed: refused"),
        ({"delivery_attempts": 2, "last_error": "refused"}, "2 tries failed: refused"),
        ({"delivery_claimed_at": NOW}, "on its way: claimed, no answer yet"),
        ({}, "waits for its first try"),
    ],
    ids=str,
)
def test_an_alerts_delivery_in_words(known: dict[str, Any], words: str) -> None:
    """Ruling 11: an alert that reached nobody must say why."""
    row: Any = SimpleNamespace(
        **{
            "delivered_at": None,
            "no_address": False,
            "delivery_attempts": 0,
            "last_error": None,
            "delivery_claimed_at": None,
        }
        | known
    )
    assert delivery(row) == words


def test_a_change_lists_the_columns_that_differ() -> None:
    """Ruling 9: a table of changes in which the same values drown the changed ones helps nobody."""
    before = {"id": 1, "status": "active", "expired_at": None, "address": "1 Jasper Avenue"}
    after = before | {"status": "expired", "expired_at": "2027-03-10"}
    row = {"id": "x", "note": None}
    (table,) = table_changes(
        {
            "tables": [
                {
                    "table": "test_sessions",
                    "inserted": 1,
                    "updated": 730,
                    "deleted": 1,
                    "changes": [
                        {"key": {"a": 1, "b": 2}, "kind": "update", "before": before, "after": after},
                        {"key": {"id": "x"}, "kind": "insert", "before": None, "after": row},
                        {"key": {"id": "x"}, "kind": "delete", "before": row, "after": None},
                    ],
                }
            ]
        }
    )
    assert table.total == 732
    assert table.changes == [
        Change(
            "update",
            "a 1, b 2",
            [Difference("status", "active", "expired"), Difference("expired_at", "NULL", "2027-03-10")],
        ),
        Change("insert", "id x", [Difference("id", None, "x"), Difference("note", None, "NULL")]),
        Change("delete", "id x", [Difference("id", "x", None), Difference("note", "NULL", None)]),
    ]


def test_a_preview_without_changes_has_no_tables() -> None:
    """Case R1: nothing to do is a result too."""
    assert table_changes({"tables": []}) == []
    assert table_changes({}) == []
