"""Consignment notes: every type of rule at its boundaries, which rules hold, what becomes of the note, who is told."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from include.ecocomply import auto_validate_consignment_notes as job
from include.ecocomply.tables import waste
from include.isolation import each_chunk
from include.job import NothingOutside
from include.run import EngineDatabase, Run
from tests.ecocomply.rows import AS_OF, TODAY, Rows

DAY = timedelta(days=1)
SITE = uuid4()
RECURSION = "Expression recursion limit exceeded. limit: 32"
NULL = "No matching overloads found : _<_(null_type, int64)"


@pytest.fixture
def rows(database_of: Callable[..., EngineDatabase]) -> Rows:
    """Make a company with one site and its manager."""
    made = Rows(database_of("ecocomply"))
    made.user("manager", "MANAGER", sites=[made.site])
    return made


def note(rows: Rows, **values: Any) -> UUID:
    """Add a note that waits."""
    given = {
        "company_id": rows.company, "site_id": rows.site, "consignment_date": TODAY, "quantity": 5, "unit": "TONNES",
        "ewc_code": "130205*", "consignment_number": "CN-1",
    }  # fmt: skip
    return rows.add("consignment_notes", **(given | values))


def rule(rows: Rows, kind: str, config: Any = None, severity: str = "ERROR", **values: Any) -> UUID:
    """Add a rule of the company."""
    given = {"company_id": rows.company, "rule_type": kind, "rule_config": config, "severity": severity}
    return rows.add("validation_rules", **(given | values))


def perform(rows: Rows, as_of: Any = AS_OF, **params: Any) -> Run:
    """Run the job for every company, unless told otherwise."""
    return rows.perform(job, NothingOutside(), as_of, **({"company_id": None, "batch_size": 50} | params))


def standing(rows: Rows, key: UUID) -> tuple[str, list[str]]:
    """Return a note's status and errors."""
    (found,) = (one for one in rows.all("consignment_notes") if one.id == key)
    return found.pre_validation_status, found.pre_validation_errors


def results(rows: Rows) -> list[str]:
    """Return what the executions say."""
    return [row.result for row in rows.all("validation_executions", "execution_date")]


@pytest.mark.parametrize(
    ("kind", "config", "values", "result"),
    [
        ("VOLUME_LIMIT", {"max_volume": 100, "unit": "TONNES"}, {"quantity": 100}, "PASS"),
        ("VOLUME_LIMIT", {"max_volume": 100, "unit": "TONNES"}, {"quantity": 100.001}, "FAIL"),
        (
            "VOLUME_LIMIT",
            {"max_volume": "100", "unit": "tonnes"},
            {"quantity": 100_000, "unit": "KG"},
            "PASS",
        ),
        ("VOLUME_LIMIT", {"max_volume": 100, "unit": "TONNES"}, {"quantity": 100_001, "unit": "KG"}, "FAIL"),
        ("VOLUME_LIMIT", {"max_volume": 500, "unit": "LITRES"}, {"quantity": 0.5, "unit": "M3"}, "PASS"),
        ("VOLUME_LIMIT", {"max_volume": 500, "unit": "LITRES"}, {"quantity": 0.501, "unit": "M3"}, "FAIL"),
        ("VOLUME_LIMIT", {"max_volume": 4}, {"quantity": 5, "unit": "KG"}, "FAIL"),
        ("STORAGE_DURATION", {"max_storage_days": 30}, {"consignment_date": TODAY - 30 * DAY}, "PASS"),
        ("STORAGE_DURATION", {"max_storage_days": 30}, {"consignment_date": TODAY - 31 * DAY}, "FAIL"),
        ("EWC_CODE", None, {"ewc_code": "130205"}, "PASS"),
        ("EWC_CODE", None, {"ewc_code": "13 02 05*"}, "PASS"),
        ("EWC_CODE", None, {"ewc_code": "13020"}, "FAIL"),
        ("EWC_CODE", None, {"ewc_code": "1302055"}, "FAIL"),
        ("EWC_CODE", None, {"ewc_code": "130205**"}, "FAIL"),
        ("EWC_CODE", None, {"ewc_code": "१३०२०५"}, "FAIL"),
        ("EWC_CODE", None, {"ewc_code": None}, "FAIL"),
        ("EWC_CODE", {"allowed_codes": ["130205*"]}, {"ewc_code": "130205"}, "PASS"),
        ("EWC_CODE", {"allowed_codes": ["200101"]}, {"ewc_code": "130205*"}, "FAIL"),
        ("DESTINATION", {"allowed_site_ids": [str(SITE).upper()]}, {"destination_site_id": SITE}, "PASS"),
        ("DESTINATION", {"allowed_site_ids": [str(uuid4())]}, {"destination_site_id": SITE}, "FAIL"),
        ("DESTINATION", {"allowed_site_ids": []}, {"destination_site_id": SITE}, "FAIL"),
        ("DESTINATION", {"allowed_site_ids": [str(SITE)]}, {"destination_site_id": None}, "FAIL"),
        ("CUSTOM", {"expression": "quantity < 20 && unit == 'TONNES'"}, {"quantity": 19.9}, "PASS"),
        ("CUSTOM", {"expression": "quantity < 20 && unit == 'TONNES'"}, {"quantity": 20}, "FAIL"),
        ("CUSTOM", {"expression": "storage_days <= 3"}, {"consignment_date": TODAY - 4 * DAY}, "FAIL"),
        ("CARRIER_LICENCE", None, {"carrier_id": None}, "FAIL"),
        ("VOLUME_LIMIT", None, {}, "SKIPPED"),
        ("VOLUME_LIMIT", {"unit": "KG"}, {}, "SKIPPED"),
        ("STORAGE_DURATION", {}, {}, "SKIPPED"),
        ("DESTINATION", {"error_message": "no"}, {}, "SKIPPED"),
        ("CUSTOM", {"expression": None}, {}, "SKIPPED"),
    ],
)
def test_a_rule(rows: Rows, kind: str, config: Any, values: dict[str, Any], result: str) -> None:
    """Each type at its boundary: amounts in one unit, six digits, conditions; what lacks its config is left."""
    made = rule(rows, kind, config)
    key = note(rows, **values)
    run = perform(rows)
    (found,) = rows.all("validation_executions")
    assert (found.validation_rule_id, found.entity_type, found.entity_id) == (made, "CONSIGNMENT_NOTE", key)
    assert (found.result, found.execution_date) == (result, AS_OF)
    status, errors = standing(rows, key)
    assert status == ("FAILED" if result == "FAIL" else "PASSED")
    assert errors == ([found.error_message] if result == "FAIL" else [])
    assert run.counts[f"failed_{kind.lower()}"] == (result == "FAIL")
    assert run.counts["rules_skipped"] == (result == "SKIPPED")


