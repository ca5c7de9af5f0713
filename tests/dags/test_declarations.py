"""What every DAG file declares: taken from the folder, held against the fixed catalogue."""

from __future__ import annotations

import ast
import json
import re
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import CronTriggerTimetable
from airflow.sdk.definitions.asset import BaseAsset
from airflow.sdk.definitions.timetables.assets import AssetOrTimeSchedule, AssetTriggeredTimetable
from airflow.sdk.definitions.timetables.simple import NullTimetable
from airflow.sdk.exceptions import ParamValidationError
from airflow.serialization.serialized_objects import DagSerialization

from tests.dags.every import DAGS, ROOT, DagFile, dag_files

PRIORITIES = {"HIGH": 10, "NORMAL": 5, "LOW": 1}
REQUIRED = "required"
"""In the catalogue: a param without a default, which only a DAG without a schedule may have (T2)."""

CATALOGUE: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("catalogue.yaml").read_text())
every_dag = pytest.mark.parametrize("file", dag_files(), ids=str)


@cache
def bag() -> DagBag:
    """Return all DAGs, parsed as the dag processor parses them; no database is needed."""
    return DagBag(str(DAGS))


def dag_of(file: DagFile) -> Any:
    """Return the DAG that a file declares."""
    return bag().dags[file.dag_id]


def facts_of(file: DagFile) -> dict[str, Any]:
    """Return a DAG's row of the catalogue; without one, fail with the row that is missing."""
    assert file.dag_id in CATALOGUE, (
        f"tests/dags/catalogue.yaml has no row for {file.dag_id}. Add what the specification says of it, in this "
        f"form (these values are the DAG's own):\n{row_of(file)}"
    )
    return CATALOGUE[file.dag_id]


def row_of(file: DagFile) -> str:
    """Return a DAG's row of the catalogue as the DAG declares itself."""
    dag = dag_of(file)
    task, timetable = dag.tasks[0], dag.timetable
    when: dict[str, Any] = {"schedule": "event"}
    if isinstance(timetable, AssetOrTimeSchedule):
        when = {
            "schedule": timetable.timetable.expression,
            "event": True,
            "zone": zone_of(timetable.timetable),
        }
    if isinstance(timetable, CronTriggerTimetable):
        when = {"schedule": timetable.expression, "zone": zone_of(timetable)}
    if isinstance(timetable, NullTimetable):
        when = {"schedule": "manual"}
    names = {weight: name for name, weight in PRIORITIES.items()}
    facts = when | {
        "pool": task.pool,
        "priority": names.get(task.priority_weight, task.priority_weight),
        "delays": list(getattr(task.retry_policy, "delays", ())),
        "timeout": int(task.execution_timeout.total_seconds()) if task.execution_timeout else None,
        "params": {name: default_of(dag, name) for name in dag.params if name not in ("as_of", "dry_run")},
    }
    said = ", ".join(f"{name}: {json.dumps(value)}" for name, value in facts.items())
    return f"{file.dag_id}:\n  {{{said}}}"


def default_of(dag: Any, name: str) -> Any:
    """Return a param's default, or REQUIRED for one that has none: Airflow then asks whoever triggers the DAG."""
    try:
        return dag.params.get_param(name).resolve()
    except ParamValidationError:
        return REQUIRED


def zone_of(timetable: CronTriggerTimetable) -> str:
    """Return the name of the zone that a cron is told in."""
    return str(getattr(timetable.timezone, "key", timetable.timezone))


def test_every_file_is_a_dag_and_every_dag_is_known() -> None:
    """A DagBag over a wrong folder has no DAGs and no errors, so the numbers must agree on all sides."""
    assert not bag().import_errors
    assert set(bag().dags) == {file.dag_id for file in dag_files()}
    assert set(CATALOGUE) - set(bag().dags) == set(), (
        "tests/dags/catalogue.yaml has rows of DAGs that are gone"
    )


@every_dag
def test_the_catalogue_has_a_row_for_it(file: DagFile) -> None:
    """What a DAG says of itself is compared with a row that a person wrote down once."""
    assert facts_of(file)


@every_dag
def test_it_can_be_stored(file: DagFile) -> None:
    """A DAG that parses can still fail to be serialized, and then no scheduler ever sees it."""
    assert DagSerialization.to_dict(dag_of(file))["dag"]["dag_id"] == file.dag_id


