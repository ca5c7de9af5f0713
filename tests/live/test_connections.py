"""A password of any characters, from Airflow's connection API to each hook, in a task and by the Test button."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from psycopg import sql
from sqlalchemy import text

from stack.fakes.lab_server import Asked, LabServer
from stack.fakes.resend_server import ResendServer
from stack.fakes.smtp_server import SmtpServer
from tests.live.conftest import FirstDay, connection
from tests.live.desk import Desk, until
from tests.live.rows import queue_mails

PASSWORD = "p/s@s:%#1"
WRONG = f"{PASSWORD}+more"
ROLE = "live_r3"


@pytest.fixture(scope="module")
def services(desk: Desk) -> Iterator[dict[str, dict[str, Any]]]:
    """Start a service of each kind that wants that password; return the connection of each."""
    environment = desk.stack.environment
    with ExitStack() as started:
        lab = started.enter_context(LabServer(token=PASSWORD, base_path="/partner/v1"))
        smtp = started.enter_context(SmtpServer(login=("relay@example.test", PASSWORD)))
        resend = started.enter_context(ResendServer(api_key=PASSWORD, base_path="/relay/v2"))
        _make_role(desk)
        started.callback(_drop_role, desk)
        yield {
            "postgres": {
                "conn_type": "postgres",
                "host": environment["POSTGRES_HOST"],
                "port": int(environment["POSTGRES_PORT"]),
                "schema": "clearpath",
                "login": ROLE,
                "password": PASSWORD,
            },
            "lab": {"conn_type": "almanac_lab", "host": lab.url, "password": PASSWORD, "server": lab},
            "smtp": {
                "conn_type": "almanac_email",
                "host": "127.0.0.1",
                "port": smtp.port,
                "login": "relay@example.test",
                "password": PASSWORD,
                "extra": {"provider": "smtp", "security": "none", "from": "a@clearpath.example"},
                "server": smtp,
            },
            "resend": {
                "conn_type": "almanac_email",
                "password": PASSWORD,
                "extra": {"provider": "resend", "base_url": resend.url, "from": "a@clearpath.example"},
                "server": resend,
            },
        }


def _make_role(desk: Desk) -> None:
    role = sql.Identifier(ROLE)
    with desk.stack.database("clearpath").connect() as opened:
        raw = opened.connection.driver_connection
        assert raw is not None
        raw.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(role))
        raw.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(role, sql.Literal(PASSWORD)))
        raw.execute(sql.SQL("GRANT ALL ON ALL TABLES IN SCHEMA public TO {}").format(role))
        raw.execute(sql.SQL("GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {}").format(role))
        raw.commit()


def _drop_role(desk: Desk) -> None:
    with desk.stack.database("clearpath").begin() as opened:
        opened.execute(text(f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {ROLE}"))
        opened.execute(text(f"REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM {ROLE}"))
        opened.execute(text(f"DROP ROLE {ROLE}"))


def press_test(desk: Desk, fields: dict[str, Any]) -> dict[str, Any]:
    """Do what the Test button of the connection form does, and return its answer."""
    body = {"connection_id": "live_r3", **{k: v for k, v in fields.items() if k != "server"}}
    body["extra"] = json.dumps(body.get("extra") or {})
    answer = desk.admin.call("POST", "/api/v2/connections/test", json=body)
    assert answer.is_success, answer.text
    return answer.json()


@pytest.mark.parametrize("kind", ["postgres", "lab", "smtp", "resend"])
def test_the_button_accepts_the_right_password(desk: Desk, services: dict[str, Any], kind: str) -> None:
    """R3: the API keeps a connection as a URI on the way to the hook; password and path must come through."""
    said = press_test(desk, services[kind])
    assert said["status"], said


@pytest.mark.parametrize("kind", ["postgres", "lab", "smtp", "resend"])
def test_the_button_says_what_is_wrong_without_the_secret(
    desk: Desk, services: dict[str, Any], kind: str
) -> None:
    """R3: a wrong password is refused, and the answer shows none of it."""
    said = press_test(desk, services[kind] | {"password": WRONG})
    assert not said["status"], said
    assert PASSWORD not in said["message"]


@pytest.mark.parametrize(
    "fields",
    [
        {
            "conn_type": "almanac_storage",
            "password": "k" * 40,
            "extra": {"base_url": "https://files.example/a/b"},
        },
        {"conn_type": "almanac_email", "extra": {"provider": "outbox", "from": "a@b.example"}},
    ],
    ids=["storage", "outbox"],
)
def test_the_button_tries_a_folder(desk: Desk, fields: dict[str, Any], tmp_path: Any) -> None:
    """A folder that can be written to is said to be well, one that can't is not."""
    for folder, works in ((tmp_path / "new", True), ("/proc/nowhere", False)):
        extra = fields["extra"] | {"folder": str(folder)}
        assert press_test(desk, fields | {"extra": extra})["status"] is works


