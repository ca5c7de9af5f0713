"""The dispatcher: a row that an application inserted starts its DAG once, or fails with a reason that helps."""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from include.ecocomply import job_dispatcher
from include.ecocomply.job_dispatcher import Outside
from include.ecocomply.job_records.attempts import attempt
from include.ecocomply.job_records.dag_runs import DagRun, RunStanding, TaskTry, number_of_run, run_id_of_job
from include.ecocomply.job_types import DAGS, JOB_DAGS, dags_of
from include.errors import BadInput, Outage, Transient
from include.job import Job, perform
from include.preview import preview
from include.run import Run
from tests.ecocomply.jobs_world import IDLE, LIVE, OVER, FakeAirflow, Killed, Records, ago, dies_at
from tests.fakes.world import FakeAlerts

RISK = "ecocomply_risk_score_calculation"
MODULE: Job = job_dispatcher


def dispatch(records: Records, airflow: FakeAirflow, alerts: FakeAlerts | None = None, **fields: Any) -> Run:
    """Run the dispatcher once."""
    run = records.run(**fields)
    perform(MODULE, run, Outside(airflow, alerts or FakeAlerts()))
    return run


def add_import(records: Records, status: str, *, confirmed: bool, company: UUID | None = None) -> UUID:
    """Insert an import of the site's."""
    import_id, site = uuid.uuid4(), records.site
    if company is not None and company != records.company:
        site = uuid.uuid4()
        records.execute(
            "INSERT INTO sites (id, company_id, name) VALUES (:site, :company, 'There')",
            site=site,
            company=company,
        )
    records.execute(
        "INSERT INTO excel_imports (id, company_id, site_id, user_id, status, confirmed_at)"
        " VALUES (:id, :company, :site, :user, :status, :confirmed)",
        id=import_id, company=company or records.company, site=site, user=records.owner, status=status,
        confirmed=ago(minutes=1) if confirmed else None,
    )  # fmt: skip
    return import_id


def test_a_row_starts_its_dag(records: Records) -> None:
    """The payload is the conf, the run's id comes from the row's, and the as-of is the moment of the start."""
    payload = {"company_id": str(records.company), "site_id": str(records.site)}
    job_id = records.add(payload=payload, created_by=records.owner)
    airflow = FakeAirflow()
    run = dispatch(records, airflow)
    row = records.job()
    assert airflow.started == {DagRun(RISK, f"job__{job_id}"): payload | {"as_of": row.as_of.isoformat()}}
    assert (row.status, row.attempts, row.dag_run_id) == ("PENDING", 0, f"{RISK}/job__{job_id}")
    assert ago(minutes=1) < row.as_of <= datetime.now(UTC)
    assert (run.counts["processed"], run.counts["started"], run.counts["failed"]) == (1, 1, 0)


@pytest.mark.parametrize("number", ["7" * 5_000, "1" + "0" * 400 + ".5"])
def test_a_payload_that_python_cannot_read(records: Records, number: str) -> None:
    """Postgres takes numbers of any length: one tenant's must not stop the rows of all others."""
    first, second = records.add(), records.add(payload={"company_id": str(records.company)})
    records.execute(
        "UPDATE background_jobs SET payload = CAST(:payload AS jsonb) WHERE id = :id",
        id=first, payload=f'{{"limit": {number}}}',
    )  # fmt: skip
    airflow = FakeAirflow()
    dispatch(records, airflow)
    assert airflow.started.keys() == {DagRun(RISK, f"job__{one}") for one in (first, second)}
    assert airflow.started[DagRun(RISK, f"job__{first}")]["limit"] == number


@pytest.mark.parametrize("dag_id", [dag.dag_id for dag in JOB_DAGS if len(dags_of(dag.job_type)) == 1])
def test_every_type_has_its_dag(records: Records, dag_id: str) -> None:
    """34 types are one DAG each."""
    records.add(DAGS[dag_id].job_type)
    airflow = FakeAirflow()
    dispatch(records, airflow)
    assert [run.dag_id for run in airflow.started] == [dag_id]