@every_dag
def test_the_stem_is_the_address(file: DagFile) -> None:
    """House: the stem names the DAG, its job's module, and the job's test; the folder names the system."""
    assert Path(dag_of(file).fileloc).stem == file.dag_id
    assert file.dag_id.startswith(f"{file.system}_")
    stem = file.dag_id.removeprefix(f"{file.system}_")
    assert Path(file.job.__file__) == ROOT / "include" / file.system / f"{stem}.py"
    assert (ROOT / "tests" / file.system / f"test_{stem}.py").exists()


@every_dag
def test_the_page_for_the_person_on_call(file: DagFile) -> None:
    """Ruling 17: the docstring is the page in the UI, and says what the DAG touches and what to do if it fails."""
    doc = dag_of(file).doc_md
    assert doc == ast.get_docstring(ast.parse(file.path.read_text()), clean=False)
    assert doc.startswith("### ")
    assert "**Touches**" in doc
    assert "**If it fails**" in doc


@every_dag
def test_owner_tags_and_limits(file: DagFile) -> None:
    """Rulings 12 and 17: owner, tags, pool, priority, attempts, exact delays and time limits of the catalogue."""
    dag, facts = dag_of(file), facts_of(file)
    assert {file.system, f"pool:{facts['pool']}"} <= set(dag.tags)
    assert any(re.fullmatch(r"on-failure:(rerun|wait|call)", tag) for tag in dag.tags)
    assert dag.max_active_runs == facts.get("max_active_runs", 1)
    assert dag.catchup is False
    delays, timeout = facts["delays"], facts["timeout"]
    assert dag.dagrun_timeout == timedelta(seconds=(len(delays) + 1) * timeout + sum(delays) + 300)
    for task in dag.tasks:
        assert task.owner not in ("", "airflow")
        assert task.pool == facts["pool"]
        assert task.priority_weight == PRIORITIES[facts["priority"]]
        assert (
            task.weight_rule.__class__.__name__.startswith("_Absolute") or str(task.weight_rule) == "absolute"
        )
        assert task.retries == len(delays)
        assert list(task.retry_policy.delays) == delays
        assert task.execution_timeout == timedelta(seconds=timeout)
        assert task.on_failure_callback
        assert not task.retry_exponential_backoff


@every_dag
def test_the_schedule(file: DagFile) -> None:
    """The catalogue fixes cron and zone; an event DAG waits for its asset, one with both does not wait for either."""
    timetable, facts = dag_of(file).timetable, facts_of(file)
    if facts["schedule"] == "manual":
        assert isinstance(timetable, NullTimetable)
    elif facts["schedule"] == "event":
        assert isinstance(timetable, AssetTriggeredTimetable)
        assert isinstance(timetable.asset_condition, BaseAsset)
    else:
        if facts.get("event"):
            assert isinstance(timetable, AssetOrTimeSchedule)
            assert isinstance(timetable.asset_condition, BaseAsset)
            timetable = timetable.timetable
        assert isinstance(timetable, CronTriggerTimetable)
        assert timetable.expression == facts["schedule"]
        assert zone_of(timetable) == facts["zone"]


@every_dag
def test_the_params(file: DagFile) -> None:
    """Ruling 10: every param is typed, has the catalogue's default, and as_of and dry_run are everywhere."""
    dag, facts = dag_of(file), facts_of(file)
    assert {name: default_of(dag, name) for name in dag.params} == {
        **facts["params"],
        "as_of": None,
        "dry_run": False,
    }
    for name in dag.params:
        schema = dag.params.get_param(name).schema
        assert "type" in schema, f"{name} has no type"


@every_dag
def test_one_task_per_step_and_a_preview_first(file: DagFile) -> None:
    """Rulings 9 and 17: a task for every step of the job, named as it, after one that checks or previews the run."""
    dag = dag_of(file)
    first = [task for task in dag.tasks if not task.upstream_task_ids]
    assert [task.task_id for task in first] == ["check_run"]
    steps = [step.__name__ for step in file.job.STEPS]
    assert [name for name in steps if name not in dag.task_ids] == []
    assert set(dag.task_ids) - set(steps) <= {"check_run", "report_run"}


@every_dag
def test_a_dag_file_is_short_and_holds_no_rules(file: DagFile) -> None:
    """House: a DAG file says when and in which order; rules live in include/."""
    source = file.path.read_text()
    assert len(source.splitlines()) <= 80 + len((ast.get_docstring(ast.parse(source)) or "").splitlines())
    assert not re.search(r"\b(SELECT|UPDATE|INSERT|DELETE)\b", source)
