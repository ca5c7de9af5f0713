"""Settings are Airflow Variables of the specification's names."""

from __future__ import annotations

import pytest

from almanac.settings import settings


@pytest.mark.parametrize(
    ("stored", "found"), [("api", "api"), ("", "manual"), (None, "manual"), ("0", "0"), (" x ", " x ")]
)
@pytest.mark.parametrize("process", ["client", "server"])
def test_a_variable_or_its_default(
    monkeypatch: pytest.MonkeyPatch, stored: str | None, found: str, process: str
) -> None:
    """Ruling 18: what the UI or AIRFLOW_VAR_… sets counts, in tasks and in servers; empty is as not set."""
    monkeypatch.setenv("_AIRFLOW_PROCESS_CONTEXT", process)
    monkeypatch.delenv("AIRFLOW_VAR_LAB_INTEGRATION_MODEL", raising=False)
    if stored is not None:
        monkeypatch.setenv("AIRFLOW_VAR_LAB_INTEGRATION_MODEL", stored)
    assert settings({"LAB_INTEGRATION_MODEL": "manual"}) == {"LAB_INTEGRATION_MODEL": found}
