"""Subscriptions: what is new since the last success, told once, with a status that says what became of it."""

from __future__ import annotations

import itertools
import threading
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy.exc import IntegrityError

from include.errors import BadInput, Outage, Permanent, Refused, Transient
from include.nifya import subscription_processing as job
from include.nifya import tables
from include.nifya.gazettes import Content
from include.nifya.job_types import NotReached, ProcessSubscription
from include.nifya.parser_breakers import Breakers, LeftAlone
from tests.fakes.world import FakeAlerts
from tests.nifya.rows import AS_OF, Rows
from tests.nifya.world import FakeGazettes, content

TODAY = date(2026, 11, 25)
BECAS = content("Becas", "https://www.boe.es/becas")


def days(*ago: int) -> Mapping[str, Sequence[tuple[date, Content]]]:
    """Return a gazette with one entry on each of these days."""
    return {
        "boe": [(TODAY - timedelta(days=n), content(f"Becas {n}", f"https://www.boe.es/{n}")) for n in ago]
    }


def outside(gazettes: FakeGazettes) -> job.Outside:
    """Return the collaborators around these gazettes."""
    return job.Outside(gazettes, FakeAlerts())


def told(rows: Rows) -> list[str]:
    """Return the titles of all notifications."""
    return [row.title for row in rows.all(tables.NOTIFICATIONS, tables.NOTIFICATIONS.c.source_url)]


@pytest.mark.parametrize(
    ("last_success", "created", "since"),
    [
        (None, AS_OF - timedelta(days=3), date(2026, 11, 22)),
        (AS_OF - timedelta(hours=5), AS_OF - timedelta(days=3), date(2026, 11, 25)),
        # 23:30 UTC of the 23rd is the 24th in Madrid.
        (datetime(2026, 11, 23, 23, 30, tzinfo=UTC), AS_OF - timedelta(days=99), date(2026, 11, 24)),
        (datetime(2026, 11, 23, 22, 30, tzinfo=UTC), AS_OF - timedelta(days=99), date(2026, 11, 23)),
        (datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC), date(2025, 11, 25)),
    ],
)
def test_content_since_the_last_success(
    rows: Rows, last_success: datetime | None, created: datetime, since: date
) -> None:
    """Ruling: a missed run loses nothing; a new subscription begins with the day it was made, a year is the most."""
    rows.user()
    one = rows.subscription(created_at=created)
    if last_success:
        rows.add(
            tables.SUBSCRIPTION_PROCESSING,
            subscription_id=one,
            status="failed",
            last_run_at=AS_OF - timedelta(hours=1),
            last_success_at=last_success,
        )
    gazettes = FakeGazettes({})
    rows.perform(job, outside(gazettes), subscription_id=str(one))
    assert {asked[:2] for asked in gazettes.asked} == {("boe", ("becas",))}
    spans = [asked[2:] for asked in gazettes.asked]
    assert (spans[0][0], spans[-1][1]) == (since, TODAY)
    # Far back in stages, none too long, none left out or asked twice.
    assert all(last - first < job.STAGE for first, last in spans)
    assert all(after[0] - before[1] == timedelta(days=1) for before, after in itertools.pairwise(spans))


def test_prompts_that_are_left_out_are_told_of(rows: Rows) -> None:
    """A gazette is asked for fifty at most; whoever wrote more must not wait for the others in vain unseen."""
    rows.user()
    rows.subscription(prompts=[f"palabra{n}" for n in range(job.MOST_PROMPTS)])
    run = rows.perform(job, outside(FakeGazettes(days(0))))
    assert not any("prompts" in note for note in run.notes)
    rows.subscription(prompts=[f"palabra{n}" for n in range(job.MOST_PROMPTS + 1)])
    gazettes = FakeGazettes(days(0))
    run = rows.perform(job, outside(gazettes), AS_OF + timedelta(minutes=1))
    assert {len(asked[1]) for asked in gazettes.asked} == {job.MOST_PROMPTS}
    assert "1 subscriptions have over 50 prompts; their first 50 are asked for" in run.notes


