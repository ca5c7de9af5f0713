"""The row of every run of an EcoComply DAG, as the DAGs' own tasks keep it, on real databases."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Row, Table, select, text

from almanac.alerts import tell_task_failed
from almanac.job_records import CalledOff
from almanac.retries import ExactDelays
from almanac.runs import begin, end, open_run
from hooks import postgres
from include.ecocomply import job_health, update_compliance_clocks
from include.ecocomply.job_records.attempts import JobEnded
from include.ecocomply.job_records.dag_runs import run_id_of_job
from include.ecocomply.job_types import DAGS, DELAYS
from include.errors import BadInput, Permanent, Transient
from include.platform import tables
from include.run import EngineDatabase
from tests.dags.test_declarations import bag
from tests.ecocomply.jobs_world import FakeAirflow, Records
from tests.fakes.world import FakeAlerts

CLOCKS = "ecocomply_update_compliance_clocks"
NOTHING = update_compliance_clocks.Outside()
AT = datetime(2026, 5, 5, 0, 1, tzinfo=UTC)
PARAMS = {"company_id": None, "site_id": None, "module_id": None, "batch_size": 1000}


@dataclass
class Platform:
    """EcoComply's database and the platform's own, found by their connections, and one run of a DAG between them."""

    records: Records
    almanac: EngineDatabase
    dag_id: str = CLOCKS
    run_id: str = "scheduled__2026-05-05T00:01:00+00:00"
    params: dict[str, Any] = field(default_factory=lambda: dict(PARAMS))
    conf: dict[str, Any] = field(default_factory=dict)
    cleared: int = 0

    def context(self, task_id: str, number: int = 1) -> dict[str, Any]:
        """Return what Airflow hands to a try of a task, as far as it is read."""
        params = {**self.params, "as_of": None, "dry_run": False}
        return {
            "dag": SimpleNamespace(params=params),
            "dag_run": SimpleNamespace(
                dag_id=self.dag_id,
                run_id=self.run_id,
                conf=self.conf,
                run_after=AT,
                clear_number=self.cleared,
            ),
            "logical_date": AT,
            "params": params | self.conf,
            "ti": SimpleNamespace(
                dag_id=self.dag_id,
                run_id=self.run_id,
                task_id=task_id,
                try_number=number,
                map_index=-1,
                log_url="http://127.0.0.1:1/log",
            ),
        }

    def run_dag(self) -> Any:
        """Call the functions of the DAG's tasks in their order, and return what the last one does."""
        dag, handed = bag().dags[self.dag_id], None
        for task in dag.topological_sort():
            given = [None] * len(task.op_args)
            handed = task.python_callable(*given, **self.context(task.task_id))
            if handed is False:
                return None
        return handed

    def started_for(self, job_id: UUID) -> None:
        """Be the run that the dispatcher started for a row."""
        self.run_id = run_id_of_job(job_id)
        self.records.execute(
            "UPDATE background_jobs SET dag_run_id = :run WHERE id = :id",
            run=f"{self.dag_id}/{self.run_id}", id=job_id,
        )  # fmt: skip

    def fails(
        self, error: BaseException, number: int = 1, task_id: str = "recalculate_clocks"
    ) -> BaseException:
        """Let one try of a task fail, and return what Airflow hears of it."""
        context = self.context(task_id, number)
        with pytest.raises(BaseException) as heard, open_run(context, update_compliance_clocks):  # noqa: PT011
            raise error
        return heard.value

    def all(self, table: Table) -> list[Row[Any]]:
        with self.almanac.transaction() as tx:
            return list(tx.rows(select(table)))


