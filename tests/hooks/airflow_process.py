"""Run in a process of its own: what `hooks.connections` finds in each kind of Airflow's processes.

Prints one JSON object. Airflow's home must be a fresh folder: the metadata database is made there.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, cast

from airflow import settings
from airflow.models import Connection
from airflow.sdk import BaseHook
from airflow.sdk.execution_time import task_runner
from airflow.utils.db import initdb
from airflow.utils.session import create_session
from airflow.utils.sqlalchemy import prohibit_commit
from sqlalchemy import text

from hooks.connections import access
from hooks.email import EmailHook
from include.errors import AlmanacError

SECRET = "p/s@s:%#1"
URL = "http://127.0.0.1:9/relay/v1"


def told(conn_id: str) -> Any:
    """Return what a look-up gives: the parts, or the name of the error."""
    try:
        said = access(conn_id)
    except AlmanacError as error:
        return type(error).__name__
    return [said.password, said.base_url(), said.text("provider")]


def in_a_task() -> Any:
    """Return what a task finds."""
    from tests.hooks.look_up_dag.looks_up_connections import looks_up  # noqa: PLC0415 - once there is a database

    (instance,) = looks_up.test().get_task_instances()
    found = instance.xcom_pull(task_ids="look_up")
    # The test of a DAG runs in this process, and leaves its supervisor behind.
    cast("Any", task_runner).SUPERVISOR_COMMS = None
    return found


def under_the_schedulers_guard() -> dict[str, Any]:
    """Return what a listener finds that the scheduler calls amid its transaction."""
    session = cast("Any", settings).Session()
    session.execute(text("SELECT 1"))
    with prohibit_commit(session) as guard:
        try:
            BaseHook.get_connection("stored")
            plain = "found"
        except Exception as error:  # noqa: BLE001 - whatever it is, it is reported
            plain = type(error).__name__
        found = {"plain": plain, "stored": told("stored"), "nowhere": told("nowhere")}
        guard.commit()
    return found


def main() -> None:
    """Look connections up in a task, in the scheduler, and with the database gone."""
    initdb()
    with create_session() as session:
        stored = Connection("stored", "almanac_email", host=URL, password=SECRET)  # noqa: AIR311 - the table's
        stored.set_extra(json.dumps({"provider": "resend"}))
        session.add(stored)
        session.commit()
    found = {"task": in_a_task()}
    found["starting"] = {name: told(name) for name in ("stored", "nowhere")}
    os.environ["_AIRFLOW_PROCESS_CONTEXT"] = "server"
    found["scheduler"] = under_the_schedulers_guard()
    found["button"] = EmailHook("stored").test_connection()
    with create_session() as session:
        session.execute(text("DROP TABLE connection"))
    found["outage"] = {"stored": told("stored")}
    sys.stdout.write(f"\nfound: {json.dumps(found)}\n")


if __name__ == "__main__":
    main()
