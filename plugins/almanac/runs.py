"""From Airflow's context to a job's run, and from its end to the summary."""

from __future__ import annotations

import importlib
import json
import logging
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from almanac import job_records
from almanac.alerts import deliver_quietly
from almanac.job_records import CalledOff
from almanac.params import AS_OF, DRY_RUN, check_conf
from almanac.settings import settings
from include.as_of import check_zone_data, instant, within_reach
from include.errors import BadInput
from include.job import Job
from include.platform.alert_ledger import About, AlertLedger
from include.platform.summaries import RunKey, begin_run, end_run, keep_preview, record_step
from include.preview import preview
from include.run import Database, EngineDatabase, Run, row_error

ALMANAC = "almanac_db"
_LOG = logging.getLogger("almanac")


def begin(context: Mapping[str, Any], job: Job, outside: Any) -> bool:
    """Check what the run was given and open its summary; a preview is all done here, and then False.

    Raises BadInput for a param that no form would have let through, CalledOff for a job that a person has called
    off: Airflow then skips the run's tasks.
    """
    now = datetime.now(UTC)
    if context["params"].get(DRY_RUN) is True:
        _open(context, job, now)
        _preview(context, job, outside, now)
        return False
    try:
        with job_records.recorded(context, lambda: _record_run(context, job)):
            _open(context, job, now)
    except CalledOff as called_off:
        begin_run(_almanac(), _key(context), _as_of(context), preview=False, params=_params(context))
        _skipped(context, job, now, called_off)
        raise
    return True


@contextmanager
def open_run(context: Mapping[str, Any], job: Job, handed: Mapping[str, Any] | None = None) -> Generator[Run]:
    """Open a job's run for one task, and keep what the task did, whether it succeeds or not.

    `handed` is what earlier tasks returned. Raises CalledOff for a job that a person has called off between
    two tries.
    """
    started_at = datetime.now(UTC)
    run = _run(context, job, _database(job), settings(job.SETTINGS), preview=False)
    run.handed.update(handed or {})
    error: BaseException | None = None
    called_off = False
    try:
        with job_records.recorded(context, lambda: run) as as_asked:
            run = as_asked or run
            yield run
    except CalledOff as off:
        called_off, run.state = True, "skipped"
        run.note(str(off))
        raise
    except BaseException as raised:
        error = raised
        _LOG.exception(
            "Job failed: job=%s err=%s durationMs=%d", job.NAME, row_error(raised), _ms_since(started_at)
        )
        raise
    finally:
        ti = context["ti"]
        record_step(
            _almanac(),
            _key(context),
            ti.task_id,
            ti.try_number,
            started_at=started_at,
            state="failed" if error is not None else run.state,
            counts=run.counts,
            notes=run.notes,
            error=None if error is None else row_error(error),
        )
        if called_off:
            # The task that would is skipped.
            _close_summary(context, job)


def end(context: Mapping[str, Any], job: Job) -> dict[str, Any]:
    """Close the run's summary, log it as one line and return it; mail what alerts are still to be mailed."""
    line = job_records.complete(
        context, lambda: _record_run(context, job), lambda: _close_summary(context, job)
    )
    deliver_quietly()
    return line


def ledger(context: Mapping[str, Any]) -> AlertLedger:
    """Return the operators' ledger, for what this run has to tell them."""
    key = _key(context)
    ti = context["ti"]
    return AlertLedger(_almanac(), About(key.dag_id, key.run_id, ti.task_id, ti.log_url))


def _open(context: Mapping[str, Any], job: Job, now: datetime) -> None:
    conf = context["dag_run"].conf or {}
    check_conf(conf, set(context["dag"].params), now)
    as_of, is_preview = _as_of(context), context["params"].get(DRY_RUN) is True
    begin_run(_almanac(), _key(context), as_of, preview=is_preview, params=_params(context))
    _LOG.info(
        "Job started: job=%s timestamp=%s as_of=%s zone_data=%s",
        job.NAME,
        now.isoformat(),
        as_of.isoformat(),
        check_zone_data(),
    )


