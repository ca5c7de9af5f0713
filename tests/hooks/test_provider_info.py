"""Airflow knows the project's connection types."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.hooks.processes import told


@pytest.fixture(scope="module")
def known() -> dict[str, Any]:
    """Ask Airflow, in a process that starts as its own do."""
    code = (
        "import json; from airflow.providers_manager import ProvidersManager\n"
        "manager = ProvidersManager(); manager.initialize_providers_hooks()\n"
        "hook = manager._hooks_lazy_dict['almanac_email']\n"
        "print('known: ' + json.dumps({'hook': hook._asdict(), 'fields': sorted(\n"
        "    name for name in manager._connection_form_widgets if 'almanac_email' in name)}))\n"
    )
    return json.loads(told("-c", code, marked="known: "))


def test_the_connection_type_is_offered_and_can_be_tried(known: dict[str, Any]) -> None:
    """A person adds a mail connection in the UI, with its own fields, and presses Test."""
    assert known["hook"]["hook_class_name"] == "hooks.email.EmailHook"
    assert known["hook"]["connection_testable"] is True
    names = {name.removeprefix("extra__almanac_email__") for name in known["fields"]}
    assert {"provider", "from", "base_url", "folder", "security"} <= names
