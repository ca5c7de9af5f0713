"""An error's kind decides whether it is tried again, and the delays are exact."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest
from airflow.sdk import RetryAction
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from almanac.retries import ExactDelays
from include.errors import (
    BadInput,
    Busy,
    Outage,
    OutcomeUnknown,
    Permanent,
    QuotaExhausted,
    Refused,
    Transient,
)
from include.run import EngineDatabase

POLICY = ExactDelays((60, 300))
MOST = 2


@pytest.mark.parametrize("error", [Permanent, BadInput, Refused, OutcomeUnknown])
def test_a_permanent_error_is_not_tried_again(error: type[Permanent]) -> None:
    """Ruling 7: it gives the same answer every time, and would wake a person six minutes late."""
    decision = POLICY.evaluate(error("certificate_id: there is none"), 1, MOST)
    assert decision.action is RetryAction.FAIL
    assert decision.reason == "certificate_id: there is none"


@pytest.mark.parametrize(
    "error", [Transient("t"), Outage("t"), QuotaExhausted("t"), Busy("t"), KeyError("t"), TimeoutError("t")]
)
@pytest.mark.parametrize(("try_number", "seconds"), [(1, 60), (2, 300), (3, 300)])
def test_any_other_is_tried_again_after_exactly_so_long(
    error: Exception, try_number: int, seconds: int
) -> None:
    """Ruling 12: a second attempt after 60 s, a third after 300; Airflow's own backoff adds jitter."""
    decision = POLICY.evaluate(error, try_number, MOST)
    assert decision.action is RetryAction.RETRY
    assert decision.retry_delay == timedelta(seconds=seconds)


def test_what_the_data_caused_is_permanent(clearpath: EngineDatabase) -> None:
    """A statement that the data makes fail fails again; its reason holds none of the values."""
    with pytest.raises(DBAPIError) as failed, clearpath.engine.begin() as connection:
        connection.execute(text("SELECT CAST(:body AS integer) / 0"), {"body": "7"})
    decision = POLICY.evaluate(failed.value, 1, MOST)
    assert decision.action is RetryAction.FAIL
    assert decision.reason == "division by zero"


def test_a_lost_connection_is_not(clearpath: EngineDatabase) -> None:
    """A database that restarts is there again a minute later."""
    with pytest.raises(DBAPIError) as failed, clearpath.engine.connect() as connection:
        connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
    assert isinstance(failed.value.orig, psycopg.OperationalError)
    assert POLICY.evaluate(failed.value, 1, MOST).action is RetryAction.RETRY
