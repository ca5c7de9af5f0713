"""Scores: the criteria as a table, the order that they give, and what is rejected."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from include.arcvest import queue_worker, score_ideas, tables
from include.arcvest.jobs import QUEUE
from include.arcvest.score_ideas import WEIGHTS, Idea, parts_of, read_topics, score_of
from include.arcvest.sources import Sources
from include.errors import BadInput
from include.job import perform
from include.odd_dates import OddDate
from include.run import Run
from tests.arcvest.rows import AS_OF, Rows
from tests.arcvest.worker_world import FakeFeeds, FakeMailbox

TOPICS = read_topics("Retirement, roth, estate planning, taxes, bonds")
HOUR = timedelta(hours=1)


def idea(title: str = "", summary: str = "", source: str = "news", age: timedelta = timedelta(0)) -> Idea:
    """Return an idea that is so old."""
    return Idea(source, title, summary, AS_OF - age)


@pytest.mark.parametrize(
    ("one", "criterion", "part"),
    [
        (idea("Cats"), "relevance", 0.0),
        (idea("ROTH, explained"), "relevance", 0.333),
        (idea("", "A roth is"), "relevance", 0.167),
        (idea("Roth", "Roth roth"), "relevance", 0.333),
        (idea("Estate-planning"), "relevance", 0.333),
        (idea("Real estate for planning"), "relevance", 0.0),
        (idea("Brothers"), "relevance", 0.0),
        (idea("Roth, bonds, taxes"), "relevance", 1.0),
        (idea("Roth, bonds, taxes in retirement"), "relevance", 1.0),
        (idea(age=-HOUR), "timeliness", 1.0),
        (idea(age=6 * HOUR), "timeliness", 1.0),
        (idea(age=87 * HOUR), "timeliness", 0.5),
        (idea(age=168 * HOUR), "timeliness", 0.0),
        (idea(age=999 * HOUR), "timeliness", 0.0),
        (idea(source="bloomberg"), "authority", 1.0),
        (idea(source="news"), "authority", 0.7),
        (idea(source="email"), "authority", 0.5),
        (idea(source="blog"), "authority", 0.4),
        (idea(), "substance", 0.0),
        (idea(summary="word " * 30), "substance", 0.5),
        (idea(summary="word " * 600), "substance", 1.0),
    ],
)
def test_each_criterion(one: Idea, criterion: str, part: float) -> None:
    """The criteria are stated in docs/arcvest.md; these are their boundaries."""
    assert parts_of(one, TOPICS, AS_OF)[criterion] == part


def test_the_weights_make_a_hundred() -> None:
    """A score is of a hundred, and each criterion's weight is what it can give."""
    assert WEIGHTS == {"relevance": 40, "timeliness": 25, "authority": 20, "substance": 15}
    assert score_of(dict.fromkeys(WEIGHTS, 1.0)) == 100
    assert score_of(dict.fromkeys(WEIGHTS, 0.0)) == 0
    assert {name: score_of(dict.fromkeys(WEIGHTS, 0.0) | {name: 1.0}) for name in WEIGHTS} == WEIGHTS


def test_the_order() -> None:
    """What the criteria are for: these ideas, the better ones first."""
    text = "word " * 60
    best_first = [
        idea("Roth and taxes in retirement: bonds", text, "bloomberg"),
        idea("Roth and taxes in retirement: bonds", text, "news"),
        idea("Roth and taxes in retirement: bonds", text, "news", age=48 * HOUR),
        idea("Roth and taxes", text, "news", age=48 * HOUR),
        idea("Roth", "", "news", age=48 * HOUR),
        idea("Cats", text, "email", age=48 * HOUR),
        idea("Cats", "", "email", age=200 * HOUR),
    ]
    scores = [score_of(parts_of(one, TOPICS, AS_OF)) for one in best_first]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == len(scores)


def score(rows: Rows, made_at: datetime = AS_OF, **settings: str) -> Run:
    """Let one score_ideas job be done."""
    rows.job("score_ideas", created_at=made_at, next_run_at=AS_OF)
    with rows.db.transaction() as tx:
        (claim,) = QUEUE.claim(tx, "worker", 1)
    late = rows.run(queue_worker, AS_OF + 48 * HOUR, slots=1)
    run = replace(late, settings={**score_ideas.SETTINGS, **settings})
    score_ideas.handle(run, claim, Sources(FakeFeeds({}), FakeMailbox([])))
    return run


