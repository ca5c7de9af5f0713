"""Mail for the tests of the providers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hooks.connections import Access
from include.mail import Answer, Batch, MailProvider, Message, Outcome

SECRET = "p/s@s:%#1"


def letter(to: str = "ann@home.test", **changed: Any) -> Message:
    """Return a message to one person, with the parts that a test changes."""
    parts: dict[str, Any] = {
        "sender": "Almanac <mail@almanac.test>",
        "to": to,
        "subject": "Your results",
        "text": "They are here.\n",
        "html": "<p>They are here.</p>",
    }
    return Message(**{**parts, **changed})


def letters(key: str, number: int, **changed: Any) -> Batch:
    """Return a batch of messages to different people."""
    return Batch(key, tuple(letter(f"{key}-{n}@home.test", **changed) for n in range(number)))


def connection(
    host: str | None = None, password: str | None = None, port: int | None = None, **extra: Any
) -> Access:
    """Return what a connection says."""
    return Access("a_mail", "almanac_email", host, port, None, extra.pop("login", None), password, extra)


def sent(provider: MailProvider, *batches: Batch) -> list[Outcome]:
    """Send batches and return the outcomes of all messages, in the batches' order."""
    answers = {answer.batch.key: answer.outcomes for answer in provider.send(batches)}
    return [outcome for batch in batches for outcome in answers[batch.key]]


def one(answers: Iterable[Answer]) -> Outcome:
    """Return the outcome of the only message."""
    (answer,) = answers
    (outcome,) = answer.outcomes
    return outcome
