"""Thousands of requests that nobody would write, made from the API's own description."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    ignored_auth,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.console.conftest import token
from tests.nifya.conftest import DAILY
from tests.nifya_api.conftest import JOBS, Api, json_of

CHECKS = [
    not_a_server_error, status_code_conformance, content_type_conformance, response_headers_conformance,
    response_schema_conformance, negative_data_rejection, ignored_auth,
]  # fmt: skip


OPERATIONS = [
    ("GET", JOBS.removeprefix("/nifya")), ("POST", JOBS.removeprefix("/nifya")),
    *((method, f"{JOBS.removeprefix('/nifya')}/{{job_id}}") for method in ("GET", "PUT", "DELETE")),
    ("POST", f"{JOBS.removeprefix('/nifya')}/{{job_id}}/run"),
]  # fmt: skip


@pytest.fixture(scope="package")
def described(shared_api: Api) -> Any:
    """Return the API's description, read as a client reads it."""
    found = json_of(shared_api.as_user().get("/nifya/api/admin/openapi.json"), 200)
    schema = schemathesis.openapi.from_dict(found)
    schema.app = shared_api.app
    return schema


def test_the_description_is_of_every_route(described: Any) -> None:
    """A route that the description leaves out would be left out of what follows."""
    found = {(one.ok().method.upper(), one.ok().path) for one in described.get_all_operations()}
    assert found == set(OPERATIONS)


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_answer_is_as_described(
    shared_api: Api, described: Any, method: str, path: str, mode: GenerationMode
) -> None:
    """Whatever is sent, the answer is one of those described, in the form described, and never a 500."""
    headers = {"authorization": f"Bearer {token('otto', 'USER')}"}
    known = shared_api.jobs.add(schedule=DAILY)

    # The same requests every time: what fails here fails everywhere.
    @settings(
        max_examples=60,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=described[path][method].as_strategy(generation_mode=mode), a_known_job=st.booleans())
    def sent(case: Any, *, a_known_job: bool) -> None:
        if a_known_job and mode is GenerationMode.POSITIVE and "job_id" in case.path_parameters:
            case.path_parameters["job_id"] = str(known)
        case.call_and_validate(headers=headers, checks=CHECKS)

    sent()
