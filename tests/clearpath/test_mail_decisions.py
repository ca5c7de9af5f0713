"""What a person may decide of a mail: the statements that the page shows and operations.md has."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from include.clearpath import email_queue_dispatch
from include.clearpath.mail_decisions import decisions
from include.clearpath.tables import EMAIL_LOG
from tests.clearpath.rows import Rows, quiet_world
from tests.clearpath.world import outside

ROOT = Path(__file__).resolve().parents[2]
UNKNOWN: dict[str, Any] = {
    "status": "failed",
    "permanent": True,
    "outcome_unknown": True,
    "last_error": "never answered",
}
BROKEN: dict[str, Any] = {"status": "failed", "permanent": True, "last_error": "address is missing"}
REFUSED: dict[str, Any] = {"status": "abandoned", "retry_count": 3, "last_error": "mailbox unavailable"}


def offered(rows: Rows, mail: uuid.UUID) -> list[str]:
    """Return the statements that a person is offered for a mail."""
    return [decision.sql for decision in decisions(rows.one(EMAIL_LOG, mail))]


def run(rows: Rows, sql: str) -> list[Any]:
    """Run a statement as it was copied, and return the rows that it gives back."""
    with rows.database.engine.begin() as connection:
        return list(connection.execute(text(sql.replace(":", "\\:"))))


@pytest.mark.parametrize(
    ("values", "number"),
    [
        (UNKNOWN, 2),
        (BROKEN, 1),
        (REFUSED, 1),
        ({"status": "failed", "retry_count": 3}, 1),
        ({"status": "failed", "retry_count": 2}, 0),
        ({"status": "queued"}, 0),
        (UNKNOWN | {"status": "sent"}, 0),
        ({"status": "duplicate"}, 0),
        ({"status": "cancelled"}, 0),
    ],
)
def test_only_what_no_run_touches_is_a_persons(rows: Rows, values: dict[str, Any], number: int) -> None:
    """A statement beside a mail that the next run takes would be a way to send it twice."""
    assert len(offered(rows, rows.mail(rows.session(), **values))) == number


@pytest.mark.parametrize("values", [UNKNOWN, BROKEN, REFUSED, {"status": "failed", "retry_count": 3}])
def test_what_a_person_lets_go_is_sent_once(rows: Rows, values: dict[str, Any]) -> None:
    """The statement must leave nothing behind that keeps the next run from taking the mail."""
    mail = rows.mail(rows.session(), **values)
    (row,) = run(rows, offered(rows, mail)[-1])
    assert row.id == mail
    around = quiet_world()
    for _ in range(2):
        rows.perform(email_queue_dispatch, outside(email_queue_dispatch, around))
    assert rows.mail_status(mail) == "sent"
    assert len(around.mail.delivered) == 1
    assert rows.one(EMAIL_LOG, mail).last_error is None


def test_what_a_person_says_is_out_stays_out(rows: Rows) -> None:
    """A mail that has arrived is sent, and no run and no second paste makes another of it."""
    mail = rows.mail(rows.session(), **UNKNOWN)
    says_sent, says_send = offered(rows, mail)
    (row,) = run(rows, says_sent)
    assert (row.id, row.status) == (mail, "sent")
    assert run(rows, says_sent) == run(rows, says_send) == []
    around = quiet_world()
    rows.perform(email_queue_dispatch, outside(email_queue_dispatch, around))
    assert len(around.mail.delivered) == 0


def test_a_statement_touches_its_own_mail_alone(rows: Rows) -> None:
    """It is pasted at night: the mails beside it must stay as they are."""
    mail, other = (rows.mail(rows.session(), **UNKNOWN) for _ in range(2))
    run(rows, offered(rows, mail)[-1])
    assert rows.one(EMAIL_LOG, other).outcome_unknown


def test_the_page_for_the_person_on_call_has_them(rows: Rows) -> None:
    """operations.md and the mail's page must not drift apart."""
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    mail = rows.mail(rows.session(), **UNKNOWN)
    for sql in offered(rows, mail):
        _, _, body = sql.partition("\n")
        assert body.replace(str(mail), "MAIL-ID") in page
