"""The catalogue of EcoComply's jobs: each DAG's type, pool, priority and limits, and who hears of a failure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

Priority = Literal["HIGH", "NORMAL", "LOW"]
Severity = Literal["INFO", "WARNING", "ERROR", "CRITICAL"]

DELAYS = (2, 4)
"""Seconds before the second and the third attempt."""

EXCEL_IMPORT = "EXCEL_IMPORT_PROCESSING"
DIGEST = "digest-delivery-job"


class Told(Enum):
    """Who is told that a job has failed for good."""

    ADMINS = "the company's owners and admins"
    REQUESTER = "the user who asked for it"
    OPERATORS = "the operators alone"


@dataclass(frozen=True, slots=True)
class FailureRule:
    """How grave it is that a job of a type has failed for good, and who is told."""

    severity: Severity
    told: Told


@dataclass(frozen=True, slots=True)
class JobDag:
    """One DAG of a job type.

    `timeout` is the work of one attempt and `heartbeat` the time between two heartbeats, in seconds; both are
    those of the largest kind of document where they depend on it. `attempts` is the most that a row may have.
    `service_only` is the platform's own work for everybody, which nobody's claims can narrow: whoever asks for it
    only has it done now, and it acts as the service.
    """

    dag_id: str
    job_type: str
    pool: str
    priority: Priority = "NORMAL"
    timeout: int = 300
    attempts: int = 3
    heartbeat: int = 60
    service_only: bool = False

    @property
    def delays(self) -> tuple[int, ...]:
        """Seconds before attempt 2, 3, …."""
        return DELAYS[: self.attempts - 1]


IMPORT_PREVIEW = JobDag(
    "ecocomply_excel_import_preview", EXCEL_IMPORT, "document-processing", timeout=60, heartbeat=30
)
IMPORT_COMMIT = JobDag("ecocomply_excel_import_commit", EXCEL_IMPORT, "document-processing", heartbeat=30)
DIGEST_DAILY = JobDag(
    "ecocomply_digest_delivery_daily", DIGEST, "digest-delivery", timeout=3600, service_only=True
)
DIGEST_WEEKLY = JobDag(
    "ecocomply_digest_delivery_weekly", DIGEST, "digest-delivery", timeout=3600, service_only=True
)

# fmt: off
JOB_DAGS = (
    JobDag("ecocomply_monitoring_schedule", "MONITORING_SCHEDULE", "monitoring-schedule"),
    JobDag("ecocomply_deadline_alert", "DEADLINE_ALERT", "deadline-alerts", "HIGH", 120),
    JobDag("ecocomply_evidence_reminder", "EVIDENCE_REMINDER", "evidence-reminders", "HIGH", 120),
    JobDag("ecocomply_document_processing", "DOCUMENT_PROCESSING", "document-processing", heartbeat=30),
    IMPORT_PREVIEW,
    IMPORT_COMMIT,
    JobDag("ecocomply_sampling_schedule", "SAMPLING_SCHEDULE", "module-2-sampling"),
    JobDag("ecocomply_run_hour_monitoring", "RUN_HOUR_MONITORING", "module-3-run-hours"),
    JobDag("ecocomply_aer_generation", "AER_GENERATION", "aer-generation", timeout=600),
    JobDag("ecocomply_permit_renewal_reminder", "PERMIT_RENEWAL_REMINDER", "deadline-alerts"),
    JobDag("ecocomply_cross_sell_trigger_detection", "CROSS_SELL_TRIGGER_DETECTION", "cross-sell-triggers", "LOW"),
    JobDag("ecocomply_audit_pack_generation", "AUDIT_PACK_GENERATION", "audit-pack-generation", timeout=600),
    JobDag("ecocomply_pack_distribution", "PACK_DISTRIBUTION", "pack-distribution"),
    JobDag("ecocomply_consultant_client_sync", "CONSULTANT_CLIENT_SYNC", "consultant-sync", "LOW", 600, 2),
    JobDag("ecocomply_update_compliance_clocks", "UPDATE_COMPLIANCE_CLOCKS", "compliance-clocks", timeout=600),
    JobDag(
        "ecocomply_refresh_compliance_dashboard",
        "REFRESH_COMPLIANCE_DASHBOARD",
        "dashboard-refresh",
        "LOW",
        60,
        2,
        service_only=True,
    ),
    JobDag("ecocomply_process_escalations", "PROCESS_ESCALATIONS", "escalation-processing", "HIGH", 600),
    JobDag("ecocomply_auto_create_renewal_workflows", "AUTO_CREATE_RENEWAL_WORKFLOWS", "permit-workflows"),
    JobDag(
        "ecocomply_check_regulator_response_deadlines",
        "CHECK_REGULATOR_RESPONSE_DEADLINES",
        "permit-workflows",
        timeout=120,
        attempts=2,
    ),
    JobDag("ecocomply_monitor_corrective_action_items", "MONITOR_CORRECTIVE_ACTION_ITEMS", "corrective-actions"),
    JobDag(
        "ecocomply_auto_transition_corrective_actions",
        "AUTO_TRANSITION_CORRECTIVE_ACTIONS",
        "corrective-actions",
        timeout=120,
        attempts=2,
    ),
    JobDag("ecocomply_auto_validate_consignment_notes", "AUTO_VALIDATE_CONSIGNMENT_NOTES", "validation-processing"),
    JobDag(
        "ecocomply_flag_pending_runtime_validations",
        "FLAG_PENDING_RUNTIME_VALIDATIONS",
        "runtime-monitoring",
        timeout=120,
        attempts=2,
    ),
    JobDag("ecocomply_check_runtime_exceedances", "CHECK_RUNTIME_EXCEEDANCES", "runtime-monitoring", "HIGH"),
    JobDag("ecocomply_update_sla_breach_timers", "UPDATE_SLA_BREACH_TIMERS", "sla-breach-alerts", "HIGH"),
    JobDag("ecocomply_detect_breaches_and_alerts", "DETECT_BREACHES_AND_ALERTS", "sla-breach-alerts", "HIGH"),
    JobDag(
        "ecocomply_execute_pending_recurrence_triggers",
        "EXECUTE_PENDING_RECURRENCE_TRIGGERS",
        "trigger-execution",
    ),
    JobDag(
        "ecocomply_process_trigger_conditions",
        "PROCESS_TRIGGER_CONDITIONS",
        "trigger-execution",
        timeout=60,
        attempts=2,
    ),
    JobDag("ecocomply_evidence_expiry_tracking", "evidence-expiry-tracking-job", "evidence-tracking"),
    JobDag("ecocomply_recurring_task_generation", "recurring-task-generation-job", "recurring-tasks"),
    JobDag("ecocomply_report_generation", "report-generation-job", "report-generation", timeout=600),
    JobDag(
        "ecocomply_notification_delivery",
        "notification-delivery-job",
        "notification-delivery",
        "HIGH",
        service_only=True,
    ),
    DIGEST_DAILY,
    DIGEST_WEEKLY,
    JobDag("ecocomply_evidence_retention", "evidence-retention-job", "evidence-retention", "LOW", 3600),
    JobDag("ecocomply_evidence_gap_detection", "EVIDENCE_GAP_DETECTION", "evidence-tracking", timeout=600),
    JobDag("ecocomply_risk_score_calculation", "RISK_SCORE_CALCULATION", "risk-scoring", timeout=900),
    JobDag("ecocomply_review_queue_escalation", "REVIEW_QUEUE_ESCALATION", "escalation-processing", "HIGH"),
)
# fmt: on

DAGS = {dag.dag_id: dag for dag in JOB_DAGS}

FAILURES = {
    "DOCUMENT_PROCESSING": FailureRule("WARNING", Told.REQUESTER),
    "MONITORING_SCHEDULE": FailureRule("ERROR", Told.ADMINS),
    "DEADLINE_ALERT": FailureRule("CRITICAL", Told.ADMINS),
    "EVIDENCE_REMINDER": FailureRule("WARNING", Told.ADMINS),
    "SAMPLING_SCHEDULE": FailureRule("ERROR", Told.ADMINS),
    "RUN_HOUR_MONITORING": FailureRule("ERROR", Told.ADMINS),
    "AER_GENERATION": FailureRule("ERROR", Told.REQUESTER),
    "PERMIT_RENEWAL_REMINDER": FailureRule("WARNING", Told.ADMINS),
    "CROSS_SELL_TRIGGER_DETECTION": FailureRule("INFO", Told.OPERATORS),
    "AUDIT_PACK_GENERATION": FailureRule("ERROR", Told.REQUESTER),
}
"""The specification's table of 18.3; `failure_rule` says what holds for types that are not in it."""


def dags_of(job_type: str) -> tuple[JobDag, ...]:
    """Return the DAGs of a job type: one, two where a type has two, none for an unknown type."""
    return tuple(dag for dag in JOB_DAGS if dag.job_type == job_type)


def attempts_of(job_type: str) -> int:
    """Return how often a job of a type may be tried; an unknown type once."""
    return max((dag.attempts for dag in dags_of(job_type)), default=1)


def failure_rule(job_type: str) -> FailureRule:
    """Return how grave a failure for good is, and who is told."""
    urgent = any(dag.priority == "HIGH" for dag in dags_of(job_type))
    return FAILURES.get(job_type, FailureRule("CRITICAL" if urgent else "ERROR", Told.ADMINS))
