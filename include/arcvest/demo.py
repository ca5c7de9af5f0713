"""Demo data: a believable week of ArcVest around a moment, in which each of its jobs has something to do.

The jobs themselves make the rest: `feeds` and `letters` are what the scans find on loopback.
"""

from __future__ import annotations

import uuid
from datetime import datetime, time, timedelta
from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects.postgresql import insert

from include.arcvest import ZONE
from include.arcvest.jobs import PIPELINE
from include.arcvest.tables import ACTIVITY_LOG, CONTENT_CALENDAR, IDEA_QUEUE, JOB_QUEUE
from include.as_of import local_date
from include.statements import statement

_PACKAGE = "include.arcvest"
_SPACE = uuid.UUID("3c3a0f0a-52d0-5b0e-8a51-7d7b6a9c2f11")

HOSTILE_TITLE = '<a href="https://evil.test">Free money</a> & Co'
"""A headline that is markup: it must arrive as text wherever it is shown."""

# Title, summary, source, hours since it was published.
_ARTICLES = (
    (
        "What a Roth conversion costs, and when it pays",
        "Taxes now or taxes later: a worked example.",
        "news",
        5,
    ),
    (
        "Social Security at 62, 67 or 70",
        "Three retirees, three choices, and what each of them gave up.",
        "news",
        9,
    ),
    ("The Fed holds rates; bonds rally", "Yields fell across the curve after the decision.", "bloomberg", 3),
    (
        "Estate planning after the second marriage",
        "Trusts, beneficiaries and the talk nobody wants.",
        "email",
        20,
    ),
    ("Medicare premiums rise again", "What the new brackets mean for a couple in retirement.", "news", 26),
    ("Stocks slip as inflation surprises", "The market had hoped for less.", "bloomberg", 30),
    (
        "Rebalancing a portfolio without a tax bill",
        "Where to sell, where to buy, and what to leave.",
        "news",
        50,
    ),
    ("An annuity is not an investment", "It is insurance; judge it as such.", "email", 75),
    ("Ten savings habits that survive a recession", "Small sums, kept up.", "news", 100),
    ("The best cat cafés of Austin", "Coffee with company.", "news", 120),
)
_NEWS = (
    (
        "Required minimum distributions: the new age",
        "Retirement accounts and the tax calendar, year by year.",
    ),
    ("Why your 401k statement looks different", "New rules for plan fees, and what to read first."),
    (
        "Inheritance and the ten-year rule",
        "An IRA that was inherited must be emptied; the order matters for tax.",
    ),
    ("Inflation cools, markets warm up", "Stocks and bonds rose together for the first time since spring."),
    ("Long-term care: the cost nobody plans for", "Financial planning for the years after 80."),
    ("A pension lump sum, or payments for life", "How to compare the two, with the interest rates of today."),
    (HOSTILE_TITLE, "<script>alert(1)</script><p>Wealth in <b>three</b> steps</p>"),
    ("Local bakery wins prize", "The bread is good."),
)
_BLOOMBERG = (
    ("Treasury yields climb before the auction", "Bonds fell and the dollar rose."),
    ("Wealth managers bet on diversification", "Portfolios move abroad."),
    ("Recession odds fall to a two-year low", "Economists see a soft landing for the market."),
    ("Estate taxes: Congress looks again", "A trust may not be what it was."),
)
_LETTERS = (
    (
        "Planner's Weekly <weekly@planners.example>",
        "Five questions on Roth IRAs",
        "Readers ask, we answer: tax.",
    ),
    ("Ana Núñez <ana@advisers.example>", "The savings rate, revisited", "Why households save again."),
    ("Bulletin <bulletin@markets.example>", "Interest rates: what to tell clients", "Bonds, briefly."),
)


def name(kind: str, number: object) -> uuid.UUID:
    """Return the id of a row of the demo, the same each time."""
    return uuid.uuid5(_SPACE, f"{kind}/{number}")


def seed(connection: Connection, now: datetime) -> None:
    """Insert the rows, relative to `now`; what is there already stays."""
    _ideas(connection, now)
    _history(connection, now)
    _waiting(connection, now)


def feeds(now: datetime) -> dict[str, Any]:
    """Return what the feed server on loopback serves, by path."""

    def items(articles: tuple[tuple[str, str], ...], place: str) -> list[dict[str, str]]:
        return [
            {
                "link": f"https://{place}.example/{local_date(now, ZONE).isoformat()}/{n}?utm_source=rss",
                "title": title,
                "summary": summary,
                "published": (now - timedelta(hours=n, minutes=20)).isoformat(),
            }
            for n, (title, summary) in enumerate(articles, start=1)
        ]

    return {
        "/arcvest/news": {"title": "Money News", "kind": "rss", "items": items(_NEWS, "money-news")},
        "/arcvest/bloomberg": {
            "title": "Bloomberg Markets",
            "kind": "atom",
            "items": items(_BLOOMBERG, "bloomberg"),
        },
    }


def letters(now: datetime) -> list[dict[str, str]]:
    """Return what the mailbox on loopback holds."""
    return [
        {
            "id": f"{local_date(now, ZONE).isoformat()}.{n}@letters.example",
            "from": sender,
            "subject": subject,
            "text": words,
            "date": (now - timedelta(hours=2 * n)).isoformat(),
        }
        for n, (sender, subject, words) in enumerate(_LETTERS, start=1)
    ]


def _add(connection: Connection, table: Table, rows: list[dict[str, Any]]) -> None:
    columns = {column for row in rows for column in row}
    whole = [{column: row.get(column) for column in columns} for row in rows]
    connection.execute(insert(table).on_conflict_do_nothing(), whole)