@pytest.fixture
def platform(
    database_of: Callable[..., EngineDatabase], almanac: EngineDatabase, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Platform]:
    """Name the two databases to Airflow's look-up."""
    records = Records(database_of("ecocomply"))
    records.fill()
    for conn_id, database in (("ecocomply_db", records.database), ("almanac_db", almanac)):
        url = database.engine.url
        said = {
            "conn_type": "postgres",
            "host": url.query["host"],
            "port": int(str(url.query["port"])),
            "login": url.username,
            "schema": url.database,
        }
        monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps(said))
    monkeypatch.delenv("AIRFLOW_VAR_ADMIN_ALERT_EMAIL", raising=False)
    postgres.database.cache_clear()
    yield Platform(records, almanac)
    for conn_id in ("ecocomply_db", "almanac_db"):
        postgres.database(conn_id).engine.dispose()
    postgres.database.cache_clear()


def add_clock(platform: Platform, company: UUID, number: int) -> UUID:
    """Insert a running clock of a company that is not right."""
    clock = UUID(int=500 + number)
    platform.records.execute(
        "INSERT INTO compliance_clocks_universal"
        " (id, company_id, entity_type, entity_id, clock_type, target_date, days_remaining)"
        " VALUES (:id, :company, 'OBLIGATION', :id, 'DEADLINE', :day, 999)",
        id=clock, company=company, day=date(2026, 5, 15),
    )  # fmt: skip
    return clock


def test_a_run_by_the_clock_leaves_one_row(platform: Platform) -> None:
    """Opened by its first step, closed by its last: completed, with the summary as its result, after one attempt."""
    add_clock(platform, platform.records.company, 1)
    line = platform.run_dag()
    row = platform.records.job()
    assert (row.job_type, row.status, row.attempts) == ("UPDATE_COMPLIANCE_CLOCKS", "COMPLETED", 1)
    assert row.result == line
    assert (row.result["processed"], row.result["state"]) == (1, "success")
    assert (row.payload, row.as_of, row.created_by) == (PARAMS, AT, None)
    assert row.dag_run_id == f"{CLOCKS}/{platform.run_id}"
    assert (row.claimed_by, row.health_status) == (None, "HEALTHY")


def test_the_platforms_own_dags_have_none(platform: Platform) -> None:
    """They keep the rows of the others; nobody's row would wait for their end."""
    platform.dag_id, platform.params = "ecocomply_job_health", {}
    outside = job_health.Outside(FakeAirflow(), FakeAlerts())
    assert begin(platform.context("check_run"), job_health, outside)
    with open_run(platform.context("mark_stale"), job_health) as run:
        job_health.mark_stale(run, outside)
    assert end(platform.context("tell_operators"), job_health)["state"] == "success"
    assert platform.records.rows("SELECT FROM background_jobs") == []


def test_a_preview_has_none(platform: Platform) -> None:
    """It changes nothing, the queue included."""
    platform.conf = {"dry_run": True}
    assert platform.run_dag() is None
    assert platform.records.rows("SELECT FROM background_jobs") == []
    assert [row.state for row in platform.all(tables.RUN_SUMMARY)] == ["success"]


def test_a_task_that_fails(platform: Platform) -> None:
    """Waiting after each try but the last; then failed for good, with a dead letter, an audit entry and an alert."""
    begin(platform.context("check_run"), update_compliance_clocks, NOTHING)
    policy = ExactDelays(DELAYS)
    for number in (1, 2):
        heard = platform.fails(Transient("storage: 503"), number)
        assert type(heard) is Transient
        assert policy.evaluate(heard, number, 3).action.value == "retry"
        row = platform.records.job()
        assert (row.status, row.attempts, row.error_message) == ("PENDING", number, "storage: 503")
    heard = platform.fails(Transient("storage: 503"), 3)
    assert isinstance(heard, JobEnded)
    assert policy.evaluate(heard, 3, 3).action.value == "fail"
    row = platform.records.job()
    assert (row.status, row.attempts, row.health_status) == ("FAILED", 3, "FAILED")
    (letter,) = platform.records.letters()
    assert letter.error_context["execution_step"] == "recalculate_clocks"
    (entry,) = platform.records.entries("JOB_ERROR")
    assert entry.entity_id == row.id
    tell_task_failed({**platform.context("recalculate_clocks", 3), "exception": heard})
    (alert,) = platform.all(tables.ALERT)
    assert alert.subject == f"{CLOCKS}: task recalculate_clocks failed"
    assert "storage: 503" in alert.body


