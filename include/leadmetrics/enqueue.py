"""How tasks come into `scheduled_task`: by the database's own functions, which an application calls as well.

    SELECT enqueue_signup_reminders(session_id, name)                  -- +1 hour and +24 hours
    SELECT enqueue_signup_alert(session_id, email, name, company_name) -- at once

Each is part of the transaction that calls it, and adds nothing the second time.
"""

from __future__ import annotations

from include.run import Transaction
from include.statements import statement

_PACKAGE = "include.leadmetrics"


def enqueue_reminders(tx: Transaction, session_id: str, name: str | None = None) -> int:
    """Enqueue both reminders of a registration that was broken off; return how many are new."""
    return int(tx.value(statement(_PACKAGE, "enqueue_reminders"), session_id=session_id, name=name))


def enqueue_alert(
    tx: Transaction, session_id: str, email: str, name: str | None = None, company_name: str | None = None
) -> int:
    """Enqueue the internal alert of a registration that has begun; return 1 if it is new, else 0."""
    found = tx.value(
        statement(_PACKAGE, "enqueue_alert"),
        session_id=session_id,
        email=email,
        name=name,
        company_name=company_name,
    )
    return int(found)