@pytest.mark.parametrize(
    ("status", "confirmed", "attempts", "started"),
    [
        ("PENDING", False, 0, "preview"),
        ("PROCESSING", False, 0, "preview"),
        ("FAILED", False, 0, "preview"),
        ("PENDING_REVIEW", True, 0, "commit"),
        ("PROCESSING", True, 0, "commit"),
        ("FAILED", True, 0, "commit"),
        # Killed between the last effect and the row's end: the run finds nothing left, and ends.
        ("COMPLETED", True, 1, "commit"),
        ("PENDING_REVIEW", False, 1, "preview"),
        ("PENDING_REVIEW", False, 0, "nobody has confirmed it"),
        ("COMPLETED", False, 0, "nobody has confirmed it"),
        ("CANCELLED", True, 0, "is CANCELLED"),
    ],
)
def test_an_import_by_its_status(
    records: Records, status: str, *, confirmed: bool, attempts: int, started: str
) -> None:
    """One type, two DAGs: nothing is committed without a person's word."""
    import_id = add_import(records, status, confirmed=confirmed)
    records.add(
        "EXCEL_IMPORT_PROCESSING",
        payload={"import_id": str(import_id)},
        created_by=records.owner,
        attempts=attempts,
    )
    airflow = FakeAirflow()
    dispatch(records, airflow)
    if started in ("preview", "commit"):
        assert [run.dag_id for run in airflow.started] == [f"ecocomply_excel_import_{started}"]
    else:
        assert started in records.job().error_message


@pytest.mark.parametrize(("frequency", "dag"), [("DAILY", "daily"), ("WEEKLY", "weekly")])
def test_a_digest_by_its_frequency(records: Records, frequency: str, dag: str) -> None:
    """One type, two DAGs, neither of which has the param."""
    records.add("digest-delivery-job", payload={"frequency": frequency})
    airflow = FakeAirflow()
    dispatch(records, airflow)
    ((run, conf),) = airflow.started.items()
    assert run.dag_id == f"ecocomply_digest_delivery_{dag}"
    assert set(conf) == {"as_of"}


TOMORROW = (datetime.now(UTC) + timedelta(days=1)).isoformat()


@pytest.mark.parametrize(
    ("job_type", "payload", "reason"),
    [
        ("NO_SUCH_JOB", {}, "job_type: there is no job 'NO_SUCH_JOB'"),
        ("RISK_SCORE_CALCULATION", ["a"], "payload: it is a list, not an object"),
        ("RISK_SCORE_CALCULATION", "a", "payload: it is a str, not an object"),
        ("RISK_SCORE_CALCULATION", None, "payload: it is a NoneType, not an object"),
        ("RISK_SCORE_CALCULATION", {"company_id": "x"}, "payload: company_id 'x' is no uuid"),
        ("RISK_SCORE_CALCULATION", {"company_id": 7}, "payload: company_id 7 is no uuid"),
        ("RISK_SCORE_CALCULATION", {"dry_run": True}, "dry_run is for a person's preview"),
        ("RISK_SCORE_CALCULATION", {"as_of": "yesterday"}, "as_of: 'yesterday' is not an instant"),
        ("RISK_SCORE_CALCULATION", {"as_of": 5}, "payload: as_of 5 is no instant"),
        ("RISK_SCORE_CALCULATION", {"as_of": TOMORROW}, "is later than now"),
        ("digest-delivery-job", {}, "frequency None is neither DAILY nor WEEKLY"),
        ("digest-delivery-job", {"frequency": "HOURLY"}, "frequency 'HOURLY' is neither"),
        ("digest-delivery-job", {"frequency": ["DAILY"]}, "is neither DAILY nor WEEKLY"),
        ("EXCEL_IMPORT_PROCESSING", {}, "there is no import None"),
        ("EXCEL_IMPORT_PROCESSING", {"import_id": "x"}, "there is no import 'x'"),
        ("EXCEL_IMPORT_PROCESSING", {"import_id": str(UUID(int=404))}, "there is no import"),
    ],
)
def test_what_can_never_be_fails_at_once(records: Records, job_type: str, payload: Any, reason: str) -> None:
    """A dead letter with a reason that names the part; it stops no other row."""
    bad = records.add(job_type, payload=payload, scheduled_for=ago(minutes=9))
    records.add(payload={})
    airflow = FakeAirflow()
    run = dispatch(records, airflow)
    row = records.job(bad)
    assert (row.status, row.attempts) == ("FAILED", 1)
    assert re.search(re.escape(reason), row.error_message)
    (letter,) = records.letters()
    assert letter.error_context["execution_step"] == "dispatch"
    assert len(airflow.started) == 1
    assert (run.counts["failed"], run.counts["started"]) == (1, 1)


