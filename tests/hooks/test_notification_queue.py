"""Jobs that the Python port adds are taken by BullMQ's own worker of Node, each once."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Sequence
from typing import Any

import pytest
import redis.asyncio
from bullmq import Queue

from hooks.notification_queue import JOB_NAME, BullQueue, NotificationQueueHook, notification_queue
from include.errors import BadInput, Outage
from include.leadmetrics.notifications import QUEUE_NAME, QueuedJob
from include.mail import Accepted, Deferred
from tests.leadmetrics.redis_server import PASSWORD, RedisServer, redis_server

__all__ = ["redis_server"]


def jobs(number: int = 3) -> list[QueuedJob]:
    """Return jobs with data that must survive both languages."""
    return [
        QueuedJob(
            uuid.uuid4(), f"signup-reminder-early__s{n}", {"recipient": f"ñ{n}@example.test", "n": [n, None]}
        )
        for n in range(number)
    ]


def test_nodes_worker_takes_what_was_added(redis_server: RedisServer) -> None:
    """Id, name and data arrive as they were said; two databases and prefixes keep apart."""
    made = jobs()
    added = redis_server.bull(prefix="crm").add(made)
    assert added == [Accepted(job.job_id) for job in made]
    with redis_server.worker(prefix="crm") as worker:
        taken = worker.given(3)
    assert sorted(taken, key=lambda job: job["id"]) == [
        {"id": job.job_id, "name": JOB_NAME, "data": dict(job.data)} for job in made
    ]


@pytest.mark.parametrize("forgets", [False, True], ids=["keeps", "forgets"])
def test_added_twice_is_one_job(redis_server: RedisServer, forgets: bool) -> None:  # noqa: FBT001 - a case
    """A killed run adds again: while the job waits, and after it was done, also by a worker that forgets at once."""
    queue = redis_server.bull()
    made = jobs()
    for _ in range(2):
        assert queue.add(made) == [Accepted(job.job_id) for job in made]
    with redis_server.worker(forgets=forgets) as worker:
        assert len(worker.given(3)) == 3
        assert queue.add(made) == [Accepted(job.job_id) for job in made]
        queue.add([QueuedJob(uuid.uuid4(), "last", {})])
        assert [job["id"] for job in worker.given(4)].count(made[0].job_id) == 1
        assert len(worker.jobs) == 4


def test_what_another_job_throws_out(redis_server: RedisServer) -> None:
    """An application's job may keep few finished ones, of all; ours is one all the same when it is added again."""
    queue = redis_server.bull()
    with redis_server.worker() as worker:
        queue.add(jobs(1))
        worker.given(1)
        asyncio.run(add_theirs(redis_server, 4))
        worker.given(5)
        assert [type(one) for one in queue.add(jobs(1))] == [Accepted]
        asyncio.run(add_theirs(redis_server, 1))
        assert [job["id"] for job in worker.given(6)].count(jobs(1)[0].job_id) == 1


async def add_theirs(server: RedisServer, number: int) -> None:
    """Add jobs as an application does that wants two finished jobs kept, no more."""
    client = redis.asyncio.Redis(host="127.0.0.1", port=server.port, password=PASSWORD, decode_responses=True)
    theirs = Queue(QUEUE_NAME, {"connection": client})
    for _ in range(number):
        await theirs.add("notification", {}, {"removeOnComplete": 2})
    await theirs.close()


def test_nothing_to_add(redis_server: RedisServer) -> None:
    """No jobs is no request."""
    redis_server.stop()
    assert redis_server.bull().add([]) == []


def test_redis_is_away(redis_server: RedisServer) -> None:
    """Nobody can tell whether a transaction without an answer came through: every job is in doubt."""
    queue = redis_server.bull()
    redis_server.stop()
    with pytest.raises(Outage, match="connection leadmetrics_redis: Redis: ") as raised:
        queue.check()
    assert raised.value.service == "leadmetrics_redis"
    outcomes: Sequence[Any] = queue.add(jobs(2))
    assert [type(one) for one in outcomes] == [Deferred, Deferred]
    assert not any(one.certain for one in outcomes)


def test_redis_that_hangs(redis_server: RedisServer) -> None:
    """A Redis that takes the connection and says nothing is an outage after the timeout, not a stuck run."""
    redis_server.suspend()
    try:
        with pytest.raises(Outage):
            redis_server.bull(timeout=0.3).check()
    finally:
        redis_server.resume()
    redis_server.bull(timeout=10).check()


def test_a_wrong_password(redis_server: RedisServer) -> None:
    """R3: our key is wrong, which is an outage; the message names the connection and never the secret."""
    queue = BullQueue(redis_server.access(password=f"{PASSWORD}x"))
    with pytest.raises(Outage, match="leadmetrics_redis") as raised:
        queue.check()
    assert PASSWORD not in str(raised.value)


def connect(monkeypatch: pytest.MonkeyPatch, **said: Any) -> None:
    """Set the connection in the environment, as Airflow takes it."""
    monkeypatch.setenv("AIRFLOW_CONN_LEADMETRICS_REDIS", json.dumps({"conn_type": "almanac_redis"} | said))


def test_the_connection_is_the_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the connection there is no queue; with it there is, without a word to Redis."""
    assert notification_queue("leadmetrics_redis") is None
    connect(monkeypatch, host="127.0.0.1", port=1)
    assert isinstance(notification_queue("leadmetrics_redis"), BullQueue)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"conn_type": "http"}, "connection leadmetrics_redis: type must be almanac_redis: http"),
        ({"schema": "zero"}, "connection leadmetrics_redis: schema must be the number of a database: 'zero'"),
        ({"extra": {"tls": "perhaps"}}, "connection leadmetrics_redis: extra 'tls' must be true or false"),
        ({"extra": {"timeout": 0}}, "connection leadmetrics_redis: extra 'timeout' must be between"),
    ],
)
def test_a_connection_that_can_not_be(
    monkeypatch: pytest.MonkeyPatch, said: dict[str, Any], message: str
) -> None:
    """What is wrong is named with the connection."""
    connect(monkeypatch, **said)
    with pytest.raises(BadInput, match=message):
        notification_queue("leadmetrics_redis")


def test_the_test_button(redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person who presses Test hears what works, or why it does not, without the secret."""
    connect(monkeypatch, host="127.0.0.1", port=redis_server.port, password=PASSWORD)
    works, said = NotificationQueueHook("leadmetrics_redis").test_connection()
    assert works
    assert said.endswith("answers; jobs go to bull:notifications__email")
    redis_server.stop()
    works, said = NotificationQueueHook("leadmetrics_redis").test_connection()
    assert not works
    assert PASSWORD not in said
