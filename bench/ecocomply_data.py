"""EcoComply's data for the benchmarks: the generator's rows, as many as a job's main table is to have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType

from sqlalchemy import Connection

from include.ecocomply.generator import generate
from include.ecocomply.generator.order import ROWS
from include.statements import statement

_PEOPLE = (
    "companies_rows",
    "modules_rows",
    "sites_rows",
    "users_rows",
    "user_roles_rows",
    "user_site_assignments_rows",
    "documents_rows",
)
_OBLIGATIONS = (
    *_PEOPLE,
    "obligations_rows",
    "schedules_rows",
    "deadlines_rows",
    "obligations_due",
    "schedules_due",
    "deadlines_breached",
    "evidence_items_rows",
    "obligation_evidence_links_rows",
    "review_queue_items_rows",
    "review_queue_escalation_history_rows",
    "review_queue_items_escalated",
    "escalation_workflows_rows",
    "escalations_rows",
    "evidence_gaps_rows",
)
_OF_A_COMPANY = 2_000
"""How many obligations a company has."""
_EACH = 9
"""How many it has where companies are what is counted."""


@dataclass(frozen=True, slots=True)
class Data:
    """Which of the generator's statements make it, and how many rows of the main table come of one unit.

    The unit is an obligation, or a company where there are no obligations. `more` are statements of the
    benchmarks' own, for what the generator makes few of.
    """

    statements: tuple[str, ...]
    per_obligation: float = 0
    per_company: float = 0
    more: tuple[str, ...] = ()

    def fill(self, connection: Connection, rows: int, today: date) -> None:
        """Put about `rows` rows of the main table, and what they need, into an empty database."""
        obligations = round(rows / self.per_obligation) if self.per_obligation else 0
        companies = round(rows / self.per_company) if self.per_company else obligations // _OF_A_COMPANY
        generate(
            connection,
            today=today,
            companies=max(2, companies),
            obligations=obligations,
            statements=[name for name in ROWS if name in self.statements],
        )
        for name in self.more:
            connection.execute(statement("bench", name).clause, {"today": today})


def of_companies(per_company: float, *statements: str, more: tuple[str, ...] = ()) -> Data:
    """Return data without obligations: companies, their people and documents, and what `statements` make."""
    return Data((*_PEOPLE, *statements), per_company=per_company, more=more)


DATA: Mapping[str, Data] = MappingProxyType(
    {
        "obligations": Data(_OBLIGATIONS, per_obligation=1),
        "deadlines": Data(_OBLIGATIONS, per_obligation=3),
        "evidence_items": Data(_OBLIGATIONS, per_obligation=0.7),
        "review_queue_items": Data(_OBLIGATIONS, per_obligation=0.5),
        "compliance_clocks_universal": of_companies(11, "compliance_clocks_rows"),
        "recurring_tasks": of_companies(6, "recurring_tasks_rows"),
        "parameters": of_companies(12, "parameters_rows"),
        "documents": of_companies(12, "permit_workflows_rows"),
        "permit_workflows": of_companies(12, "permit_workflows_rows", more=("add_ecocomply_variations",)),
        "run_hour_records": of_companies(156, "generators_rows", "run_hour_records_rows"),
        "runtime_monitoring": of_companies(120, "generators_rows", "runtime_monitoring_rows"),
        "corrective_action_items": of_companies(9, "corrective_actions_rows", "corrective_action_items_rows"),
    }
)
"""By the main table."""

RATES = Data(
    (
        *_OBLIGATIONS,
        "module_activations_rows",
        "consultant_client_assignments_rows",
        "contractors_rows",
        "waste_streams_rows",
        "validation_rules_rows",
        "consignment_notes_rows",
        "recurrence_trigger_rules_rows",
        "recurrence_events_rows",
        "notifications_rows",
        "notification_preferences_rows",
        "audit_logs_rows",
    ),
    per_obligation=1 / _EACH,
    per_company=1,
    more=("add_ecocomply_digests",),
)
"""By companies, each with a few obligations that triggers aim at and consultants look at."""