@pytest.mark.parametrize(
    ("by", "company", "allowed"),
    [
        ("owner", "company", True), ("owner", "other", False), ("consultant", "company", True),
        ("consultant", "other", True), ("stranger", "company", False), (None, "other", True),
    ],
)  # fmt: skip
def test_whose_company_a_payload_may_name(
    records: Records, by: str | None, company: str, *, allowed: bool
) -> None:
    """created_by decides; another company's is a permanent error, and that company does not hear of it."""
    payload = {"company_id": str(getattr(records, company))}
    records.add(payload=payload, created_by=by and getattr(records, by))
    airflow = FakeAirflow()
    dispatch(records, airflow)
    assert bool(airflow.started) is allowed
    if not allowed:
        assert "none that who asked for the job may act for" in records.job().error_message
        assert records.letters()[0].company_id == records.job().company_id != getattr(records, company)


def test_a_client_that_is_no_more(records: Records) -> None:
    """Consultants see their ACTIVE clients."""
    records.execute("UPDATE consultant_client_assignments SET status = 'INACTIVE'")
    records.add(payload={"company_id": str(records.company)}, created_by=records.consultant)
    airflow = FakeAirflow()
    dispatch(records, airflow)
    assert (airflow.started, records.job().status) == ({}, "FAILED")


def test_an_import_of_another_company(records: Records) -> None:
    """The import's company is what counts, whatever the payload says of it."""
    import_id = add_import(records, "PENDING", confirmed=False, company=records.other)
    payload = {"import_id": str(import_id), "company_id": str(records.company)}
    records.add("EXCEL_IMPORT_PROCESSING", payload=payload, created_by=records.owner)
    airflow = FakeAirflow()
    dispatch(records, airflow)
    assert "none that who asked for the job may see" in records.job().error_message
    assert airflow.started == {}


def test_a_conf_that_the_dag_refuses(records: Records) -> None:
    """What a payload may hold the DAG's params say: Airflow's 4xx is the row's end."""
    records.add(payload={"colour": "red"})
    dispatch(records, FakeAirflow(refuse={RISK}))
    assert (records.job().status, records.job().error_message) == (
        "FAILED", f"airflow: {RISK} takes no such param"
    )  # fmt: skip


def test_a_given_as_of(records: Records) -> None:
    """As the payload has it; the row keeps it for every further run."""
    records.add(payload={"as_of": "2026-03-01T06:00:00Z"})
    airflow = FakeAirflow()
    dispatch(records, airflow)
    (conf,) = airflow.started.values()
    assert conf == {"as_of": "2026-03-01T06:00:00+00:00"}
    assert records.job().as_of == datetime(2026, 3, 1, 6, tzinfo=UTC)


def test_what_is_not_due_waits(records: Records) -> None:
    """scheduled_for; a person's as-of only narrows, and a person's job_id goes before its time."""
    later = records.add(scheduled_for=ago(minutes=-5))
    airflow = FakeAirflow()
    assert dispatch(records, airflow).counts["processed"] == 0
    records.add(scheduled_for=ago(minutes=5))
    assert dispatch(records, airflow, as_of=ago(minutes=10), as_of_given=True).counts["processed"] == 0
    assert dispatch(records, airflow, params={"job_id": str(later)}).counts["started"] == 1
    assert [run.run_id for run in airflow.started] == [f"job__{later}"]


def test_a_job_id_that_starts_nothing(records: Records) -> None:
    """One that is none is refused, one that is at work is said to be."""
    with pytest.raises(BadInput, match="there is no job"):
        dispatch(records, FakeAirflow(), params={"job_id": str(UUID(int=404))})
    job_id = records.add()
    records.execute("UPDATE background_jobs SET status = 'RUNNING'")
    run = dispatch(records, FakeAirflow(), params={"job_id": str(job_id)})
    assert run.notes == [f"Job {job_id} is RUNNING: there is nothing to start"]


def test_a_row_between_two_tries_is_left_alone(records: Records) -> None:
    """Its run is live, and Airflow tries the task again; so is one that only waits in Airflow's queue."""
    job_id = records.add()
    airflow = FakeAirflow()
    dispatch(records, airflow)
    (dag_run,) = airflow.started
    with pytest.raises(Transient), attempt(records.run(), TaskTry(dag_run, "t", 1)):
        raise Transient("x")
    records.due()
    for standing in (LIVE, IDLE):
        airflow.runs[dag_run] = standing
        run = dispatch(records, airflow)
        assert (run.counts["skipped"], run.counts["started"]) == (1, 0)
    airflow.is_over()
    as_of = records.job().as_of
    dispatch(records, airflow)
    assert list(airflow.started) == [dag_run, DagRun(RISK, f"job__{job_id}__2")]
    assert list(airflow.started.values())[1]["as_of"] == as_of.isoformat()
    assert records.job().as_of == as_of


