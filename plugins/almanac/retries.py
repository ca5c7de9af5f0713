"""Which failures are tried again, and after exactly how long."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from airflow.sdk import RetryDecision, RetryPolicy
from sqlalchemy.exc import DBAPIError

from include.errors import Permanent
from include.run import is_row_fault, row_error

if TYPE_CHECKING:
    from airflow.sdk import Context


@dataclass(frozen=True)
class ExactDelays(RetryPolicy):
    """Fail at once what can't be mended by trying again; wait `delays[n - 1]` seconds after attempt n.

    Airflow's own backoff adds jitter; these are exact.
    """

    delays: tuple[int, ...]

    def evaluate(
        self,
        exception: BaseException,
        try_number: int,
        max_tries: int,  # noqa: ARG002 - the policy's form
        context: Context | None = None,  # noqa: ARG002 - the policy's form
    ) -> RetryDecision:
        if isinstance(exception, Permanent) or (
            isinstance(exception, DBAPIError) and is_row_fault(exception)
        ):
            return RetryDecision.fail(row_error(exception))
        if not self.delays:
            return RetryDecision.default()
        seconds = self.delays[min(try_number, len(self.delays)) - 1]
        return RetryDecision.retry(timedelta(seconds=seconds), row_error(exception))
