"""The types of jobs that there are, what the data of each must say, and what is called to do them.

A handler takes the data of all jobs of its type that are due together, and answers for each; the jobs that
came together are one set for it, so that a thousand subscriptions are read and written in a few statements.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec

from include.errors import AlmanacError, BadInput, Transient
from include.run import Run

PROCESS_SUBSCRIPTION = "process-subscription"
SEND_DIGEST_EMAILS = "send-digest-emails"

_HOUR = re.compile(r"0?[0-9]|1[0-9]|2[0-3]", re.ASCII)


class ProcessSubscription(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, rename="camel"
):
    """Look for what is new for one subscription."""

    subscription_id: uuid.UUID
    user_id: Annotated[str, msgspec.Meta(min_length=1, max_length=128)] | None = None


class SendDigestEmails(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, rename="camel"
):
    """Send the digests that are due; an hour limits them to the users who chose it."""

    hour_of_day: (
        Annotated[int, msgspec.Meta(ge=0, le=23)]
        | Annotated[str, msgspec.Meta(pattern=f"^({_HOUR.pattern})$(?!\\n)", description='"09" or 9')]
        | None
    ) = None

    @property
    def hour(self) -> int | None:
        return None if self.hour_of_day is None else int(self.hour_of_day)


Data = ProcessSubscription | SendDigestEmails

DATA: dict[str, type[ProcessSubscription | SendDigestEmails]] = {
    PROCESS_SUBSCRIPTION: ProcessSubscription,
    SEND_DIGEST_EMAILS: SendDigestEmails,
}


class NotReached(Transient):
    """The time was up before it was this job's turn: it is given back as it was, and is due at once."""


Handler = Callable[[Run, Any, Sequence[Any]], Sequence[AlmanacError | None]]
"""Does jobs of one type with the run, its collaborators and the data of each; returns one answer a job.

None is success. An error says what became of that job alone: Transient is tried again, Permanent is not,
NotReached is no try. What concerns the whole run, such as a lost database, is raised.
"""


def known(type_: str) -> str:
    """Return a job's type. Raises BadInput for one that nothing handles."""
    if type_ not in DATA:
        raise BadInput(f"type: {type_[:100]!r} is not one of {', '.join(DATA)}")
    return type_


def parse_data(type_: str, data: Any) -> Data:
    """Return what a job's data says. Raises BadInput, naming the part, for an unknown type or wrong data."""
    wanted = DATA[known(type_)]
    try:
        return msgspec.convert(data, type=wanted)
    except msgspec.ValidationError as error:
        raise BadInput(f"data: {str(error).replace(' - at `$.', ' in `').replace('`$`', 'it')}") from None