def test_a_cron_row_that_is_tried_again_gets_a_run_of_its_own(records: Records) -> None:
    """From a dead letter, or after its run was killed: as of the day that it was of."""
    as_of = datetime(2026, 11, 20, 4, tzinfo=UTC)
    job_id = records.add(as_of=as_of, dag_run_id=f"{RISK}/scheduled__2026-11-20T04:00:00+00:00")
    airflow = FakeAirflow(runs={DagRun(RISK, "scheduled__2026-11-20T04:00:00+00:00"): LIVE})
    assert dispatch(records, airflow).counts["skipped"] == 1
    airflow.is_over()
    dispatch(records, airflow)
    assert airflow.started == {DagRun(RISK, f"job__{job_id}"): {"as_of": as_of.isoformat()}}


@pytest.mark.parametrize(
    ("run_id", "number"),
    [("job__{id}", 1), ("job__{id}__2", 2), ("job__{id}__17", 17), ("job__{id}__0", 0), ("job__{id}__x", 0),
     ("scheduled__2026-11-27T04:00:00+00:00", 0), ("job__00000000-0000-0000-0000-000000000009", 0)],
)  # fmt: skip
def test_which_run_of_a_row_it_is(run_id: str, number: int) -> None:
    """The id says it, so that nobody has to remember."""
    job_id = UUID(int=8)
    assert number_of_run(run_id.format(id=job_id), job_id) == number
    if number:
        assert run_id_of_job(job_id, number) == run_id.format(id=job_id)


def test_the_order(records: Records) -> None:
    """The most urgent first, then companies in turn, then the oldest."""
    names: dict[str, str] = {}
    for name, job_type, by, minutes in (
        ("a1", "RISK_SCORE_CALCULATION", records.owner, 9), ("a2", "RISK_SCORE_CALCULATION", records.owner, 8),
        ("a3", "RISK_SCORE_CALCULATION", records.owner, 7), ("b1", "RISK_SCORE_CALCULATION", records.stranger, 1),
        ("urgent", "DEADLINE_ALERT", records.stranger, 0.5), ("low", "evidence-retention-job", records.owner, 30),
    ):  # fmt: skip
        names[f"job__{records.add(job_type, created_by=by, scheduled_for=ago(minutes=minutes))}"] = name
    airflow = FakeAirflow()
    dispatch(records, airflow)
    assert [names[run.run_id] for run in airflow.started] == ["urgent", "a1", "b1", "a2", "a3", "low"]


def test_airflow_is_away(records: Records) -> None:
    """An outage is no row's fault: nothing is lost, and the next minute starts the same runs."""

    class Away(FakeAirflow):
        def start(self, dag_id: str, run_id: str, conf: Mapping[str, Any]) -> None:
            raise Outage("airflow: connection refused")

    job_id = records.add()
    with pytest.raises(Outage):
        dispatch(records, Away())
    assert (records.job().status, records.job().attempts) == ("PENDING", 0)
    airflow = FakeAirflow()
    dispatch(records, airflow)
    assert list(airflow.started) == [DagRun(RISK, f"job__{job_id}")]


def test_a_row_that_is_called_off_meanwhile_starts_nothing(records: Records) -> None:
    """Ruling 16: the world moves between the look and the start."""
    named = records.add(scheduled_for=ago(minutes=5), dag_run_id=f"{RISK}/gone")

    class CallsOff(FakeAirflow):
        def standing(self, runs: Collection[DagRun]) -> Mapping[DagRun, RunStanding]:
            records.execute("UPDATE background_jobs SET status = 'CANCELLED'")
            return super().standing(runs)

    airflow = CallsOff()
    run = dispatch(records, airflow)
    assert airflow.started == {}
    assert run.counts["skipped"] == 1
    assert records.job(named).status == "CANCELLED"


def test_two_dispatchers_at_once(records: Records) -> None:
    """The cron's and the notification's: each row has one run, whoever starts it."""
    jobs = {f"job__{records.add()}" for _ in range(30)}
    bad = records.add("NO_SUCH_JOB")
    airflow, errors = FakeAirflow(), []
    lined_up = threading.Barrier(2)

    def one() -> None:
        try:
            lined_up.wait(5)
            dispatch(records, airflow)
        except BaseException as error:  # noqa: BLE001 - told by the test
            errors.append(error)

    both = [threading.Thread(target=one) for _ in range(2)]
    for each in both:
        each.start()
    for each in both:
        each.join()
    assert errors == []
    assert {run.run_id for run in airflow.started} == jobs
    assert records.job(bad).attempts == 1
    assert len(records.letters()) == 1