@pytest.mark.parametrize(
    ("expiry", "consigned", "more", "result"),
    [
        (0, 0, {}, "PASS"),
        (-1, -5, {}, "FAIL"),
        (3, 3, {}, "PASS"),
        (3, 4, {}, "FAIL"),
        (None, 0, {}, "FAIL"),
        (9, 0, {"licence_number": " "}, "FAIL"),
        (9, 0, {"licence_tier": "LOWER"}, "PASS"),
        (9, 0, {"licence_tier": "LOWER", "upper": True}, "FAIL"),
        (9, 0, {"licence_tier": "UPPER", "upper": True}, "PASS"),
    ],
)
def test_a_licence(rows: Rows, expiry: int | None, consigned: int, more: dict[str, Any], result: str) -> None:
    """A licence covers the consignment's day and today; the last day counts."""
    upper, more = more.get("upper"), {key: value for key, value in more.items() if key != "upper"}
    carrier = {
        "company_id": rows.company, "name": "Tyne", "licence_number": "CBDU1",
        "licence_expiry_date": None if expiry is None else TODAY + expiry * DAY,
    }  # fmt: skip
    rule(rows, "CARRIER_LICENCE", {"require_upper_tier": True} if upper else None)
    note(
        rows, carrier_id=rows.add("contractors", **(carrier | more)), consignment_date=TODAY + consigned * DAY
    )
    perform(rows)
    assert results(rows) == [result]


@pytest.mark.parametrize(
    ("kind", "config", "values", "reason"),
    [
        ("CUSTOM", {"expression": "colour == 'red'"}, {}, "undeclared reference to 'colour'"),
        ("CUSTOM", {"expression": "quantity < 'x'"}, {}, "No matching overloads found : _<_(double, string)"),
        ("CUSTOM", {"expression": "quantity"}, {}, "it gives double, not true or false"),
        ("CUSTOM", {"expression": "(" * 300 + "true" + ")" * 300}, {}, RECURSION),
        ("CUSTOM", {"expression": "x" * 1001}, {}, "it has more than 1,000 characters"),
        ("CUSTOM", {"expression": "quantity < 3"}, {"quantity": None}, NULL),
        ("VOLUME_LIMIT", {"max_volume": "many"}, {}, "its max_volume is no number"),
        ("VOLUME_LIMIT", {"max_volume": "1E+999999999"}, {}, "its max_volume is no number"),
        ("VOLUME_LIMIT", {"max_volume": 3, "unit": "LITRES"}, {}, "TONNES can't be compared with LITRES"),
        ("VOLUME_LIMIT", {"max_volume": 3, "unit": "POUNDS"}, {}, "'POUNDS' is no unit that is known"),
        ("VOLUME_LIMIT", {"max_volume": 3}, {"quantity": None}, "the note has no quantity"),
        ("EWC_CODE", {"allowed_codes": "130205"}, {}, "its allowed_codes is no list"),
        ("STORAGE_DURATION", [30], {}, "its config is no object"),
    ],
)  # fmt: skip
def test_a_rule_that_can_not_be_evaluated(
    rows: Rows, kind: str, config: Any, values: Any, reason: str
) -> None:
    """As ruled: the note has FAILED with that reason, however mild the rule; nothing is waved through unchecked."""
    rule(rows, kind, config, "INFO", rule_name="Mine")
    key = note(rows, **values)
    run = perform(rows)
    assert standing(rows, key) == ("FAILED", [f"Mine could not be checked: {reason}"])
    assert run.counts["rules_not_evaluated"] == 1
    assert not run.counts["failed"]


