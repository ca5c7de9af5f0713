"""What a task's process says to Airflow, answered by Airflow's own API for tasks, in this process."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import psutil
import pytest
import structlog
from airflow.sdk.api.client import ServerResponseError
from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType
from airflow.sdk.execution_time.comms import ErrorResponse
from airflow.sdk.execution_time.supervisor import (
    InProcessSupervisorComms,
    InProcessTestSupervisor,
    set_supervisor_comms,
)

from tests.console.conftest import airflow as airflow  # noqa: PLC0414 - a fixture is found by its name


class Supervisor:
    """The process over a task: it asks the API, and tells the task of an error as the real one does."""

    def __init__(self) -> None:
        fields: dict[str, Any] = {
            "id": uuid.uuid4(),
            "pid": os.getpid(),
            "process": psutil.Process(),
            "process_log": structlog.get_logger(),
            "client": InProcessTestSupervisor._api_client(),  # noqa: SLF001 - Airflow's own way to test
        }
        made = InProcessTestSupervisor(**fields)
        made.comms = self._comms = InProcessSupervisorComms(supervisor=made)
        self.away = False
        self.asked = 0

    def send(self, message: Any) -> Any:
        self.asked += 1
        try:
            if self.away:
                raise httpx.ConnectError("connection refused")
            return self._comms.send(message)
        except ServerResponseError as error:
            detail = {"status_code": error.response.status_code, "detail": error.response.json()}
            raise _told({**detail, "message": str(error)}) from None
        except httpx.HTTPError as error:
            raise _told({"status_code": None, "message": str(error)}) from None


def _told(detail: dict[str, Any]) -> AirflowRuntimeError:
    return AirflowRuntimeError(ErrorResponse(error=ErrorType.API_SERVER_ERROR, detail=detail))


@pytest.fixture
def supervisor(airflow: None) -> Iterator[Supervisor]:
    """Be a task's process, with a supervisor over it."""
    made = Supervisor()
    with set_supervisor_comms(made):
        yield made