@pytest.mark.parametrize(
    "conn_id", ["almanac_db", "clearpath_db", "clearpath_email", "clearpath_lab", "clearpath_storage"]
)
def test_the_button_knows_what_the_platform_starts_with(desk: Desk, conn_id: str) -> None:
    """An operator who looks for a fault presses Test on each: one that works must say so."""
    found = desk.admin.call("GET", f"/api/v2/connections/{conn_id}").json()
    body = {"connection_id": conn_id, "conn_type": found["conn_type"]}
    said = desk.admin.call("POST", "/api/v2/connections/test", json=body).json()
    assert said["status"], said


@dataclass(frozen=True)
class Ran:
    """What the services saw of three DAGs that ran with that password."""

    asked: list[Asked]
    received: list[Any]
    addresses: list[str]


@pytest.fixture(scope="module")
def ran(desk: Desk, first_day: FirstDay, services: dict[str, dict[str, Any]]) -> Ran:
    """Put that password into the connections of three DAGs, and run them."""
    dag_ids = ("clearpath_session_expiry", "clearpath_lab_result_polling", "clearpath_email_queue_dispatch")
    desk.idle(*dag_ids)
    addresses = queue_mails(desk.stack.database("clearpath"), people=2)
    with ExitStack() as replaced:
        for conn_id, kind in (
            ("clearpath_db", "postgres"),
            ("clearpath_lab", "lab"),
            ("clearpath_email", "smtp"),
        ):
            fields = {k: v for k, v in services[kind].items() if k not in ("server", "conn_type")}
            replaced.enter_context(connection(desk, conn_id, **fields))
        desk.succeed(*(desk.start(dag_id) for dag_id in dag_ids))
    return Ran(services["lab"]["server"].asked, services["smtp"]["server"].received, addresses)


def test_a_task_logs_in(ran: Ran) -> None:
    """R3: in a task too the password and the path are exactly those that the API was given."""
    assert {one.headers["Authorization"] for one in ran.asked} >= {f"Bearer {PASSWORD}"}
    assert all(one.path.startswith("/partner/v1/results") for one in ran.asked)
    recipients = {recipient for one in ran.received for recipient in one.recipients}
    assert recipients >= set(ran.addresses)


def test_an_error_names_the_connection_alone(desk: Desk, first_day: FirstDay) -> None:
    """R3: a wrong password fails the run with the connection's name; no log of it shows the secret."""
    desk.idle("clearpath_lab_result_polling")
    with LabServer(token=PASSWORD) as lab, connection(desk, "clearpath_lab", host=lab.url, password=WRONG):
        run = desk.start("clearpath_lab_result_polling", {"dry_run": True})
        # The lab's refusal is an outage, which would be tried again: the first attempt's log says it all.
        log = _first_log(desk, run)
        desk.admin.call("PATCH", f"/api/v2/dags/{run.dag_id}/dagRuns/{run.run_id}", json={"state": "failed"})
    assert "clearpath_lab" in log
    assert "401" in log
    assert PASSWORD not in log
    assert WRONG not in log


def _first_log(desk: Desk, run: Any) -> str:
    until(
        "the first attempt's end", lambda: desk.tasks(run)["check_run"]["state"] in ("up_for_retry", "failed")
    )
    return desk.log(run, "check_run")