def _ideas(connection: Connection, now: datetime) -> None:
    statuses = ("selected", "selected", "scored", "scored", "processing", "completed", "completed",
                "completed", "rejected", "rejected")  # fmt: skip
    rows = []
    for n, ((title, summary, source, hours), status) in enumerate(
        zip(_ARTICLES, statuses, strict=True), start=1
    ):
        found = now - timedelta(hours=hours - 1)
        rows.append(
            {
                "id": name("idea", n),
                "source": source,
                "source_name": {"bloomberg": "Bloomberg Markets", "email": "Planner's Weekly"}.get(
                    source, "Money News"
                ),
                "url": f"https://archive.example/{name('article', n)}",
                "title": title,
                "summary": summary,
                "published_at": now - timedelta(hours=hours),
                "status": status,
                "score": 92 - 7 * n,
                "scored_at": found,
                "pipeline_step": "completed" if status == "completed" else None,
                "created_at": found,
                # The one in processing has been so for too long.
                "updated_at": now - timedelta(minutes=45) if status == "processing" else found,
            }
        )
    _add(connection, IDEA_QUEUE, [row | {"score_parts": {}, "pipeline_data": {}} for row in rows])
    today = local_date(now, ZONE)
    _add(
        connection,
        CONTENT_CALENDAR,
        [
            {
                "id": name("article", row["id"]),
                "idea_id": row["id"],
                "title": row["title"],
                "html": f"<p>{row['summary']}</p>",
                "excerpt": row["summary"],
                "tags": ["planning"],
                "image_prompt": "A desk by a window",
                "scheduled_date": today + timedelta(days=n),
                "status": "scheduled",
            }
            for n, row in enumerate((row for row in rows if row["status"] == "completed"), start=1)
        ],
    )


def _history(connection: Connection, now: datetime) -> None:
    """Insert the jobs of the last days' batches, ended as they do: one scan failed for good."""
    kinds = ("news_scan", "email_scan", "bloomberg_scan", "score_ideas", "select_daily")
    today = local_date(now, ZONE)
    jobs = []
    for days in range(1, 5):
        at = datetime.combine(today - timedelta(days=days), time(6, 30), ZONE)
        for n, kind in enumerate(kinds):
            failed = (days, kind) == (1, "email_scan")
            jobs.append(
                {
                    "id": name("job", f"{days}/{kind}"),
                    "job_type": kind,
                    "priority": 10 - n,
                    "payload": {"count": 6} if kind == "select_daily" else {},
                    "correlation_id": name("batch", days),
                    "created_at": at,
                    "next_run_at": at,
                    "outcome": "failed" if failed else "completed",
                    "attempts": 5 if failed else 1 + (days + n) % 2,
                    "started_at": at + timedelta(seconds=20 * n + 5),
                    "completed_at": at + timedelta(seconds=20 * n + 12),
                    "last_error": "mailbox arcvest_mailbox: no answer within 15 s" if failed else None,
                }
            )
    _end(connection, jobs)
    (failed,) = (job for job in jobs if job["outcome"] == "failed")
    _add(
        connection,
        ACTIVITY_LOG,
        [
            {
                "id": name("log", failed["id"]),
                "type": "job_failed_permanently",
                "metadata": {
                    "job_id": str(failed["id"]),
                    "job_type": failed["job_type"],
                    "attempts": failed["attempts"],
                    "error": failed["last_error"],
                },
                "created_at": failed["completed_at"],
            }
        ],
    )


def _end(connection: Connection, jobs: list[dict[str, Any]]) -> None:
    # The queue's guard lets rows come in as pending alone, and go by the steps that jobs go.
    columns = ("id", "job_type", "priority", "payload", "correlation_id", "created_at", "next_run_at")
    _add(connection, JOB_QUEUE, [{column: job[column] for column in columns} for job in jobs])
    names = ("id", "outcome", "attempts", "started_at", "completed_at", "last_error")
    binds = {name: [job[name] for job in jobs] for name in names}
    for step in ("demo_begin_jobs", "demo_end_jobs"):
        connection.execute(statement(_PACKAGE, step).clause, binds)


def _waiting(connection: Connection, now: datetime) -> None:
    """Insert what is due: two pipeline jobs, a batch that nobody has worked on yet, and a job that is stuck."""
    minutes = [now - timedelta(minutes=n) for n in range(60)]
    asked: list[tuple[str, dict[str, Any], int, str | None]] = [
        (PIPELINE, {"idea_id": str(name("idea", 1))}, 5, None),
        (PIPELINE, {"idea_id": str(name("idea", 2))}, 5, None),
        ("news_scan", {}, 10, "late"),
        ("email_scan", {"sources": "all"}, 10, None),
        ("post_to_social", {}, 1, None),
        ("email_scan", {"sources": "all"}, 10, "late"),
        ("bloomberg_scan", {}, 9, "late"),
        ("score_ideas", {}, 8, "late"),
        ("select_daily", {"count": 2}, 7, "late"),
    ]
    waiting = [
        {
            "id": name("waiting", n),
            "job_type": kind,
            "payload": payload,
            "priority": priority,
            "correlation_id": name("batch", batch) if batch else None,
            "created_at": minutes[40],
            "next_run_at": minutes[5],
        }
        for n, (kind, payload, priority, batch) in enumerate(asked, start=1)
    ]
    _add(connection, JOB_QUEUE, waiting)
    stuck = {
        "id": [name("waiting", 4)],
        "outcome": [None],
        "attempts": [1],
        "started_at": [minutes[35]],
        "completed_at": [None],
        "last_error": [None],
    }
    connection.execute(statement(_PACKAGE, "demo_begin_jobs").clause, stuck)
