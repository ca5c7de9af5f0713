"""The specification's tables, made or taken over; who owns a row, and which role sees it; the queue's guard."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import resources
from typing import Any, LiteralString, cast

from alembic import op
from psycopg import sql
from sqlalchemy import TextClause, insert, text
from sqlalchemy.schema import CreateIndex

from include.adoption import Adoption
from include.ecocomply.migrations.r0001_tables import ADOPTION_FINDINGS, BASELINE, METADATA
from include.ecocomply.migrations.r0001_tables.queue import JOBS
from include.queues.schema import guard_statements, queue_indexes

revision = "0001"
down_revision = None

_USER, _SERVICE = "ecocomply_user", "ecocomply_service"

# What a row names: its company is that row's, and its site too where it has none of its own.
_PARENTS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "user_roles": (("user_id", "users"),),
    "user_site_assignments": (("site_id", "sites"),),
    "module_activations": (("site_id", "sites"),),
    "documents": (("site_id", "sites"),),
    "excel_imports": (("site_id", "sites"),),
    "obligations": (("document_id", "documents"), ("site_id", "sites"), ("excel_import_id", "excel_imports")),
    "schedules": (("obligation_id", "obligations"),),
    "deadlines": (("obligation_id", "obligations"), ("schedule_id", "schedules"), ("site_id", "sites")),
    "evidence_items": (("site_id", "sites"),),
    "obligation_evidence_links": (("obligation_id", "obligations"), ("evidence_id", "evidence_items")),
    "recurring_tasks": (("site_id", "sites"),),
    "tasks": (("recurring_task_id", "recurring_tasks"), ("site_id", "sites")),
    "extraction_logs": (("document_id", "documents"),),
    "extraction_answers": (("document_id", "documents"),),
    "review_queue_items": (
        ("obligation_id", "obligations"),
        ("document_id", "documents"),
        ("site_id", "sites"),
    ),
    "review_queue_escalation_history": (("review_queue_item_id", "review_queue_items"),),
    "parameters": (("document_id", "documents"), ("site_id", "sites")),
    "lab_results": (("parameter_id", "parameters"), ("site_id", "sites")),
    "generators": (("document_id", "documents"), ("site_id", "sites")),
    "run_hour_records": (("generator_id", "generators"),),
    "runtime_monitoring": (
        ("generator_id", "generators"),
        ("site_id", "sites"),
        ("evidence_linkage_id", "evidence_items"),
    ),
    "fuel_usage_logs": (("generator_id", "generators"),),
    "sulphur_content_reports": (("generator_id", "generators"),),
    "stack_tests": (("generator_id", "generators"),),
    "generator_incidents": (("generator_id", "generators"),),
    "aer_documents": (("document_id", "documents"), ("site_id", "sites")),
    "permit_workflows": (("document_id", "documents"),),
    "corrective_actions": (("site_id", "sites"),),
    "corrective_action_items": (("corrective_action_id", "corrective_actions"),),
    "waste_streams": (("site_id", "sites"),),
    "consignment_notes": (
        ("waste_stream_id", "waste_streams"),
        ("carrier_id", "contractors"),
        ("site_id", "sites"),
    ),
    "validation_rules": (("waste_stream_id", "waste_streams"),),
    "validation_executions": (("validation_rule_id", "validation_rules"),),
    "recurrence_trigger_executions": (
        ("trigger_rule_id", "recurrence_trigger_rules"),
        ("event_id", "recurrence_events"),
        ("schedule_id", "schedules"),
        ("deadline_id", "deadlines"),
    ),
    "compliance_clocks_universal": (("site_id", "sites"),),
    "escalations": (
        ("obligation_id", "obligations"),
        ("workflow_id", "escalation_workflows"),
        ("site_id", "sites"),
    ),
    "evidence_gaps": (("deadline_id", "deadlines"), ("obligation_id", "obligations"), ("site_id", "sites")),
    "risk_scores": (("site_id", "sites"),),
    "audit_packs": (("document_id", "documents"), ("site_id", "sites")),
    "pack_sharing": (("pack_id", "audit_packs"),),
    "reports": (("site_id", "sites"),),
    "notifications": (
        ("site_id", "sites"),
        ("obligation_id", "obligations"),
        ("evidence_id", "evidence_items"),
        ("user_id", "users"),
    ),
    "digests": (("user_id", "users"),),
    "notification_preferences": (("user_id", "users"),),
    "push_subscriptions": (("user_id", "users"),),
    "email_attempts": (
        ("notification_id", "notifications"),
        ("digest_id", "digests"),
        ("pack_sharing_id", "pack_sharing"),
    ),
    "background_jobs": (("created_by", "users"),),
}
# Who is named may be a consultant, of another company: the row's company is taken from there, and may differ.
_MAY_DIFFER = {("notifications", "user_id"), ("background_jobs", "created_by")}

# Its rows may have no company, and are then the service's alone.
_OWNERLESS = ("background_jobs", "dead_letter_queue", "audit_logs")
_READ, _APPEND, _WRITE = "SELECT", "SELECT, INSERT", "SELECT, INSERT, UPDATE, DELETE"
# Who may do what, and what the platform keeps its books in, a user's job reads and leaves as it is.
_READ_ONLY = (
    "companies", "users", "user_roles", "user_site_assignments", "modules", "extraction_rules", "module_activations",
    "consultant_client_assignments", "consultant_dashboard", "background_jobs", "dead_letter_queue", "digests",
    "email_attempts",
)  # fmt: skip
_APPEND_ONLY = ("audit_logs",)
# No policy holds here, and no user has anything to look for.
_INTERNAL = ("queue_audit", "email_batches", "delivery_pauses", "baseline", "adoption_findings")


def _source(name: str) -> str:
    folder = resources.files("include.ecocomply.migrations").joinpath("r0001_ddl")
    return folder.joinpath(f"{name}.sql").read_text(encoding="utf-8").strip()


def _ddl(name: str, **words: sql.Composable) -> sql.Composed:
    # The text of our own file, which is as literal as if it stood here.
    return sql.SQL(cast("LiteralString", _source(name))).format(**words)


def _clause(name: str, **words: sql.Composable) -> TextClause:
    # Colons of types and slices are no binds.
    return text(_ddl(name, **words).as_string(None).replace(":", r"\:").replace(r"\:\:", "::"))


def _names(*names: str) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))


def upgrade() -> None:
    """Make or adopt the tables; then owners, roles and policies; on a database in use, mark what is past as seen."""
    bind = op.get_bind()
    unsecured = set(bind.execute(text(_source("unsecured"))).scalars())
    # An expression can't be adopted: these are made afterwards, if they are not there.
    jobs = METADATA.tables["background_jobs"]
    expressions = {index.name for index in queue_indexes(JOBS)}
    jobs.indexes -= {index for index in jobs.indexes if index.name in expressions}
    adoption = Adoption(op.get_context(), "ecocomply", revision, METADATA)
    adoption.run()
    for index in queue_indexes(JOBS):
        jobs.append_constraint(index)
        op.execute(CreateIndex(index, if_not_exists=True))
    for statement in guard_statements(JOBS):
        op.execute(statement)
    _make_roles()
    if adoption.had_rows:
        _take_companies()
    _make_owners()
    _make_triggers_and_views()
    _secure(unsecured if adoption.had_rows else set())
    if adoption.had_rows:
        _mark_past_as_seen()


def _make_roles() -> None:
    for role in (_USER, _SERVICE):
        words = {"role": sql.Identifier(role), "role_word": sql.Literal(role)}
        op.execute(_clause("role", **words))
        op.execute(_clause("role_member", **words))
        op.execute(_clause("grant_schema", **words))


def _take_companies() -> None:
    """Give old rows of tables that had no company the company of what they name."""
    bind = op.get_bind()
    for table in METADATA.sorted_tables:
        if "company_id" not in table.columns:
            continue
        named = {"table": sql.Identifier(table.name)}
        for column, parent in _PARENTS.get(table.name, ()):
            words = {"parent": sql.Identifier(parent), "column": sql.Identifier(column)}
            op.execute(_clause("take_company", **named, **words))
        if table.name in _OWNERLESS:
            continue
        if missing := bind.execute(_clause("without_company", **named)).scalar():
            _report(table.name, "company_id", "rows of no company: the service's alone", missing)
        else:
            op.execute(_clause("require_company", **named))


def _make_owners() -> None:
    for table, parents in _PARENTS.items():
        function = sql.Identifier(f"{table}_owner")
        words: dict[str, Any] = {"table": sql.Identifier(table), "function": function}
        body = sql.SQL("\n    ").join(_owner(table, column, parent) for column, parent in parents)
        columns = dict.fromkeys(["company_id", *(column for column, _ in parents)])
        op.execute(_clause("owner", parents=body, **words))
        op.execute(_clause("owner_trigger", columns=_names(*columns), **words))


def _owner(table: str, column: str, parent: str) -> sql.Composed:
    has_site = "site_id" in METADATA.tables[table].columns and "site_id" in METADATA.tables[parent].columns
    words = {
        "table_word": sql.Literal(table),
        "column": sql.Identifier(column),
        "column_word": sql.Literal(column),
    }
    nothing = sql.SQL("")
    return _ddl(
        "owner_parent",
        parent=sql.Identifier(parent),
        column=sql.Identifier(column),
        site_too=sql.SQL(", p.site_id") if has_site else nothing,
        take_site=sql.SQL("NEW.site_id := coalesce(NEW.site_id, found.site_id);") if has_site else nothing,
        refuse_others=nothing if (table, column) in _MAY_DIFFER else _ddl("owner_refuse", **words),
    )


def _make_triggers_and_views() -> None:
    for name in (
        "companies_seen", "notifications_ranked", "notifications_ranked_trigger", "reminders_reset",
        "reminders_reset_trigger", "note_changed", "note_changed_trigger", "job_kept", "job_kept_trigger",
        "job_status", "job_status_trigger", "generator_hours", "compliance_clock_dashboard",
        "compliance_clock_dashboard_key", "compliance_clock_dashboard_company", "dashboard_of_companies",
    ):  # fmt: skip
        op.execute(_clause(name))


def _secure(adopted: set[str]) -> None:
    for table in METADATA.sorted_tables:
        named = {"table": sql.Identifier(table.name)}
        _grant(table.name, _SERVICE, _WRITE)
        if table.name in _INTERNAL:
            continue
        privileges = _READ if table.name in _READ_ONLY else _APPEND if table.name in _APPEND_ONLY else _WRITE
        _grant(table.name, _USER, privileges)
        if table.name != "companies" and "company_id" not in table.columns:
            continue
        company = sql.Identifier("id" if table.name == "companies" else "company_id")
        op.execute(_clause("secure", **named))
        for policy, name in (("company_policy", "company_rows"), ("service_policy", "service_rows")):
            words = {"policy": sql.Identifier(name), **named}
            op.execute(_clause("drop_policy", **words))
            op.execute(
                _clause(policy, **words, **({"company": company} if policy == "company_policy" else {}))
            )
        if table.name in adopted:
            said = f"row-level security is on: another login that works on it needs the role {_SERVICE}"
            _report(table.name, "row-level security", said)
    for view in ("compliance_clock_dashboard", "company_compliance_dashboard", "generator_hours"):
        _grant(view, _SERVICE, _READ)
    for view in ("company_compliance_dashboard", "generator_hours"):
        _grant(view, _USER, _READ)


def _grant(table: str, role: str, privileges: LiteralString) -> None:
    words = {"table": sql.Identifier(table), "role": sql.Identifier(role), "privileges": sql.SQL(privileges)}
    op.execute(_clause("grant", **words))


def _mark_past_as_seen() -> None:
    now = datetime.now(UTC)
    op.execute(insert(BASELINE).values(name="adoption"))
    for name in ("seen_deadlines", "seen_obligations", "seen_runtimes", "seen_clocks", "seen_renewals"):
        op.get_bind().execute(text(_source(name)), {"today": now.date(), "now": now})


def _report(table: str, subject: str, finding: str, row_count: int | None = None) -> None:
    op.execute(
        insert(ADOPTION_FINDINGS).values(
            revision=revision,
            table_name=table,
            subject=subject,
            finding=finding,
            row_count=row_count,
            examples=[],
        )
    )