def test_new_ideas_get_their_score_as_of_the_jobs_making(rows: Rows) -> None:
    """A job that runs late, or twice, gives the scores that it would have given at once."""
    ids = [
        rows.idea("Retirement", created_at=AS_OF - 87 * HOUR, published_at=p)
        for p in (None, AS_OF - 7 * HOUR)
    ]
    scored, other = rows.idea(status="scored", score=1), rows.idea(status="processing")
    run = score(rows)
    found = [rows.one(tables.IDEA_QUEUE, one) for one in ids]
    assert [row.status for row in found] == ["scored", "scored"]
    assert [row.score_parts["timeliness"] for row in found] == [0.5, 0.994]
    assert float(found[0].score) == score_of(found[0].score_parts)
    assert run.counts["scored"] == 2
    assert float(rows.one(tables.IDEA_QUEUE, scored).score) == 1
    assert rows.one(tables.IDEA_QUEUE, other).status == "processing"


ODD = ["infinity", "-infinity", "12026-11-01 00:00+00", "0044-03-15 00:00+00 BC"]


@pytest.mark.parametrize("when", ODD)
def test_an_odd_publication_date_says_nothing(rows: Rows, when: str) -> None:
    """A feed's date that Python can't hold: the idea counts from when it was found, and the others are scored."""
    good = rows.idea("Roth", created_at=AS_OF - 87 * HOUR)
    odd = rows.idea("Roth", created_at=AS_OF - 87 * HOUR, published_at=OddDate(when))
    run = score(rows)
    found = [rows.one(tables.IDEA_QUEUE, one) for one in (good, odd)]
    assert [row.score_parts["timeliness"] for row in found] == [0.5, 0.5]
    assert (run.counts["scored"], run.counts["failed"]) == (2, 0)


@pytest.mark.parametrize("when", ODD)
def test_an_idea_of_no_date_stands_alone(rows: Rows, when: str, caplog: pytest.LogCaptureFixture) -> None:
    """Its row is named with the column and the value; the others are scored."""
    good, odd = rows.idea("Roth"), rows.idea("Roth", created_at=OddDate(when))
    run = score(rows)
    assert rows.one(tables.IDEA_QUEUE, good).status == "scored"
    assert rows.one(tables.IDEA_QUEUE, odd).status == "new"
    assert run.counts["failed"] == 1
    assert str(odd) in caplog.text
    assert "created_at " in caplog.text


@pytest.mark.parametrize("job_type", ["score_ideas", "select_daily"])
@pytest.mark.parametrize("when", ODD)
def test_a_job_of_no_date_is_told_by_it(rows: Rows, when: str, job_type: str) -> None:
    """What reckons from the job's making can't begin: the job ends, and names the column and the value."""
    job = rows.job(job_type, payload={"count": 1}, created_at=OddDate(when))
    outside = queue_worker.Outside(FakeFeeds({}), FakeMailbox([]), queue_worker.SilentBell())
    perform(queue_worker, rows.run(queue_worker, slots=1), outside)
    ended = rows.one(tables.JOB_QUEUE, job)
    assert ended.status == "failed"
    assert "created_at" in ended.last_error
    assert "no day between" in ended.last_error


@pytest.mark.parametrize(("least", "status"), [("14", "scored"), ("14.01", "rejected")])
def test_a_low_score_is_rejected(rows: Rows, least: str, status: str) -> None:
    """The least score itself is enough."""
    # Authority alone: 0.7 of 20.
    found = rows.idea("Cats", published_at=AS_OF - 999 * HOUR)
    run = score(rows, arcvest_least_score=least)
    assert float(rows.one(tables.IDEA_QUEUE, found).score) == 14
    assert rows.one(tables.IDEA_QUEUE, found).status == status
    assert run.counts["rejected"] == (status == "rejected")


@pytest.mark.parametrize("given", ["", "x", "-1", "101", "nan", "inf"])
def test_a_slip_in_the_least_score(rows: Rows, given: str) -> None:
    """A score that nothing reaches, or that is none, is told by its variable's name."""
    with pytest.raises(BadInput, match="arcvest_least_score"):
        score(rows, arcvest_least_score=given)


def test_more_ideas_than_a_chunk(rows: Rows) -> None:
    """Ruling: set-based and in chunks; none is left out at a chunk's edge."""
    with rows.db.engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO idea_queue (source, url, title) "
            "SELECT 'news', 'https://n.test/' || n, 'Retirement' FROM generate_series(1, 2005) AS n"
        )
    assert score(rows, datetime.now(UTC)).counts["scored"] == 2005


def hostile() -> list[dict[str, Any]]:
    """Return ideas with the texts of strangers."""
    return [
        {"title": "<script>"},
        {"title": "\U0001f3e0" * 100},
        {"title": "x", "summary": "(a+)+$ " * 5_000},
    ]


@pytest.mark.parametrize("values", hostile())
def test_a_strangers_text_costs_little(rows: Rows, values: dict[str, Any]) -> None:
    """Texts are data; no text makes a score take long."""
    one = rows.idea(**values)
    score(rows)
    assert rows.one(tables.IDEA_QUEUE, one).score is not None