def test_a_catch_up_goes_on_where_it_broke_off(rows: Rows) -> None:
    """A gazette that gives way under a year's questions must not be asked for all of it again, for ever."""
    rows.user()
    one = rows.subscription(created_at=AS_OF - timedelta(days=100))
    questions: list[int] = []

    class Tired(FakeGazettes):
        def new_content(self, parser: str, prompts: Any, since: Any, until: Any) -> Any:
            questions.append(1)
            if len(questions) % 3 == 0:
                raise Outage("no whole answer in time")
            return super().new_content(parser, prompts, since, until)

    gazettes = Tired(days(0, 20, 50, 99))
    with pytest.raises(Outage):
        rows.perform(job, outside(gazettes), subscription_id=str(one))
    status = rows.status(one)
    assert (status.status, len(told(rows))) == ("failed", 2)
    assert status.last_success_at == datetime(2026, 10, 16, tzinfo=ZoneInfo("Europe/Madrid"))
    gazettes.asked.clear()
    rows.perform(job, outside(gazettes), AS_OF + timedelta(minutes=1), subscription_id=str(one))
    assert [asked[2] for asked in gazettes.asked] == [date(2026, 10, 16), date(2026, 11, 15)]
    assert (rows.status(one).status, len(told(rows))) == ("completed", 4)


