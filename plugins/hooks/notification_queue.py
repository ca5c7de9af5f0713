"""The application's queue of notifications: BullMQ on Redis, through BullMQ's own Python port.

The connection's host is Redis's, its schema the number of the database; the extra may hold `tls`, `ca_file`,
`prefix` (BullMQ's, without it `bull`) and `timeout`. A job that is added again under its id is one job, as long
as BullMQ remembers it: that is said with each job, by its options and by a key of its own, since a worker's setting or
another job's options may forget the job at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from airflow.sdk import BaseHook

from hooks.connections import Access, UnknownConnection, access
from include.errors import AlmanacError, Outage
from include.leadmetrics.notifications import QUEUE_NAME, QueuedJob
from include.mail import Accepted, Deferred, Outcome, Rejected

if TYPE_CHECKING:
    from bullmq import Queue

JOB_NAME = "notification"
_TYPES = ("almanac_redis", "redis", "rediss")
_KEPT = timedelta(hours=48)
_MARGIN = timedelta(hours=1)

Answer = TypeVar("Answer")


def notification_queue(conn_id: str) -> BullQueue | None:
    """Return the queue behind an Airflow connection, without asking it anything; None if there is no connection.

    Raises BadInput if the connection says something that can't be, Outage if Airflow could not be asked.
    """
    try:
        return BullQueue(access(conn_id))
    except UnknownConnection:
        return None


class BullQueue:
    """The queue `notifications__email`."""

    remembers = _KEPT - _MARGIN

    def __init__(self, said: Access) -> None:
        if said.conn_type and said.conn_type not in _TYPES:
            raise said.bad("type", f"must be {_TYPES[0]}: {said.conn_type}")
        self._said = said
        self._prefix = said.text("prefix") or "bull"
        database = said.schema or "0"
        if not (database.isascii() and database.isdigit()):
            raise said.bad("schema", f"must be the number of a database: {database!r}")
        self._redis: dict[str, Any] = {
            "host": said.host or "localhost",
            "port": said.port or 6379,
            "db": int(database),
            "username": said.login,
            "password": said.password,
        }
        if said.flag("tls", default=said.conn_type == "rediss"):
            self._redis |= {"ssl": True, "ssl_ca_certs": said.text("ca_file")}
        self._seconds = said.number("timeout", 10, 0.1, 600)

    def check(self) -> None:
        """Raise Outage if Redis does not answer."""
        self._do(lambda queue: queue.client.info("server"))

    def add(self, jobs: Sequence[QueuedJob]) -> Sequence[Outcome]:
        """Add jobs in one transaction of Redis; whatever Redis does is an outcome, the same for all."""
        if not jobs:
            return []
        kept = {"age": round(_KEPT.total_seconds())}
        bulk = [
            {
                "name": JOB_NAME,
                "data": dict(job.data),
                "opts": {
                    "jobId": job.job_id,
                    "removeOnComplete": kept,
                    "removeOnFail": kept,
                    # Whatever another job's options throw out of the queue, this key stays.
                    "deduplication": {"id": job.job_id, "ttl": round(_KEPT.total_seconds() * 1000)},
                },
            }
            for job in jobs
        ]
        try:
            added = self._do(lambda queue: queue.addBulk(bulk))
        except Outage as error:
            # The transaction may have come through although its answer did not.
            return [Deferred(str(error), certain=False)] * len(jobs)
        return [
            Accepted(job.job_id)
            if str(one.id) == job.job_id
            else Rejected(f"BullMQ answered {str(one.id)[:80]!r} for job {job.job_id!r}")
            for job, one in zip(jobs, added, strict=True)
        ]

    def test(self) -> str:
        """Ask Redis for its version; return what works. Raises Outage."""
        found = self._do(lambda queue: queue.client.info("server"))
        return f"Redis {found.get('redis_version')} answers; jobs go to {self._prefix}:{QUEUE_NAME}"

    def _do(self, ask: Callable[[Queue], Awaitable[Answer]]) -> Answer:
        import redis.exceptions  # noqa: PLC0415 - heavy, and only a sending task needs it

        async def asked() -> Answer:
            queue = self._open()
            try:
                async with asyncio.timeout(2 * self._seconds):
                    return await ask(queue)
            finally:
                await queue.close()

        try:
            return asyncio.run(asked())
        except (redis.exceptions.RedisError, OSError, TimeoutError) as error:
            said = self._said
            why = said.for_log(str(error)) or type(error).__name__
            raise Outage(f"connection {said.conn_id}: Redis: {why}", service=said.conn_id) from None

    def _open(self) -> Queue:
        import redis.asyncio  # noqa: PLC0415 - as above
        from bullmq import Queue  # noqa: PLC0415 - as above
        from redis.asyncio.retry import Retry  # noqa: PLC0415 - as above
        from redis.backoff import NoBackoff  # noqa: PLC0415 - as above

        # Its own client tries again for minutes; a run goes on without Redis and comes back later.
        client = redis.asyncio.Redis(
            **self._redis,
            decode_responses=True,
            socket_timeout=self._seconds,
            socket_connect_timeout=self._seconds,
            retry=Retry(NoBackoff(), 0),
        )
        # It takes a client as well, which its types leave out.
        options: Any = {"connection": client, "prefix": self._prefix}
        return Queue(QUEUE_NAME, options)


class NotificationQueueHook(BaseHook):
    """What Airflow's connection form and its Test button know of a queue's connection."""

    conn_name_attr = "redis_conn_id"
    default_conn_name = "leadmetrics_redis"
    conn_type = "almanac_redis"
    hook_name = "BullMQ on Redis (Almanac)"

    def __init__(self, redis_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.redis_conn_id = redis_conn_id

    def get_conn(self) -> BullQueue:
        """Return the queue; see `notification_queue`."""
        return BullQueue(access(self.redis_conn_id))

    def test_connection(self) -> tuple[bool, str]:
        """Try the connection without adding anything; return whether it works, and a sentence on it."""
        try:
            return True, self.get_conn().test()
        except AlmanacError as error:
            return False, str(error)
