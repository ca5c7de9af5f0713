"""The words of every kind of notification, as people read them."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest

from include.ecocomply.notice_words import Unrenderable, clean, counted, kind_of, kinds, until, word
from include.errors import BadInput

TODAY = date(2026, 11, 25)
SOON, LATE = date(2026, 11, 27), date(2026, 11, 15)
APP = "https://app.ecocomply.test/"
OBLIGATION = {"obligation": "Stack test", "site": "Leeds", "site_id": "s", "obligation_id": "o"}
HOURS = {
    "generator": "G1", "site_id": "s", "generator_id": "g", "percentage": "92.0", "window": "annual",
    "limit_hours": 500, "hours_so_far": "Year-to-date", "hours": 460,
}  # fmt: skip
PERIOD = {"period_start": date(2025, 1, 1), "period_end": date(2025, 12, 31)}
PERMIT = {
    "document": "Permit A", "document_type": "PERMIT", "document_id": "d", "permit_number": "EP1",
    "permit_workflow_id": "w",
}  # fmt: skip
ITEM = {
    "item": "Seal the bund", "corrective_action": "Spill", "corrective_action_id": "c",
    "corrective_action_item_id": "i",
}  # fmt: skip

# Of each kind: values, subject, text, and the path of its link.
WORDS: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "deadline_7": (
        OBLIGATION | {"due_date": date(2026, 12, 1)}, "Due in 6 days: Stack test",
        "“Stack test” at Leeds is due in 6 days, on 1 December 2026.", "/sites/s/obligations/o",
    ),
    "deadline_3": (
        OBLIGATION | {"due_date": SOON}, "Due in 2 days: Stack test",
        "“Stack test” at Leeds is due in 2 days, on 27 November 2026.", "/sites/s/obligations/o",
    ),
    "deadline_1": (
        OBLIGATION | {"due_date": date(2026, 11, 26)}, "Due tomorrow: Stack test",
        "“Stack test” at Leeds is due tomorrow, on 26 November 2026.", "/sites/s/obligations/o",
    ),
    "deadline_0": (
        OBLIGATION | {"due_date": TODAY}, "Due today: Stack test",
        "“Stack test” at Leeds is due today, on 25 November 2026.", "/sites/s/obligations/o",
    ),
    "evidence_reminder": (
        OBLIGATION | {"due_date": TODAY}, "Evidence Required: Stack test",
        "“Stack test” at Leeds is due today, on 25 November 2026, and there is no evidence for it yet.",
        "/sites/s/obligations/o",
    ),
    "document_processed": (
        PERMIT | {"obligations_extracted": 12, "flagged_for_review": 1}, "Document Processed Successfully",
        "“Permit A” has been processed. 12 obligations extracted. 1 item flagged for review.", "/documents/d",
    ),
    "document_failed": (
        PERMIT | {"error_message": "The file is encrypted."}, "Document Processing Failed",
        "Processing failed for “Permit A”. The file is encrypted.", "/review-queue?document_id=d",
    ),
    "import_ready": (
        {"excel_import_id": "x", "valid_count": 1, "error_count": 2}, "Excel import ready for review",
        "Your Excel import is ready. 1 valid row, 2 errors.", "/obligations/import/x/preview",
    ),
    "import_completed": (
        {"site_id": "s", "success_count": 1_200}, "Excel import completed",
        "1,200 obligations imported successfully.", "/sites/s/obligations",
    ),
    "import_failed": (
        {"excel_import_id": "x", "error_message": "no column “Title”"}, "Excel import failed",
        "Your Excel import failed: no column “Title”", "/obligations/import/x",
    ),
    "sampling_reminder": (
        {"parameter": "pH", "site": "Leeds", "site_id": "s", "parameter_id": "p", "sampling_date": LATE},
        "Sampling Reminder: pH",
        "Sampling of pH at Leeds was due 10 days ago, on 15 November 2026, and there is no result yet.",
        "/sites/s/parameters/p",
    ),
    "run_hours_80": (
        HOURS | {"threshold": 80}, "Run-Hour Limit 80% Warning",
        "Generator G1 has reached 92.0% (80% threshold) of its annual 500 hour limit. Year-to-date: 460 hours.",
        "/sites/s/generators/g",
    ),
    "run_hours_90": (
        HOURS | {"threshold": 90}, "Run-Hour Limit 90% Reached",
        "Generator G1 has reached 92.0% (90% threshold) of its annual 500 hour limit. Year-to-date: 460 hours.",
        "/sites/s/generators/g",
    ),
    "run_hours_100": (
        HOURS | {"threshold": 100}, "Run-Hour Limit Breached",
        "Generator G1 has reached 92.0% (100% threshold) of its annual 500 hour limit. Year-to-date: 460 hours.",
        "/sites/s/generators/g",
    ),
    "aer_ready": (
        PERIOD | {"aer_document_id": "a", "validation_errors": 2}, "Annual emissions report ready",
        ("AER generated successfully for the period 1 January 2025 to 31 December 2025. "
        "2 validation errors to look at before it is submitted."),
        "/aer/a/download",
    ),
    "aer_failed": (
        PERIOD | {"aer_document_id": "a", "error_message": "no run hours"}, "AER generation failed",
        "AER generation failed for the period 1 January 2025 to 31 December 2025: no run hours", "/aer/a",
    ),
    "permit_renewal_reminder": (
        PERMIT | {"expiry_date": SOON}, "Expires in 2 days: Permit A Renewal",
        "Your PERMIT (EP1) expires in 2 days, on 27 November 2026. Please initiate the renewal process.",
        "/documents/d",
    ),
    "module_suggestion": (
        {"module": "Water", "keyword": "effluent", "module_id": "m"}, "Module Suggestion: Water",
        "We detected references to effluent in your permit. Would you like to activate Water?",
        "/modules/activate/m",
    ),
    "pack_ready": (
        PERIOD | {"pack_name": "Audit Pack", "subject_name": "Permit A", "audit_pack_id": "a"},
        "Audit Pack Generated Successfully",
        "Your Audit Pack for Permit A (1 January 2025 to 31 December 2025) is ready.", "/audit-packs/a/download",
    ),
    "pack_failed": (
        {"pack_name": "Board Pack", "error_message": "it needs an OWNER or ADMIN"}, "Pack Generation Failed",
        "Board Pack generation failed: it needs an OWNER or ADMIN", "/audit-packs",
    ),
    "pack_distributed": (
        {"pack_name": "Audit Pack", "audit_pack_id": "a", "recipient_count": 3, "failed_count": 1},
        "Audit Pack distributed",
        "Your Audit Pack went to 3 recipients. 1 recipient could not be reached.", "/audit-packs/a",
    ),
    "consultant_sync": (
        {"client_count": 2, "overdue_count": 1, "due_soon_count": 5}, "Your clients: 2 companies",
        "Your dashboard is up to date: 2 companies, 1 overdue deadline, 5 deadlines in the next 30 days.",
        "/consultant/dashboard",
    ),
    "clock_reminder": (
        {"clock": "Permit A", "site": "Leeds", "target_date": SOON, "compliance_clock_id": "k"},
        "Due in 2 days: Permit A", "Permit A at Leeds is due in 2 days, on 27 November 2026.",
        "/compliance-clocks/k",
    ),
    "escalation": (
        OBLIGATION | {"level": 1, "days_overdue": 7}, "Level 1 Escalation: Stack test",
        "“Stack test” at Leeds is 7 days overdue and has been escalated to level 1.", "/sites/s/obligations/o",
    ),
    "renewal_required": (
        PERMIT | {"expiry_date": TODAY + timedelta(90)}, "Permit Renewal Required: Expires in 90 days",
        ("Your PERMIT (Permit A) expires in 90 days, on 23 February 2027. A renewal workflow has been created. "
        "Please start the renewal process."),
        "/permits/d/workflows/w",
    ),
    "regulator_response_overdue": (
        PERMIT | {"workflow_type": "RENEWAL", "deadline": LATE, "days_overdue": 10},
        "Regulator Response Overdue: RENEWAL",
        ("The regulator response for your RENEWAL workflow was due on 15 November 2026 and is now 10 days overdue. "
        "Consider following up with the regulator."),
        "/permits/d/workflows/w",
    ),
    "corrective_item_due": (
        ITEM | {"due_date": TODAY}, "Corrective Action Item Due today",
        "“Seal the bund” of the corrective action “Spill” is due today, on 25 November 2026.",
        "/corrective-actions/c/items/i",
    ),
    "corrective_item_overdue": (
        ITEM | {"due_date": LATE}, "Corrective Action Item Overdue",
        "“Seal the bund” of the corrective action “Spill” was due 10 days ago, on 15 November 2026.",
        "/corrective-actions/c/items/i",
    ),
    "corrective_action_ready": (
        ITEM, "Corrective Action Ready for Resolution",
        ("All action items for “Spill” have been completed. The corrective action is now ready for resolution "
        "verification."),
        "/corrective-actions/c",
    ),
    "consignment_note_failed": (
        {"note_number": "N1", "error_details": "no licence", "consignment_note_id": "n"},
        "Consignment Note Validation Failed", "Consignment note N1 failed its validation: no licence",
        "/consignment-notes/n",
    ),
    "runtime_validation_pending": (
        {"generator": "G1", "pending_count": 1, "oldest_entry_date": LATE, "site_id": "s", "generator_id": "g"},
        "1 Manual Runtime Entry Pending Validation",
        ("Generator G1 has 1 manual runtime entry pending validation. Oldest entry: 15 November 2026. "
        "Please review and validate."),
        "/sites/s/generators/g/runtime",
    ),
    "runtime_exceedance": (
        {
            "generator": "G1", "run_date": LATE, "annual_percentage": "104.0", "monthly_percentage": None,
            "exceedance_type": "ANNUAL_LIMIT_EXCEEDED", "window": "annual", "site_id": "s", "generator_id": "g",
        },
        "Generator Runtime Limit Exceeded: G1",
        ("Generator G1 has exceeded its annual runtime limit. Run date: 15 November 2026. Annual: 104.0% of limit. "
        "Please review and take corrective action."),
        "/sites/s/generators/g",
    ),
    "sla_escalation": (
        OBLIGATION | {"breach_hours": 25, "threshold_hours": 24}, "SLA Breach Exceeds 24 Hours",
        "Obligation “Stack test” at Leeds has been in SLA breach for 25 hours.", "/sites/s/obligations/o",
    ),
    "regulatory_breach": (
        OBLIGATION | {"due_date": LATE}, "Deadline Missed Without Evidence: Stack test",
        ("“Stack test” at Leeds was due 10 days ago, on 15 November 2026. It requires evidence, and there is none "
        "that has been approved."),
        "/sites/s/obligations/o",
    ),
    "compliance_breach": (
        OBLIGATION | {"due_date": LATE}, "Deadline Missed: Stack test",
        "“Stack test” at Leeds was due 10 days ago, on 15 November 2026, and has not been completed.",
        "/sites/s/obligations/o",
    ),
    "sla_breach": (
        OBLIGATION | {"sla_target_date": LATE, "due_date": SOON}, "SLA Missed: Stack test",
        ("The SLA target of “Stack test” at Leeds was 15 November 2026. The obligation itself is due in 2 days, on "
        "27 November 2026."),
        "/sites/s/obligations/o",
    ),
    "evidence_expiring": (
        {"file_name": "lab.pdf", "site": "Leeds", "expiry_date": TODAY, "evidence_id": "e"},
        "Evidence expires today: lab.pdf", "Evidence “lab.pdf” at Leeds expires today, on 25 November 2026.",
        "/evidence/e",
    ),
    "report_ready": (
        {"report_type": "Evidence Register", "row_count": 1, "report_id": "r"},
        "Your Evidence Register report is ready", "Your Evidence Register report is ready: 1 row.",
        "/reports/r/download",
    ),
    "report_failed": (
        {"report_type": "Evidence Register", "error_message": "too large", "report_id": "r"},
        "Report Generation Failed", "Your Evidence Register report failed: too large", "/reports/r",
    ),
    "evidence_gap": (
        OBLIGATION | {"due_date": SOON, "severity": "CRITICAL", "gap": "none of its evidence is approved."},
        "Evidence Gap (CRITICAL): Stack test",
        "“Stack test” at Leeds is due in 2 days, on 27 November 2026: none of its evidence is approved.",
        "/sites/s/obligations/o",
    ),
    "risk_band_worsened": (
        {
            "site": "Leeds", "site_id": "s", "band": "HIGH", "previous_band": "MEDIUM", "score": "55.0",
            "previous_score": "48.5", "days_in_high": 1,
        },
        "Risk of Leeds Is Now HIGH", "The risk score of Leeds went from 48.5 (MEDIUM) to 55.0 (HIGH).",
        "/sites/s/risk",
    ),
    "review_escalation": (
        {
            "document": "Permit A", "hours_pending": 49, "level": 1, "hallucination_risk": True,
            "review_queue_item_id": "q",
        },
        "Review Waits for 49 Hours: Permit A",
        ("An item of “Permit A” has waited for 49 hours to be reviewed and has been escalated to level 1. The "
        "extraction may have made it up."),
        "/review-queue/q",
    ),
    "job_failed": (
        {"job_type": "DEADLINE_ALERT", "retry_count": 2, "error_message": "timeout", "background_job_id": "j"},
        "Background Job Failed: DEADLINE_ALERT",
        ("The DEADLINE_ALERT job failed after 2 retries. Error: timeout. Please check the admin dashboard for "
        "details."),
        "/admin/jobs/j",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", sorted(WORDS))
def test_the_words(kind: str) -> None:
    """What people read, and an absolute link to where they can act on it."""
    values, subject, text, path = WORDS[kind]
    made = word(kind, values, today=TODAY, app_url=APP)
    assert made == (subject, text, f"<p>{text}</p>", f"https://app.ecocomply.test{path}")


def test_every_kind_has_its_words_tested() -> None:
    """A kind that is added has its words here."""
    assert set(WORDS) == set(kinds())


@pytest.mark.parametrize("kind", sorted(WORDS))
def test_a_value_that_is_missing_is_named(kind: str) -> None:
    """Nobody is sent a sentence with a hole in it."""
    values, _, text, _ = WORDS[kind]
    for name, value in values.items():
        # What only some words have, the others do without.
        if isinstance(value, str) and value in text and len(value) > 1 and name != "permit_number":
            with pytest.raises(Unrenderable, match=f"{kind}.*{name}"):
                word(kind, {k: v for k, v in values.items() if k != name}, today=TODAY, app_url=APP)


HOSTILE = '<a href="https://evil.test">Reset</a> & Co'


def test_a_name_is_never_markup() -> None:
    """E4: escaped in HTML, as it was written in the subject and the text."""
    made = word("escalation", clean(OBLIGATION | {"obligation": HOSTILE, "level": 1, "days_overdue": 1}),
                today=TODAY, app_url=APP)  # fmt: skip
    assert HOSTILE in made.subject
    assert HOSTILE in made.text
    assert "1 day overdue" in made.text
    assert "<a" not in made.html
    assert "&lt;a href=&#34;https://evil.test&#34;&gt;Reset&lt;/a&gt; &amp; Co" in made.html


def test_values_stand_on_one_line() -> None:
    """A title of several lines, or with what no database holds, breaks neither subject nor row."""
    assert clean({"a": "x\r\nBcc: y\x00\u202e", "b": 1, "c": "w" * 999}) == {
        "a": "x Bcc: y", "b": 1, "c": "w" * 299 + "…"
    }  # fmt: skip


def test_a_number_that_is_none_is_unusable() -> None:
    """It is the notification's own fault, and stops no other."""
    values = WORDS["risk_band_worsened"][0] | {"days_in_high": Decimal("NaN")}
    with pytest.raises(Unrenderable, match="risk_band_worsened"):
        word("risk_band_worsened", values, today=TODAY, app_url=APP)


def test_a_kind_that_there_is_not() -> None:
    """A misspelt kind says so."""
    with pytest.raises(Unrenderable, match="'deadline_2': there is no such kind"):
        kind_of("deadline_2")


def test_a_link_that_can_not_be() -> None:
    """APP_URL is a setting that somebody types."""
    with pytest.raises(BadInput, match=r"APP_URL 'app\.ecocomply'"):
        word("escalation", {}, today=TODAY, app_url="app.ecocomply")


@pytest.mark.parametrize(
    ("days", "said"),
    [
        (-9, "9 days ago"),
        (-1, "yesterday"),
        (0, "today"),
        (1, "tomorrow"),
        (2, "in 2 days"),
        (1_000, "in 1,000 days"),
    ],
)
def test_how_far_a_day_is(days: int, said: str) -> None:
    """Ruling: the text is real."""
    assert until(TODAY + timedelta(days), TODAY) == said


def test_one_is_not_many() -> None:
    """Nobody has 1 rows."""
    said = [counted(0, "row"), counted(1, "row"), counted(2, "entry", "entries"), counted(2_000, "row")]
    assert said == ["0 rows", "1 row", "2 entries", "2,000 rows"]
