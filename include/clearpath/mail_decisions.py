"""What a person may decide of a mail that no run touches any more, each as a statement to copy."""

from __future__ import annotations

import uuid
from typing import Any, NamedTuple

from sqlalchemy import Row

from include.statements import statement

_PACKAGE = "include.clearpath"
_LAST_TRY = 3


class Decision(NamedTuple):
    """`when` says in words what must be so; `sql` is to be run in ClearPath's database then."""

    when: str
    sql: str


def decisions(mail: Row[Any]) -> list[Decision]:
    """Return what a person may decide of a mail; nothing where the jobs go on by themselves.

    `mail` has id, status, permanent, outcome_unknown and retry_count.
    """
    if mail.status == "sent" or mail.status not in ("queued", "failed", "abandoned"):
        return []
    if mail.outcome_unknown:
        return [
            Decision("The provider has it:", _sql("person_says_sent", mail.id)),
            Decision(
                "The provider does not have it, and it should go out:", _sql("person_says_send", mail.id)
            ),
        ]
    if mail.status == "abandoned" or (mail.status == "failed" and mail.retry_count >= _LAST_TRY):
        return [Decision("The address is mended:", _sql("person_says_send", mail.id))]
    if mail.permanent:
        return [Decision("The data or the template is mended:", _sql("person_says_send", mail.id))]
    return []


def _sql(name: str, mail_id: uuid.UUID) -> str:
    text = statement(_PACKAGE, name).clause.text
    return text.strip().replace(":mail_id", f"'{mail_id}'") + ";"
