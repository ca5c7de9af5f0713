"""What every DAG says of itself, from the catalogue's columns: attempts, delays, timeout, pool, priority."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from almanac.alerts import tell_task_failed
from almanac.retries import ExactDelays

PRIORITIES = {"HIGH": 10, "NORMAL": 5, "LOW": 1}
DELAYS = (60, 300)
TIMEOUT = 600
_SPARE = timedelta(minutes=5)


def work(
    *,
    pool: str,
    priority: str,
    delays: Sequence[int] = DELAYS,
    timeout: int = TIMEOUT,
    owner: str = "almanac",
) -> dict[str, Any]:
    """Return the arguments of tasks that work: one attempt more than there are delays.

    `delays` are the seconds before attempt 2, 3, …; `timeout` is what one attempt may take, in seconds.
    """
    return {
        "owner": owner,
        "pool": pool,
        "priority_weight": PRIORITIES[priority],
        "weight_rule": "absolute",
        "retries": len(delays),
        # What a killed process waits; every other failure waits what the policy says.
        "retry_delay": timedelta(seconds=delays[0]) if delays else timedelta(0),
        "retry_policy": ExactDelays(tuple(delays)),
        "execution_timeout": timedelta(seconds=timeout),
        "on_failure_callback": tell_task_failed,
    }


def run_limit(*, delays: Sequence[int] = DELAYS, timeout: int = TIMEOUT) -> timedelta:
    """Return how long a whole run may take: every attempt, every delay, and five minutes."""
    return timedelta(seconds=(len(delays) + 1) * timeout + sum(delays)) + _SPARE
