"""docs/ecocomply-specification.md: where each section and each table of EcoComply's specification stands here."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from stack.home import PROJECT
from stack.schema_page import tables_of

PAGE = PROJECT / "docs" / "ecocomply-specification.md"

_HEAD = """\
# EcoComply's specification, section by section

Written by `make docs`; `make check` fails when it is stale. A job's DAG, its rules and its tests bear one name. What
follows later is named as such. Numbers are the specification's, which has some twice.

"""

_INCLUDE = PROJECT / "include" / "ecocomply"

# Section, chapter, and the stem of its job's DAG; or what the section is about, and where that stands.
JOBS: Sequence[tuple[str, str, str]] = (
    ("2.1", "Core monitoring", "monitoring_schedule"),
    ("2.2", "Core monitoring", "deadline_alert"),
    ("2.3", "Core monitoring", "evidence_reminder"),
    ("3.1", "Document processing", "document_processing"),
    ("3.2, first phase", "Document processing", "excel_import_preview"),
    ("3.2, second phase", "Document processing", "excel_import_commit"),
    ("4.1", "Trade effluent", "sampling_schedule"),
    ("5.1", "Generators", "run_hour_monitoring"),
    ("5.2, 5.4", "Generators", "aer_generation"),
    ("6.1", "System", "permit_renewal_reminder"),
    ("6.2", "System", "cross_sell_trigger_detection"),
    ("6.3", "System", "audit_pack_generation"),
    ("6.4", "System", "pack_distribution"),
    ("6.5", "System", "consultant_client_sync"),
    ("7.1", "Compliance clocks", "update_compliance_clocks"),
    ("7.2", "Compliance clocks", "refresh_compliance_dashboard"),
    ("8.1", "Escalations", "process_escalations"),
    ("9.1", "Permit workflows", "auto_create_renewal_workflows"),
    ("9.2", "Permit workflows", "check_regulator_response_deadlines"),
    ("10.1", "Corrective actions", "monitor_corrective_action_items"),
    ("10.2", "Corrective actions", "auto_transition_corrective_actions"),
    ("11.1", "Validation", "auto_validate_consignment_notes"),
    ("12.1", "Runtime monitoring", "flag_pending_runtime_validations"),
    ("12.2", "Runtime monitoring", "check_runtime_exceedances"),
    ("13.1", "SLA timers", "update_sla_breach_timers"),
    ("13.2", "SLA timers", "detect_breaches_and_alerts"),
    ("14.1", "Triggers", "execute_pending_recurrence_triggers"),
    ("14.2", "Triggers", "process_trigger_conditions"),
    ("17.1", "Enhanced features", "evidence_gap_detection"),
    ("17.2", "Enhanced features", "risk_score_calculation"),
    ("17.3", "Enhanced features", "review_queue_escalation"),
    ("18.1", "Production jobs", "evidence_expiry_tracking"),
    ("18.2", "Production jobs", "recurring_task_generation"),
    ("18.3", "Production jobs", "report_generation"),
    ("18.4", "Production jobs", "notification_delivery"),
    ("18.5, daily", "Production jobs", "digest_delivery_daily"),
    ("18.5, weekly", "Production jobs", "digest_delivery_weekly"),
    ("18.6", "Production jobs", "evidence_retention"),
    ("1.1, 7.2, 7.4", "Infrastructure", "job_dispatcher"),
    ("7.3", "Infrastructure", "job_health"),
    ("7.2, retention", "Infrastructure", "dead_letter_retention"),
)

# Section, what it is about, the modules that hold it (or what took its place), and the tests.
GROUND: Sequence[tuple[str, str, str, str]] = (
    ("1.1", "framework, queues, workers", "Airflow; a queue is a pool; `include/queues`", "tests/queues"),
    ("1.2", "registry of job types", "include/ecocomply/job_types.py", "tests/ecocomply/test_job_types.py"),
    ("7.1", "retries", "include/ecocomply/job_records/attempts.py", "tests/ecocomply/test_job_attempts.py"),
    (
        "7.2",
        "dead letters",
        "include/ecocomply/job_records/dead_letters.py",
        "tests/ecocomply/test_dead_letters.py",
    ),
    (
        "7.3",
        "heartbeats, stale jobs",
        "include/ecocomply/job_health.py",
        "tests/ecocomply/test_job_health.py",
    ),
    (
        "7.4",
        "status transitions",
        "include/ecocomply/background_jobs.py",
        "tests/ecocomply/test_background_jobs.py",
    ),
    ("7.5", "tables of jobs", "include/ecocomply/tables/jobs.py", "tests/ecocomply/test_schema.py"),
    (
        "15.1",
        "connections, row-level security",
        "include/ecocomply/access.py",
        "tests/ecocomply/test_row_level_security.py",
    ),
    ("15.2", "notifications", "include/ecocomply/notices.py", "tests/ecocomply/test_notices.py"),
    ("15.3", "AI service", "follows with the jobs on documents", ""),
    (
        "15.4",
        "storage",
        "`plugins/hooks/storage.py`; its layout follows with the jobs on files",
        "tests/hooks/test_storage.py",
    ),
    (
        "15.5",
        "status of jobs as it changes",
        "include/ecocomply/job_records/attempts.py",
        "tests/ecocomply/test_job_attempts.py",
    ),
    ("16", "integration points", "docs/ecocomply.md", ""),
    ("18.1", "structured logging", "include/run.py", "tests/almanac/test_runs.py"),
    (
        "18.2",
        "errors in the audit log",
        "include/ecocomply/job_records/failures.py",
        "tests/ecocomply/test_job_attempts.py",
    ),
    (
        "18.3",
        "alerts by severity",
        "include/ecocomply/job_records/failures.py",
        "tests/ecocomply/test_job_attempts.py",
    ),
    (
        "18.4",
        "metrics, health",
        "include/ecocomply/job_records/metrics.py",
        "tests/ecocomply/test_job_metrics.py",
    ),
)


def page() -> str:
    """Return the page."""
    return "\n".join([_HEAD.rstrip("\n"), "", *_jobs(), "", *_ground(), "", *_tables(), ""])


def _jobs() -> Iterable[str]:
    yield "## Jobs"
    yield ""
    yield "| section | chapter | DAG | rules | test |"
    yield "|---|---|---|---|---|"
    for section, chapter, stem in JOBS:
        if not _has_dag(stem):
            yield f"| {section} | {chapter} | ecocomply_{stem} | follows | |"
            continue
        dag = f"[ecocomply_{stem}](dags.md#ecocomply_{stem})"
        yield (
            f"| {section} | {chapter} | {dag} | `include/ecocomply/{stem}.py` | `tests/ecocomply/test_{stem}.py` |"
        )


def _ground() -> Iterable[str]:
    yield "## What all jobs stand on"
    yield ""
    yield "| section | about | where | test |"
    yield "|---|---|---|---|"
    for section, about, where, test in GROUND:
        code = f"`{where}`" if where.startswith(("include/", "docs/")) else where
        yield f"| {section} | {about} | {code} | {f'`{test}`' if test else ''} |"


def _tables() -> Iterable[str]:
    used = {stem: _text_of(stem) for _, _, stem in JOBS if _has_dag(stem)}
    yield "## Tables"
    yield ""
    yield "Their columns: [schema](ecocomply-schema.md). `tests/ecocomply/test_schema.py` and, for who sees which rows,"
    yield "`tests/ecocomply/test_row_level_security.py` take every table from the database's catalog."
    yield ""
    yield "| table | stands in | jobs whose statements name it |"
    yield "|---|---|---|"
    for area in importlib.import_module("include.ecocomply.tables").AREAS:
        stands_in = f"`{area.__name__.replace('.', '/')}.py`"
        for table in tables_of(area):
            word = re.compile(rf"\b{table.name}\b")
            jobs = ", ".join(stem for stem, text in used.items() if word.search(text))
            yield f"| {table.name} | {stands_in} | {jobs or 'none yet'} |"


def _has_dag(stem: str) -> bool:
    return (PROJECT / "dags" / "ecocomply" / f"ecocomply_{stem}.py").exists()


def _text_of(stem: str) -> str:
    """Return the statements that a job's module, and what it imports of EcoComply's, names."""
    found: list[str] = []
    waiting, seen = [_INCLUDE / f"{stem}.py"], set()
    while waiting:
        module = waiting.pop()
        if module in seen or not module.exists():
            continue
        seen.add(module)
        tree = ast.parse(module.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                file = module.parent / "sql" / f"{node.value}.sql"
                if node.value.isidentifier() and file.exists():
                    found.append(file.read_text(encoding="utf-8"))
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("include.ecocomply"):
                waiting += _modules(node.module or "", [name.name for name in node.names])
    return "\n".join(found)


def _modules(module: str, names: Iterable[str]) -> list[Path]:
    """Return the files that `from module import names` may read, the tables' aside: they name every table."""
    place = PROJECT.joinpath(*module.split("."))
    files = [place.with_suffix(".py"), *(place / f"{name}.py" for name in names)]
    return [file for file in files if file.parent.name != "tables"]
