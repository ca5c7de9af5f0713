"""The demo's data: every branch of NIFYA's jobs has a row, and a second demo changes nothing of the first."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hooks.gazettes import HttpGazettes
from include.nifya import demo, digest_emails, subscription_processing
from include.nifya.tables import DIGESTS, NOTIFICATIONS, SCHEDULED_JOBS, SUBSCRIPTION_PROCESSING
from stack.fakes.gazette_server import GazetteServer
from tests.fakes.world import FakeAlerts, FakeMail
from tests.nifya.rows import Rows

NOW = datetime(2026, 11, 27, 15, 0, tzinfo=UTC)


def seed(rows: Rows, now: datetime = NOW) -> None:
    """Fill the demo's data in."""
    with rows.db.engine.begin() as connection:
        demo.seed(connection, now)


def test_it_goes_in_twice_as_once(rows: Rows) -> None:
    """A second `make demo` on the same day adds nothing; on the next day it adds that day's jobs."""
    seed(rows)
    counts = [len(rows.all(table)) for table in (NOTIFICATIONS, SCHEDULED_JOBS)]
    seed(rows)
    assert [len(rows.all(table)) for table in (NOTIFICATIONS, SCHEDULED_JOBS)] == counts
    seed(rows, NOW + timedelta(days=1))
    assert len(rows.all(SCHEDULED_JOBS)) == 2 * counts[1]


def test_the_gazettes_on_loopback_have_news_for_the_subscriptions(
    rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The demo shows a run that finds something, through the real client, in both gazettes, and one that can't."""
    seed(rows)
    data = tmp_path / "gazettes.json"
    data.write_text(json.dumps(demo.gazettes(NOW)))
    with GazetteServer(data=data) as server:
        private = {"private_addresses": True}
        said = {
            "BOE": {"host": f"{server.url}/datosabiertos/api/boe", "extra": private},
            "DOGA": {
                "host": f"{server.url}/doga",
                "password": server.token,
                "extra": private | {"kind": "service"},
            },
        }
        for name, parts in said.items():
            whole = json.dumps({"conn_type": "almanac_gazette"} | parts)
            monkeypatch.setenv(f"AIRFLOW_CONN_NIFYA_{name}", whole)
        outside = subscription_processing.Outside(HttpGazettes("nifya"), FakeAlerts())
        run = rows.perform(subscription_processing, outside, NOW)
    assert run.counts["newNotifications"] >= 8
    status = {row.error for row in rows.all(SUBSCRIPTION_PROCESSING) if row.error}
    assert status == {"NIFYA: no parser reads for type_id 'borme'; there are boe, doga"}


def test_the_digests_have_something_to_tell(rows: Rows) -> None:
    """One mail with a hostile title, and one that leaves most of six hundred entries out (E4, E5)."""
    seed(rows)
    mail = FakeMail()
    params = demo.PARAMS["nifya_digest_emails"]
    rows.perform(digest_emails, digest_emails.Outside(mail, FakeAlerts()), NOW, **params)
    sent = {message.to: message for message in mail.delivered}
    assert set(sent) == {"ana@nifya.example", "dario@nifya.example"}
    assert "600 novedades" in sent["dario@nifya.example"].text
    assert len(rows.all(DIGESTS)) == 2