def test_json_that_nobody_can_read_is_its_rules_fault(rows: Rows) -> None:
    """A number of thousands of digits, which JSON allows, fails its own company's note and nobody else's."""
    made = rule(rows, "VOLUME_LIMIT", {"max_volume": 1})
    rows.run_sql(
        f"UPDATE validation_rules SET rule_config = '{{\"max_volume\": {'9' * 5000}}}' WHERE id = :id",
        id=made,
    )
    mine = note(rows)
    theirs = note(rows, company_id=rows.add("companies", name="Other"), site_id=None)
    perform(rows)
    assert standing(rows, mine) == ("FAILED", ["Volume limit could not be checked: its JSON can't be read"])
    assert standing(rows, theirs) == ("PASSED", [])


@pytest.mark.parametrize(
    ("severities", "status"),
    [
        ([], "PASSED"),
        (["INFO"], "PASSED_WITH_WARNINGS"),
        (["WARNING"], "PASSED_WITH_WARNINGS"),
        (["WARNING", "ERROR"], "FAILED"),
    ],
)
def test_severity(rows: Rows, severities: list[str], status: str) -> None:
    """One failed ERROR fails the note, milder ones warn; without any rule it has passed."""
    rule(rows, "VOLUME_LIMIT", {"max_volume": 9})
    for severity in severities:
        rule(rows, "VOLUME_LIMIT", {"max_volume": 1, "error_message": severity}, severity)
    key = note(rows)
    run = perform(rows)
    assert standing(rows, key)[0] == status
    assert sorted(standing(rows, key)[1]) == sorted(severities)
    name = {"PASSED": "passed", "FAILED": "validation_failed"}.get(status, "passed_with_warnings")
    assert run.counts[name] == run.counts["processed"] == 1


def test_a_streams_rule_replaces_the_companys_of_its_type(rows: Rows) -> None:
    """Of one type the stream's own holds, others of the company still do; an inactive or a stranger's never."""
    stream, another = (rows.add("waste_streams", site_id=rows.site, name=name) for name in "ab")
    company = rule(rows, "VOLUME_LIMIT", {"max_volume": 1})
    kept = rule(rows, "EWC_CODE")
    own = rule(rows, "VOLUME_LIMIT", {"max_volume": 10}, waste_stream_id=stream)
    rule(rows, "EWC_CODE", {"allowed_codes": []}, waste_stream_id=another)
    rule(rows, "VOLUME_LIMIT", {"max_volume": 0}, waste_stream_id=stream, is_active=False)
    rule(rows, "VOLUME_LIMIT", {"max_volume": 0}, company_id=rows.add("companies", name="Other"))
    with_own, without = note(rows, waste_stream_id=stream), note(rows)
    perform(rows)
    found = {(row.entity_id, row.validation_rule_id) for row in rows.all("validation_executions")}
    assert found == {(with_own, own), (with_own, kept), (without, company), (without, kept)}
    assert (standing(rows, with_own)[0], standing(rows, without)[0]) == ("PASSED", "FAILED")


def test_who_is_told(rows: Rows) -> None:
    """Who wrote a note that failed, else the site's managers; nobody of one that passed or warns."""
    ana = rows.user("ana", "STAFF")
    rule(rows, "VOLUME_LIMIT", {"max_volume": 5, "error_message": "Too <much>"})
    note(rows, quantity=6, created_by=ana)
    note(rows, quantity=6, consignment_number=None)
    note(rows, created_by=ana)
    run = perform(rows)
    told = rows.all("notifications")
    assert {(row.recipient_email, row.channel) for row in told} == {
        (f"{who}@ecocomply.test", channel) for who in ("ana", "manager") for channel in ("EMAIL", "IN_APP")
    }
    assert {(row.notification_type, row.priority, row.entity_type) for row in told} == {
        ("VALIDATION_FAILED", "HIGH", "consignment_note")
    }
    assert all("Too <much>" in row.body_text for row in told)
    assert run.counts["notifications"] == 4


