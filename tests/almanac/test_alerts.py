"""A task that is out of attempts tells operators once, through the connection and to the address that are set."""

from __future__ import annotations

import email
import email.policy
import logging
from pathlib import Path
from typing import Any

import pytest

from almanac.alerts import deliver_undelivered, tell_run_failed, tell_task_failed
from include.errors import Outage, Refused
from include.platform import tables
from tests.almanac.conftest import Platform, context

OPERATORS = "ops@example.test"


def failed(error: Any, try_number: int = 3) -> dict[str, Any]:
    """Return the context of a task's last failure."""
    return context("work", try_number, exception=error)


def mails(folder: Path) -> list[Any]:
    """Return the messages in an outbox, oldest first."""
    files = sorted(folder.rglob("*.eml"), key=lambda file: file.stat().st_mtime)
    return [email.message_from_bytes(file.read_bytes(), policy=email.policy.default) for file in files]


def test_a_failed_task_is_told_of_once(platform: Platform) -> None:
    """Ruling 11: one ledger row and one mail with the DAG, the run, the error and a link, however often it is told."""
    platform.setenv("AIRFLOW_VAR_ADMIN_ALERT_EMAIL", OPERATORS)
    folder = platform.mail_goes_to("clearpath_email")
    for _ in range(3):
        tell_task_failed(failed(Refused("lab: order 7 is closed")))
    (mail,) = mails(folder)
    assert mail["To"] == OPERATORS
    assert mail["Subject"] == "[Almanac] clearpath_certificate_expiry: task work failed"
    text = mail.get_body().get_content()
    for said in (
        "clearpath_certificate_expiry",
        "run 1",
        "work, attempt 3",
        "lab: order 7 is closed",
        "http://127.0.0.1:1/log",
    ):
        assert said in text
    (alert,) = platform.alerts()
    assert alert.delivered_at is not None


def test_another_attempt_or_run_is_another_cause(platform: Platform) -> None:
    """A task that a person clears, and that fails again, is news."""
    tell_task_failed(failed(Refused("no"), 3))
    tell_task_failed(failed(Refused("no"), 6))
    tell_run_failed(
        "clearpath_certificate_expiry", "run 1", 0, "reached its time limit", "http://127.0.0.1:1/run"
    )
    tell_run_failed(
        "clearpath_certificate_expiry", "run 1", 1, "reached its time limit", "http://127.0.0.1:1/run"
    )
    assert len({alert.cause for alert in platform.alerts()}) == 4


def test_an_outage_is_the_outages_alert(platform: Platform) -> None:
    """Ruling 11: ten tasks that fail of one outage are one mail; each is on the ledger all the same."""
    platform.setenv("AIRFLOW_VAR_ADMIN_ALERT_EMAIL", OPERATORS)
    folder = platform.mail_goes_to("clearpath_email")
    for number in range(1, 11):
        tell_task_failed(failed(Outage("lab: 503", service="clearpath_lab"), number))
    (mail,) = mails(folder)
    assert mail["Subject"] == "[Almanac] clearpath_lab is out of reach"
    # It is the only one at 3 a.m., so it leads to the run that met the outage.
    for said in ("lab: 503", "clearpath_certificate_expiry", "run 1", "work", "http://127.0.0.1:1/log"):
        assert said in mail.get_body().get_content()
    assert sorted(alert.kind for alert in platform.alerts()) == ["outage", *["task"] * 10]
    assert len(platform.all(tables.OUTAGE)) == 1


def test_alerts_have_a_connection_of_their_own(platform: Platform) -> None:
    """Ruling 11: an outage of the business's provider must not keep the operators from hearing of it."""
    platform.setenv("AIRFLOW_VAR_ADMIN_ALERT_EMAIL", OPERATORS)
    systems, own = platform.mail_goes_to("clearpath_email"), platform.mail_goes_to("almanac_alert_email")
    tell_task_failed(failed(Refused("no")))
    assert len(mails(own)) == 1
    assert mails(systems) == []


def test_without_an_address_the_log_tells(platform: Platform, caplog: pytest.LogCaptureFixture) -> None:
    """Ruling 11: nobody to write to is no reason to be silent, nor to write to them all when there is somebody."""
    folder = platform.mail_goes_to("clearpath_email")
    with caplog.at_level(logging.ERROR, "almanac.alerts"):
        tell_task_failed(failed(Refused("no")))
    assert "alert: cause=task:clearpath_certificate_expiry:run 1:work:3" in caplog.text
    (alert,) = platform.alerts()
    assert (alert.no_address, alert.delivered_at) == (True, None)
    platform.setenv("AIRFLOW_VAR_ADMIN_ALERT_EMAIL", OPERATORS)
    deliver_undelivered()
    assert mails(folder) == []


def test_what_cant_be_mailed_now_waits(platform: Platform, caplog: pytest.LogCaptureFixture) -> None:
    """An alert that can't be mailed fails neither the task nor the scheduler; the next who comes by mails it."""
    platform.setenv("AIRFLOW_VAR_ADMIN_ALERT_EMAIL", OPERATORS)
    tell_task_failed(failed(Refused("no")))
    assert "could not be mailed now" in caplog.text
    (alert,) = platform.alerts()
    assert alert.delivered_at is None
    folder = platform.mail_goes_to("clearpath_email")
    deliver_undelivered()
    assert len(mails(folder)) == 1


def test_a_failure_of_its_own_is_only_logged(platform: Platform, caplog: pytest.LogCaptureFixture) -> None:
    """The task's own error matters more: without a ledger the callback ends, and the scheduler tells."""
    nowhere = '{"conn_type": "postgres", "host": "127.0.0.1", "port": 1, "schema": "x"}'
    platform.setenv("AIRFLOW_CONN_ALMANAC_DB", nowhere)
    tell_task_failed(failed(Refused("no")))
    assert "could not be put on the ledger" in caplog.text


def test_an_address_that_is_none_is_named(platform: Platform, caplog: pytest.LogCaptureFixture) -> None:
    """A slip in ADMIN_ALERT_EMAIL must use up no alert: it is named in the log, and they go out once it is mended."""
    folder = platform.mail_goes_to("clearpath_email")
    platform.setenv("AIRFLOW_VAR_ADMIN_ALERT_EMAIL", "ops@")
    tell_task_failed(failed(Refused("no")))
    assert "ADMIN_ALERT_EMAIL: 'ops@' is not one mail address" in caplog.text
    (alert,) = platform.alerts()
    assert (alert.delivered_at, alert.delivery_attempts) == (None, 0)
    platform.setenv("AIRFLOW_VAR_ADMIN_ALERT_EMAIL", OPERATORS)
    deliver_undelivered()
    assert len(mails(folder)) == 1
