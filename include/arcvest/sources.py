"""Where ideas come from, as the worker's handlers are given it, and as a preview has read it beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import NamedTuple

from include.errors import AlmanacError, Outage
from include.feeds import FeedAnswer, FeedRequest, Feeds
from include.mailbox import Mailbox, MailboxAnswer
from include.plain_text import shown_url


class Sources(NamedTuple):
    """Feeds over HTTP, and the mailbox that newsletters come to."""

    feeds: Feeds
    mailbox: Mailbox


class FeedsRead:
    """A preview's feeds: answers that came before its transaction opened, and faults by URL."""

    def __init__(self, answers: Sequence[FeedAnswer], faults: Mapping[str, AlmanacError]) -> None:
        self._answers = {answer.url: answer for answer in answers}
        self._faults = faults

    def fetch(self, asked: Sequence[FeedRequest], seconds: float) -> Sequence[FeedAnswer]:  # noqa: ARG002
        if fault := next((self._faults[one.url] for one in asked if one.url in self._faults), None):
            raise fault
        return [self._answers.get(one.url) or _not_asked(one.url) for one in asked]


def _not_asked(url: str) -> FeedAnswer:
    return FeedAnswer(url, error=Outage(f"feed {shown_url(url)}: was not asked for this preview"))


class MailboxRead:
    """A preview's mailbox: answers by the position that they go on from."""

    def __init__(self, mailbox: Mailbox, answers: Mapping[str | None, MailboxAnswer | AlmanacError]) -> None:
        self.name = mailbox.name
        self.is_set = mailbox.is_set
        self._answers = answers

    def letters_since(
        self,
        position: str | None,
        day: date,  # noqa: ARG002 - the protocol's form
        seconds: float,  # noqa: ARG002 - as above
    ) -> MailboxAnswer:
        answer = self._answers.get(position, Outage(f"mailbox {self.name}: was not read for this preview"))
        if isinstance(answer, AlmanacError):
            raise answer
        return answer