def test_once_and_anew_when_it_changes(rows: Rows) -> None:
    """A second run writes nothing; a note that was changed is checked again, and told of again."""
    rule(rows, "VOLUME_LIMIT", {"max_volume": 4})
    key = note(rows, created_by=rows.user("ana", "STAFF"))
    perform(rows)
    before = rows.all("consignment_notes")
    assert perform(rows).counts["processed"] == 0
    assert rows.all("consignment_notes") == before
    rows.change("consignment_notes", key, quantity=6)
    later = AS_OF + timedelta(minutes=5)
    perform(rows, later)
    assert results(rows) == ["FAIL", "FAIL"]
    assert len(rows.all("notifications")) == 4
    rows.change("consignment_notes", key, quantity=4)
    perform(rows, later)
    assert results(rows) == ["FAIL", "PASS"]
    assert standing(rows, key) == ("PASSED", [])


def test_a_note_that_changes_meanwhile_waits(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was checked is no longer what stands there: the next run checks what does."""
    rule(rows, "VOLUME_LIMIT", {"max_volume": 5})
    key, other = note(rows), note(rows)

    def slow(*given: Any) -> Any:
        rows.change("consignment_notes", key, quantity=6)
        return each_chunk(*given)

    monkeypatch.setattr(job, "each_chunk", slow)
    run = perform(rows)
    assert standing(rows, key) == ("NOT_VALIDATED", [])
    assert standing(rows, other) == ("PASSED", [])
    assert (run.counts["skipped"], run.counts["processed"]) == (1, 1)
    monkeypatch.undo()
    perform(rows)
    assert standing(rows, key)[0] == "FAILED"


def test_a_company_narrows_it_and_a_batch_is_no_cap(rows: Rows) -> None:
    """Every note is checked in chunks; another company's wait if one is named."""
    company = rows.add("companies", name="Other")
    mine = [note(rows) for _ in range(5)]
    theirs = note(rows, company_id=company, site_id=None)
    assert perform(rows, company_id=str(rows.company), batch_size=2).counts["processed"] == 5
    assert {standing(rows, key)[0] for key in mine} == {"PASSED"}
    assert standing(rows, theirs)[0] == "NOT_VALIDATED"


def test_a_hostile_rule_keeps_no_note_waiting(rows: Rows) -> None:
    """What would run for minutes and fill the memory fails its own company's note; all others are checked."""
    expression = "[consignment_number]" + ".map(a, a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a)" * 12 + " != []"
    rule(rows, "CUSTOM", {"expression": expression})
    mine = note(rows, consignment_number="x" * 1000)
    company = rows.add("companies", name="Other")
    rule(rows, "CUSTOM", {"expression": "quantity == 5"}, company_id=company)
    theirs = note(rows, company_id=company, site_id=None)
    perform(rows)
    assert standing(rows, mine)[0] == "FAILED"
    assert standing(rows, theirs)[0] == "PASSED"


def test_words_may_be_enums(rows: Rows) -> None:
    """An application may have enum types where this platform has words, and its database is taken as it is."""
    rows.as_enum("consignment_notes", "pre_validation_status", *waste.PRE_VALIDATION_STATUSES)
    rows.as_enum("validation_rules", "rule_type", *waste.RULE_TYPES)
    rows.as_enum("validation_rules", "severity", *waste.RULE_SEVERITIES)
    rows.as_enum("validation_executions", "result", *waste.RULE_RESULTS)
    rule(rows, "VOLUME_LIMIT", {"max_volume": 1})
    key = note(rows, pre_validation_status="NOT_VALIDATED")
    perform(rows)
    assert standing(rows, key)[0] == "FAILED"
    assert results(rows) == ["FAIL"]


@pytest.mark.parametrize("odd", ["infinity", "-infinity", "20261-11-25", "0044-03-15 BC", "1899-12-31"])
@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("STORAGE_DURATION", {"max_storage_days": 5}),
        ("CUSTOM", {"expression": "storage_days < 5"}),
    ],
)
def test_an_odd_date_is_its_own_notes_fault(rows: Rows, kind: str, config: Any, odd: str) -> None:
    """What needs the day can't be checked: that note fails and says so, and the other is checked."""
    rule(rows, kind, config)
    good, bad = note(rows), note(rows)
    rows.run_sql("UPDATE consignment_notes SET consignment_date = :odd WHERE id = :id", odd=odd, id=bad)
    perform(rows)
    assert standing(rows, good) == ("PASSED", [])
    status, (error,) = standing(rows, bad)
    assert status == "FAILED"
    assert "consignment_date" in error