def test_a_failed_try_that_is_made_good(platform: Platform) -> None:
    """A second try is a second attempt; the run ends as one that went well."""
    begin(platform.context("check_run"), update_compliance_clocks, NOTHING)
    platform.fails(Transient("storage: 503"))
    with open_run(platform.context("recalculate_clocks", 2), update_compliance_clocks) as run:
        run.count("processed")
    line = end(platform.context("report_run"), update_compliance_clocks)
    row = platform.records.job()
    assert (row.status, row.attempts, row.retry_count, row.result) == ("COMPLETED", 2, 1, line)
    assert platform.records.letters() == []


@pytest.mark.parametrize(
    ("conf", "said"),
    [({"dryrun": True}, "unknown param 'dryrun'"), ({"as_of": "yesterday"}, "as_of: 'yesterday'")],
)
def test_what_the_first_task_refuses(platform: Platform, conf: Mapping[str, Any], said: str) -> None:
    """Ruling 10: what comes past the API fails the first task; its row says why, and is not tried again."""
    platform.conf = dict(conf)
    with pytest.raises(BadInput, match=said):
        begin(platform.context("check_run"), update_compliance_clocks, NOTHING)
    row = platform.records.job()
    assert (row.status, row.attempts) == ("FAILED", 1)
    assert said in row.error_message
    assert platform.records.letters()[0].error_context["execution_step"] == "check_run"


def test_a_job_that_is_called_off_before_it_begins(platform: Platform) -> None:
    """A person's cancel: the first task shows as skipped, and so does the summary; nothing has failed."""
    job_id = platform.records.add("UPDATE_COMPLIANCE_CLOCKS")
    platform.started_for(job_id)
    platform.records.execute("UPDATE background_jobs SET status = 'CANCELLED'")
    with pytest.raises(CalledOff, match="it was called off"):
        begin(platform.context("check_run"), update_compliance_clocks, NOTHING)
    assert (platform.records.job().status, platform.records.letters()) == ("CANCELLED", [])
    (summary,) = platform.all(tables.RUN_SUMMARY)
    assert (summary.state, summary.ended_at is not None) == ("skipped", True)
    assert platform.all(tables.ALERT) == []


def test_a_job_that_is_called_off_between_two_tries(platform: Platform) -> None:
    """While it waits for its next try it can be called off; that try does nothing more."""
    platform.started_for(platform.records.add("UPDATE_COMPLIANCE_CLOCKS"))
    begin(platform.context("check_run"), update_compliance_clocks, NOTHING)
    platform.fails(Transient("storage: 503"))
    platform.records.execute("UPDATE background_jobs SET status = 'CANCELLED'")
    worked = False
    with (
        pytest.raises(CalledOff),
        open_run(platform.context("recalculate_clocks", 2), update_compliance_clocks),
    ):
        worked = True
    assert not worked
    steps = {(row.task_id, row.try_number): row.state for row in platform.all(tables.RUN_STEP)}
    assert steps == {("recalculate_clocks", 1): "failed", ("recalculate_clocks", 2): "skipped"}
    (summary,) = platform.all(tables.RUN_SUMMARY)
    assert (summary.state, summary.ended_at is not None) == ("skipped", True)