def _preview(context: Mapping[str, Any], job: Job, outside: Any, now: datetime) -> None:
    database = _database(job)
    run_settings = settings(job.SETTINGS)

    def make_run(db: Database) -> Run:
        return _run(context, job, db, run_settings, preview=True)

    result = preview(database.engine, job, make_run, outside)
    keep_preview(_almanac(), _key(context), _as_of(context), result)
    record_step(
        _almanac(),
        _key(context),
        context["ti"].task_id,
        context["ti"].try_number,
        started_at=now,
        state=result["state"],
        counts=result["counts"],
        notes=[*result["notes"], "preview: nothing was changed"],
    )
    _close_summary(context, job)
    deliver_quietly()


def _skipped(context: Mapping[str, Any], job: Job, now: datetime, why: CalledOff) -> None:
    ti = context["ti"]
    record_step(
        _almanac(),
        _key(context),
        ti.task_id,
        ti.try_number,
        started_at=now,
        state="skipped",
        counts={},
        notes=[str(why)],
    )
    _close_summary(context, job)


def _close_summary(context: Mapping[str, Any], job: Job) -> dict[str, Any]:
    summary = end_run(_almanac(), _key(context))
    if summary is None:
        return {}
    counts = {"processed": 0, "sent": 0, "skipped": 0, "failed": 0, **summary.counts}
    line = {
        "job": job.NAME,
        "run": summary.run_id,
        "as_of": summary.as_of.isoformat(),
        "durationMs": round(summary.duration * 1000),
        "state": summary.state,
        **counts,
    }
    _LOG.info("Job completed: %s", json.dumps(line))
    return line


def _record_run(context: Mapping[str, Any], job: Job) -> Run:
    """Return the run for its record alone, which there is even where nobody can decide by the run's as-of."""
    try:
        return _run(context, job, _database(job), {}, preview=False)
    except BadInput:
        return replace(
            _run({**context, "params": {}, "logical_date": None}, job, _database(job), {}, preview=False),
            params=_params(context),
        )


def _run(
    context: Mapping[str, Any],
    job: Job,
    db: Database,
    run_settings: Mapping[str, str | None],
    *,
    preview: bool,
) -> Run:
    system = _system(job)
    return Run(
        job=job.NAME,
        run_id=context["dag_run"].run_id,
        as_of=_as_of(context),
        zone=system.ZONE,
        db=getattr(system, "DATABASE", _as_it_is)(db),
        params=_params(context),
        settings=run_settings,
        as_of_given=context["params"].get(AS_OF) is not None,
        preview=preview,
    )


def _as_it_is(db: Database) -> Database:
    return db


def _params(context: Mapping[str, Any]) -> dict[str, Any]:
    """Return the DAG's own params as the run has them."""
    return {name: value for name, value in context["params"].items() if name not in (AS_OF, DRY_RUN)}


def _as_of(context: Mapping[str, Any]) -> datetime:
    given = context["params"].get(AS_OF)
    if given is not None:
        return within_reach(instant(given))
    # Manual and asset-triggered runs have no logical date.
    moment = context.get("logical_date") or context["dag_run"].run_after
    return within_reach(moment, "logical_date").astimezone(UTC)


def _system(job: Any) -> Any:
    return importlib.import_module(job.__package__)


def _database(job: Any) -> EngineDatabase:
    from hooks.postgres import database  # noqa: PLC0415 - heavy, and no DAG file needs it to be parsed

    return database(f"{job.__package__.rpartition('.')[2]}_db")


def _almanac() -> EngineDatabase:
    from hooks.postgres import database  # noqa: PLC0415 - heavy, and no DAG file needs it to be parsed

    return database(ALMANAC)


def _key(context: Mapping[str, Any]) -> RunKey:
    return RunKey(context["dag_run"].dag_id, context["dag_run"].run_id)


def _ms_since(moment: datetime) -> int:
    return round((datetime.now(UTC) - moment).total_seconds() * 1000)