def test_a_slow_gazette_is_asked_until_the_time_is_up(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not reached is no failure and no try; what was answered is written soon, not all at the end."""
    rows.user()
    ids = [rows.subscription() for _ in range(25)]
    clock = [0.0]
    monkeypatch.setattr(job, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    written: list[int] = []

    class Slow(FakeGazettes):
        def new_content(self, parser: str, prompts: Any, since: Any, until: Any) -> Any:
            clock[0] += 10
            written.append(len(rows.all(tables.SUBSCRIPTION_PROCESSING)))
            return super().new_content(parser, prompts, since, until)

    answers = job.handle(rows.run(job), Slow(days(0)), [ProcessSubscription(one) for one in ids])
    assert Counter(map(type, answers)) == {type(None): 12, NotReached: 13}
    assert written == [0] * 10 + [10] * 2
    assert {row.status for row in rows.all(tables.SUBSCRIPTION_PROCESSING)} == {"completed"}
    assert len(rows.all(tables.SUBSCRIPTION_PROCESSING)) == 12


def test_the_time_is_up_within_a_catch_up(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its stages are kept too, so that a subscription of a year ago comes to its end in a few runs."""
    rows.user()
    one = rows.subscription(created_at=AS_OF - timedelta(days=100))
    clock = [0.0]
    monkeypatch.setattr(job, "time", SimpleNamespace(monotonic=lambda: clock[0]))

    class Slow(FakeGazettes):
        def new_content(self, parser: str, prompts: Any, since: Any, until: Any) -> Any:
            clock[0] += 70
            return super().new_content(parser, prompts, since, until)

    gazettes = Slow(days(0, 99))
    (answer,) = job.handle(rows.run(job), gazettes, [ProcessSubscription(one)])
    status = rows.status(one)
    assert (type(answer), status.status, status.failures_in_row) == (NotReached, "pending", 0)
    assert (len(gazettes.asked), told(rows)) == (2, ["Becas 99"])
    later = rows.run(job, AS_OF + timedelta(minutes=1))
    assert job.handle(later, gazettes, [ProcessSubscription(one)]) == [None]
    assert (len(gazettes.asked), len(told(rows))) == (4, 2)


def test_one_notification_an_address(rows: Rows) -> None:
    """Ruling: unique per (subscription, source URL), however often and by however many it is found."""
    rows.user()
    first, second = rows.subscription(), rows.subscription()
    gazettes = FakeGazettes(days(0, 1, 9))
    for hour in range(3):
        run = rows.perform(job, outside(gazettes), AS_OF + timedelta(hours=hour))
        assert run.counts["newNotifications"] == (4 if hour == 0 else 0)
    assert told(rows) == ["Becas 0", "Becas 0", "Becas 1", "Becas 1"]
    assert {row.user_id for row in rows.all(tables.NOTIFICATIONS)} == {"ana"}
    assert {row.subscription_id for row in rows.all(tables.NOTIFICATIONS)} == {first, second}


def test_two_workers_tell_once(rows: Rows) -> None:
    """R4: the unique constraint holds where both look before either writes."""
    rows.user()
    one = rows.subscription()
    both = threading.Barrier(2)

    class Together(FakeGazettes):
        def new_content(self, parser: str, prompts: Any, since: Any, until: Any) -> Any:
            both.wait(10)
            return super().new_content(parser, prompts, since, until)

    threads = [
        threading.Thread(
            target=rows.perform, args=(job, outside(Together(days(0)))), kwargs={"subscription_id": str(one)}
        )
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert told(rows) == ["Becas 0"]
    assert rows.status(one).status == "completed"


def test_the_constraint_itself(rows: Rows) -> None:
    """R4: what an application writes beside us is held by the same constraint."""
    rows.user()
    first, second = rows.subscription(), rows.subscription()
    for one in (first, second):
        rows.notification(one, source_url="https://www.boe.es/1")
    with pytest.raises(IntegrityError, match="source_url"):
        rows.notification(first, source_url="https://www.boe.es/1")


def test_the_status_says_what_became_of_it(rows: Rows) -> None:
    """Ruling: status, error and the number of failures in a row per subscription; a success forgets them."""
    rows.user()
    one = rows.subscription()
    gazettes = FakeGazettes(days(0), down={"boe"})
    for hour in range(2):
        with pytest.raises(Outage, match="HTTP 500"):
            rows.perform(job, outside(gazettes), AS_OF + timedelta(hours=hour), subscription_id=str(one))
    failed = rows.status(one)
    assert (failed.status, failed.failures_in_row, failed.last_success_at) == ("failed", 2, None)
    assert failed.error == "gazette boe answered HTTP 500"
    gazettes.down.clear()
    rows.perform(job, outside(gazettes), AS_OF + timedelta(hours=2), subscription_id=str(one))
    fine = rows.status(one)
    assert (fine.status, fine.failures_in_row, fine.error) == ("completed", 0, None)
    assert fine.last_success_at == fine.last_run_at == AS_OF + timedelta(hours=2)


def test_another_try_of_the_same_run_is_no_further_failure(rows: Rows) -> None:
    """An Airflow retry has the run's own as-of; three tries of one run are one failed run."""
    rows.user()
    one = rows.subscription()
    for _ in range(3):
        with pytest.raises(Outage):
            rows.perform(job, outside(FakeGazettes({}, down={"boe"})), subscription_id=str(one))
    assert rows.status(one).failures_in_row == 1


@pytest.mark.parametrize(
    ("values", "error", "reason"),
    [
        ({"active": False}, BadInput, "is inactive"),
        ({"type_id": "borme"}, BadInput, "no parser reads for type_id 'borme'"),
        ({"prompts": {"a": 1}}, BadInput, "prompts is not a list of texts"),
        ({"prompts": [1, 2]}, BadInput, "prompts is not a list of texts"),
        ({"prompts": ["refused"]}, Refused, "HTTP 400"),
    ],
)
def test_what_is_permanent(rows: Rows, values: dict[str, Any], error: type[Permanent], reason: str) -> None:
    """Ruling: a subscription that can't be processed fails for good, and its status says why."""
    rows.user()
    one = rows.subscription(**values)
    with pytest.raises(error, match=reason):
        rows.perform(job, outside(FakeGazettes({}, refused={"refused"})), subscription_id=str(one))
    assert reason in rows.status(one).error


@pytest.mark.parametrize(("written", "failed"), [("infinity", 1), ("-infinity", 0), ("0044-03-15 BC", 0)])
def test_a_date_that_python_lacks_fails_alone(rows: Rows, written: str, failed: int) -> None:
    """Ruling 6: one odd date in an application's table must not stop the other subscriptions."""
    rows.user()
    odd, fine = rows.subscription(), rows.subscription()
    rows.execute(f"UPDATE subscriptions SET created_at = '{written}' WHERE id = '{odd}'")
    run = rows.perform(job, outside(FakeGazettes(days(0))))
    assert run.counts["failed"] == failed
    assert rows.status(fine).status == "completed"
    assert rows.status(odd).status == ("failed" if failed else "completed")


def test_a_missing_subscription_is_permanent(rows: Rows) -> None:
    """Nothing is written for what is not there, and the message says which one."""
    missing = uuid.uuid4()
    with pytest.raises(BadInput, match=f"subscription {missing} was not found"):
        rows.perform(job, outside(FakeGazettes({})), subscription_id=str(missing))
    assert rows.all(tables.SUBSCRIPTION_PROCESSING) == []


def test_one_that_is_ended_meanwhile_is_told_of_nothing(rows: Rows) -> None:
    """Ruling 16: the world moves while the gazette answers."""
    rows.user()
    one = rows.subscription()
    with rows.meanwhile(
        "a row is a subscription as it stands", lambda: rows.change(tables.SUBSCRIPTIONS, one, active=False)
    ):
        rows.perform(job, outside(FakeGazettes(days(0))), subscription_id=str(one))
    assert told(rows) == []


def test_a_run_that_is_too_old_says_so(rows: Rows) -> None:
    """T3: a backfill must not undo what a later run has recorded."""
    rows.user()
    one = rows.subscription()
    rows.perform(job, outside(FakeGazettes(days(0))), subscription_id=str(one))
    late = FakeGazettes(days(0), down={"boe"})
    run = rows.perform(job, outside(late), AS_OF - timedelta(days=1), subscription_id=str(one))
    assert late.asked == []
    assert run.counts["skipped"] == 1
    assert "too old" in run.notes[0]
    assert rows.status(one).status == "completed"


def test_operators_are_told_after_three_failures_in_a_row_once(rows: Rows) -> None:
    """Ruling: an alert after three failed runs in a row; after a success the next streak is told anew."""
    rows.user()
    rows.subscription()
    alerts = FakeAlerts()
    broken, whole = FakeGazettes({}, refused={"becas"}), FakeGazettes({})
    told_after = []
    for hour, gazettes in enumerate([broken] * 5 + [whole] + [broken] * 3):
        rows.perform(job, job.Outside(gazettes, alerts), AS_OF + timedelta(hours=hour))
        told_after.append(len(alerts.told))
    assert told_after == [0, 0, 1, 1, 1, 1, 1, 1, 2]


def test_jobs_of_the_queue_are_answered_one_by_one(rows: Rows) -> None:
    """The scheduled jobs' handler: one bad subscription must not fail the others that came with it."""
    rows.user()
    rows.user("eve")
    good, odd = rows.subscription(), rows.subscription(type_id="borme")
    missing = uuid.uuid4()
    datas = [
        ProcessSubscription(good),
        ProcessSubscription(odd, "ana"),
        ProcessSubscription(missing),
        ProcessSubscription(good, "eve"),
        ProcessSubscription(good, "ana"),
    ]
    run = rows.run(job)
    answers = job.handle(run, FakeGazettes(days(0)), datas)
    assert [type(answer) for answer in answers] == [type(None), BadInput, BadInput, BadInput, type(None)]
    assert "is not of user 'eve'" in str(answers[3])
    assert told(rows) == ["Becas 0"]


def test_a_foreign_subscription_is_not_even_processed(rows: Rows) -> None:
    """A job that names another user's subscription must not work on it at all."""
    rows.user()
    one = rows.subscription()
    gazettes = FakeGazettes(days(0))
    (answer,) = job.handle(rows.run(job), gazettes, [ProcessSubscription(one, "eve")])
    assert isinstance(answer, BadInput)
    assert gazettes.asked == []


def test_no_transaction_is_open_while_a_gazette_answers(rows: Rows) -> None:
    """R5: a gazette that takes its time must not hold a transaction open."""
    rows.user()
    rows.subscription()
    open_then: list[int] = []

    def look(happening: str) -> None:
        with rows.db.engine.connect() as connection:
            found = connection.exec_driver_sql(
                "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%%' "
                "AND datname = current_database()"
            )
            open_then.append(int(found.scalar_one()))

    rows.perform(job, outside(FakeGazettes(days(0), tick=look)))
    assert open_then == [0, 0]


class Clock:
    """Moves a breaker's instants, since the database's clock can't be moved."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    def passes(self, seconds: int) -> None:
        self.rows.execute(
            f"UPDATE parser_breakers SET open_until = open_until - interval '{seconds} s', "
            f"probe_until = probe_until - interval '{seconds} s'"
        )


def ask(rows: Rows, *, well: bool = True) -> str:
    """Ask the parser as a process of its own would, and say what came: answer, outage, refused or left alone."""

    def question() -> str:
        if not well:
            raise Outage("HTTP 500")
        return "answer"

    try:
        return Breakers(rows.run(job)).ask("boe", question)
    except LeftAlone:
        return "left alone"
    except Transient:
        return "outage"


def test_the_breaker(rows: Rows) -> None:
    """Ruling: five failures in a row open it for 60 s; then one probe decides, whoever asks, in any process."""
    clock = Clock(rows)
    assert [ask(rows, well=False) for _ in range(4)] == ["outage"] * 4
    assert ask(rows) == "answer"
    assert [ask(rows, well=False) for _ in range(6)] == ["outage"] * 5 + ["left alone"]
    clock.passes(58)
    assert ask(rows) == "left alone"
    clock.passes(3)
    assert ask(rows, well=False) == "outage"
    assert ask(rows) == "left alone"
    clock.passes(61)
    assert [ask(rows), ask(rows)] == ["answer", "answer"]


def test_one_caller_probes_at_a_time(rows: Rows) -> None:
    """While one process probes, the others leave the parser alone; a probe that died is given up after a while."""
    for _ in range(5):
        ask(rows, well=False)
    clock = Clock(rows)
    clock.passes(61)
    seen: list[str] = []

    def slow() -> str:
        seen.append(ask(rows))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Breakers(rows.run(job)).ask("boe", slow)
    assert seen == ["left alone"]
    assert ask(rows) == "left alone"
    clock.passes(301)
    assert ask(rows) == "answer"


def test_a_refusal_is_no_failure_of_the_parser(rows: Rows) -> None:
    """One subscription whose question is refused must not shut the gazette for all others."""
    for _ in range(7):
        with pytest.raises(Refused):
            Breakers(rows.run(job)).ask("boe", lambda: (_ for _ in ()).throw(Refused("HTTP 400")))
    assert ask(rows) == "answer"


@pytest.mark.parametrize("fault", [BadInput("the connection is missing"), KeyError("x")])
def test_our_own_fault_says_nothing_of_the_parser(rows: Rows, fault: Exception) -> None:
    """A connection that is set wrong, or a bug, neither forgets the parser's failures nor keeps others from a probe."""

    def broken() -> None:
        with pytest.raises(type(fault)):
            Breakers(rows.run(job)).ask("boe", lambda: (_ for _ in ()).throw(fault))

    for _ in range(4):
        ask(rows, well=False)
    broken()
    (breaker,) = rows.all(tables.PARSER_BREAKERS)
    assert breaker.failures == 4
    assert [ask(rows, well=False), ask(rows)] == ["outage", "left alone"]
    Clock(rows).passes(61)
    broken()
    (breaker,) = rows.all(tables.PARSER_BREAKERS)
    assert (breaker.failures, breaker.probe_until) == (5, None)
    assert ask(rows) == "answer"


def test_a_parser_that_is_down_is_asked_five_times_not_a_thousand(rows: Rows) -> None:
    """The breaker works within a run too: the rest fail at once, as transient, and are tried again later."""
    rows.user()
    for _ in range(12):
        rows.subscription()
    rows.subscription(type_id="doga")
    gazettes = FakeGazettes({"doga": [(TODAY, BECAS)]}, down={"boe"})
    rows.perform(job, outside(gazettes))
    assert [parser for parser, *_ in gazettes.asked].count("boe") == 5
    assert told(rows) == ["Becas"]
    errors = [row.error for row in rows.all(tables.SUBSCRIPTION_PROCESSING) if row.error]
    assert sum("left alone" in error for error in errors) == 7