def test_whose_rows_a_job_sees(platform: Platform) -> None:
    """Ruling 14: what a user asked for works under that user's claims; the clock's run sees every company."""
    records = platform.records
    own, theirs = add_clock(platform, records.company, 1), add_clock(platform, records.other, 2)
    look = text("SELECT id FROM compliance_clocks_universal ORDER BY id")
    for by, seen in ((records.owner, [own]), (records.consultant, [own, theirs]), (None, [own, theirs])):
        records.execute("DELETE FROM background_jobs")
        platform.started_for(records.add("UPDATE_COMPLIANCE_CLOCKS", created_by=by))
        with (
            open_run(platform.context("recalculate_clocks"), update_compliance_clocks) as run,
            run.transaction() as tx,
        ):
            assert [row.id for row in tx.rows(look)] == seen


def test_a_users_job_is_booked_to_its_end(platform: Platform) -> None:
    """The user's role may not write the books: they are the service's, whoever asked."""
    records = platform.records
    add_clock(platform, records.company, 1)
    stranger = add_clock(platform, records.other, 2)
    platform.started_for(records.add("UPDATE_COMPLIANCE_CLOCKS", created_by=records.owner))
    line = platform.run_dag()
    row = records.job()
    assert (row.status, row.result, line["processed"]) == ("COMPLETED", line, 1)
    (other,) = records.rows(
        "SELECT days_remaining FROM compliance_clocks_universal WHERE id = :id", id=stranger
    )
    assert other.days_remaining == 999


def test_progress(platform: Platform) -> None:
    """A step says how far it is; who follows the row sees it."""
    with open_run(platform.context("recalculate_clocks"), update_compliance_clocks) as run:
        run.progress(20, 45, "Processed 20/45 clocks")
        progress = platform.records.job().progress
    assert (progress["current"], progress["total"], progress["said"]) == (20, 45, "Processed 20/45 clocks")


def test_a_long_statement_has_its_heartbeats(platform: Platform) -> None:
    """7.3: three intervals of work in one statement are three heartbeats; here an interval is a second."""
    records = platform.records
    platform.started_for(records.add("UPDATE_COMPLIANCE_CLOCKS", heartbeat_interval_seconds=1))
    beats: set[datetime] = set()
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.05):
            beats.add(records.job().last_heartbeat)

    watcher = threading.Thread(target=watch)
    with (
        open_run(platform.context("recalculate_clocks"), update_compliance_clocks) as run,
        run.transaction() as tx,
    ):
        claimed = records.job().last_heartbeat
        watcher.start()
        tx.execute(text("SELECT pg_sleep(3.5)"))
        over.set()
    watcher.join()
    assert len(beats - {claimed}) >= 3


def test_the_last_task_is_tried_again_after_the_rows_end(platform: Platform) -> None:
    """Killed between the row's end and Airflow's: the next try says the same, and nothing has failed."""
    line = platform.run_dag()
    again = end(platform.context("report_run", 2), update_compliance_clocks)
    assert {**again, "durationMs": 0} == {**line, "durationMs": 0}
    assert (platform.records.job().status, platform.records.letters()) == ("COMPLETED", [])


def test_a_run_that_is_cleared_has_a_row_of_its_own(platform: Platform) -> None:
    """The first row stays as it ended."""
    platform.run_dag()
    platform.cleared = 1
    platform.run_dag()
    rows = platform.records.rows("SELECT dag_run_id, status FROM background_jobs ORDER BY dag_run_id")
    key = f"{CLOCKS}/{platform.run_id}"
    assert [tuple(row) for row in rows] == [(key, "COMPLETED"), (f"{key}/1", "COMPLETED")]


@pytest.mark.parametrize(("dag", "frequency"), [("daily", "DAILY"), ("weekly", "WEEKLY")])
def test_a_digests_row_says_which(platform: Platform, dag: str, frequency: str) -> None:
    """One type of two DAGs: a row that is tried again from its dead letter must start the same one."""
    platform.dag_id, platform.params = f"ecocomply_digest_delivery_{dag}", {}
    assert platform.dag_id in DAGS
    with suppress(Permanent), open_run(platform.context("work"), update_compliance_clocks):
        raise Permanent("no")
    assert platform.records.job().payload == {"frequency": frequency}