def test_killed_at_every_point(records: Records, record_property: Any) -> None:
    """Ruling 3: at any statement, commit or call; the next run starts what is left, and nothing twice."""

    def seed() -> FakeAirflow:
        records.forget()
        records.add(id=UUID(int=71), payload={"company_id": str(records.company)}, created_by=records.owner)
        records.add("NO_SUCH_JOB", id=UUID(int=72))
        records.add(id=UUID(int=73), dag_run_id=f"{RISK}/job__{UUID(int=73)}", attempts=1)
        return FakeAirflow(runs={DagRun(RISK, f"job__{UUID(int=73)}"): OVER})

    def state(airflow: FakeAirflow, alerts: FakeAlerts) -> Any:
        rows = records.rows("SELECT id, status, attempts, dag_run_id FROM background_jobs ORDER BY id")
        letters = [(one.job_id, one.error_message) for one in records.letters()]
        return rows, letters, sorted(run.key for run in airflow.started), len(alerts.told)

    airflow, alerts = seed(), FakeAlerts()
    with dies_at(records.engine, 0, airflow) as clean:
        dispatch(records, airflow, alerts)
    whole = state(airflow, alerts)
    assert len(whole[2]) == 2
    assert whole[3] == 1
    for number in range(1, len(clean) + 1):
        airflow, alerts = seed(), FakeAlerts()
        with dies_at(records.engine, number, airflow), pytest.raises(Killed):
            dispatch(records, airflow, alerts)
        records.engine.dispose()
        dispatch(records, airflow, alerts)
        assert state(airflow, alerts) == whole, f"after event {number}: {clean[number - 1]}"
        dispatch(records, airflow, alerts)
        assert state(airflow, alerts) == whole, "a third time"
    record_property("crash points", f"ecocomply_job_dispatcher: {len(clean)}")


def test_the_operators_hear_of_what_is_nobodys(records: Records) -> None:
    """A job without a company: the ledger, once; one with a company: its people."""
    records.add("NO_SUCH_JOB")
    records.add("NO_SUCH_JOB", payload={"company_id": str(records.company)})
    alerts = FakeAlerts()
    for _ in range(2):
        dispatch(records, FakeAirflow(), alerts)
    assert list(alerts.told.values()) == ["run: Background Job Failed: NO_SUCH_JOB"]
    assert records.notified() == {records.owner, records.admin}


def test_a_preview_shows_what_would_start(records: Records) -> None:
    """Ruling 9: rows, calls and alerts as the real run then has them, and nothing is changed."""
    records.add(payload={"company_id": str(records.company)}, created_by=records.owner)
    records.add("NO_SUCH_JOB")
    airflow, alerts = FakeAirflow(), FakeAlerts()
    before = records.rows("SELECT * FROM background_jobs ORDER BY id")
    shown = preview(records.engine, MODULE, lambda db: records.run(db=db), Outside(airflow, alerts))
    assert records.rows("SELECT * FROM background_jobs ORDER BY id") == before
    assert (airflow.started, alerts.told) == ({}, {})
    run = dispatch(records, airflow, alerts)
    assert shown["counts"] == dict(run.counts)
    assert shown["calls"]["count"] == len(airflow.started) == 1
    assert shown["messages"]["count"] == len(alerts.told) == 1
    changed = {one["table"]: (one["inserted"], one["updated"]) for one in shown["tables"]}
    assert changed == {
        "background_jobs": (0, 2), "queue_audit": (2, 0), "dead_letter_queue": (1, 0), "audit_logs": (1, 0)
    }  # fmt: skip


def test_a_dag_that_is_not_there_is_waited_for(records: Records) -> None:
    """Not the row's fault: it waits, is counted, and holds up no other; the very run starts when the DAG is there."""
    late, other = records.add("AER_GENERATION", priority=9), records.add()
    airflow = FakeAirflow(missing={"ecocomply_aer_generation"})
    run = dispatch(records, airflow)
    assert (run.counts["failed"], run.counts["started"]) == (1, 1)
    assert (records.job(late).status, records.job(late).attempts) == ("PENDING", 0)
    assert [one.run_id for one in airflow.started] == [f"job__{other}"]
    airflow.missing.clear()
    dispatch(records, airflow)
    assert DagRun("ecocomply_aer_generation", f"job__{late}") in airflow.started
