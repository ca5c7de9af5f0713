"""What every scan of feeds does: ask, read, save what is new, and say which feeds could not be read."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime

from include.arcvest import ideas
from include.arcvest.ideas import FoundIdea, ScanState
from include.errors import AlmanacError, Outage, Permanent, Refused, Transient
from include.feeds import FeedAnswer, FeedRequest, Feeds, feed_urls, read_feed
from include.plain_text import shown_url
from include.run import Run
from include.statements import statement

PACKAGE = "include.arcvest"
SECONDS = 40.0
"""What the feeds have to answer, all together."""

READ_SECONDS = 8.0
"""After that long no further answer is read: the next attempt goes on with those that were not."""


def scan(run: Run, feeds: Feeds, source: str, variable: str, made_at: datetime) -> None:
    """Read the feeds that a variable lists; those that were read since `made_at` are not asked again.

    Raises Transient if a feed is out of reach, after what the others brought is saved, and Refused if all of
    them are wrong for good.
    """
    asked = requests(run, variable, made_at)
    if asked is None:
        run.note(f"no feed to scan: the variable {variable} is empty")
        return
    found: list[FoundIdea] = []
    states: list[ScanState] = []
    errors: list[AlmanacError] = []
    answers = feeds.fetch(asked, SECONDS)
    stop_at = time.monotonic() + READ_SECONDS
    for answer in answers:
        try:
            if answer.body is not None and states and time.monotonic() > stop_at:
                raise Outage(f"feed {shown_url(answer.url)}: was not read in time, since others were long")
            found += _ideas(source, answer)
            states.append(ScanState(answer.url, answer.etag, answer.last_modified))
        except AlmanacError as error:
            errors.append(error)
            states.append(ScanState(answer.url, error=str(error)))
            run.log.warning("feed not read: job=%s recordId=%s err=%s", run.job, shown_url(answer.url), error)
    # The ideas first: a feed that is noted as read is not asked again for them.
    ideas.save(run, found)
    ideas.note_scans(run, states)
    run.count("feeds", len(states) - len(errors))
    run.count("feeds_failed", len(errors))
    _judge(len(feed_urls(variable, run.settings.get(variable))), errors)


def requests(run: Run, variable: str, made_at: datetime) -> list[FeedRequest] | None:
    """Return what a scan asks, or None if no feed is set. Raises BadInput for a slip in the variable."""
    urls = feed_urls(variable, run.settings.get(variable))
    if not urls:
        return None
    with run.transaction() as tx:
        rows = tx.rows(statement(PACKAGE, "scan_states"), sources=urls, made_at=made_at)
    known = {row.source: row for row in rows}
    return [
        FeedRequest(url, known[url].etag, known[url].last_modified) if url in known else FeedRequest(url)
        for url in urls
        if url not in known or not known[url].fresh
    ]


def _ideas(source: str, answer: FeedAnswer) -> list[FoundIdea]:
    if answer.error is not None:
        raise answer.error
    try:
        entries = read_feed(answer)
    except AlmanacError:
        raise
    except Exception as error:  # noqa: BLE001 - a feed can be broken in any way; the others go on
        raise Refused(f"feed {shown_url(answer.url)}: can't be read: {type(error).__name__}") from None
    return [
        FoundIdea(source, entry.source_name, entry.url, entry.title, entry.summary, entry.published_at)
        for entry in entries
    ]


def _judge(feeds: int, errors: Sequence[AlmanacError]) -> None:
    # Of all feeds, whichever of them an earlier attempt has read: every attempt says the same.
    passing = [error for error in errors if not isinstance(error, Permanent)]
    if passing:
        raise Transient(f"{len(errors)} of {feeds} feeds could not be read: {passing[0]}")
    if errors and len(errors) == feeds:
        raise Refused(f"none of {feeds} feeds can be read: {errors[0]}")
