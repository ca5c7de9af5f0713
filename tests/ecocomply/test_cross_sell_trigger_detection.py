"""Permits are looked through for keywords of other modules: which of them, when again, and who is told once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from include.ecocomply import cross_sell_trigger_detection
from include.job import NothingOutside
from include.run import EngineDatabase, Run
from tests.ecocomply.rows import AS_OF, Rows

EARLIER = AS_OF - timedelta(hours=1)
DAY = timedelta(days=1)


@dataclass
class Permits(Rows):
    """A company with an owner, the modules, and permits."""

    modules: dict[str, UUID] = field(default_factory=dict)

    def fill(self) -> None:
        """Add three modules and the owner."""
        for code, name, keywords in (
            ("MODULE_1", "Permits", []),
            ("MODULE_2", "Trade effluent", ["trade effluent", "sewer"]),
            ("MODULE_3", "Generators", ["CHP", "back-up generator"]),
        ):
            self.modules[code] = self.add(
                "modules", module_code=code, module_name=name, cross_sell_keywords=keywords
            )
        self.user("owner", "OWNER")
        self.user("admin", "ADMIN")

    def permit(self, text: str | None, **values: Any) -> UUID:
        """Add a permit that was read, and last changed an hour ago."""
        given = {
            "site_id": self.site, "company_id": self.company, "module_id": self.modules["MODULE_1"], "title": "Permit",
            "document_type": "PERMIT", "extraction_status": "COMPLETED", "extracted_text": text, "updated_at": EARLIER,
        }  # fmt: skip
        return self.add("documents", **(given | values))

    def scan(self, as_of: Any = AS_OF, **params: Any) -> Run:
        """Run the job for every company, unless told otherwise."""
        wanted = {"company_id": None, "document_id": None, "process_recent_only": True} | params
        return self.perform(cross_sell_trigger_detection, NothingOutside(), as_of, **wanted)

    def noted(self) -> set[tuple[str, str, tuple[str, ...]]]:
        """Return what is noted: document, module's code, keywords."""
        codes = {key: code for code, key in self.modules.items()}
        return {
            (row.trigger_source, codes[row.target_module_id], tuple(row.detected_keywords))
            for row in self.all("cross_sell_triggers")
        }


@pytest.fixture
def permits(database_of: Callable[..., EngineDatabase]) -> Permits:
    """Make the company."""
    made = Permits(database_of("ecocomply"))
    made.fill()
    return made


def test_what_is_found_is_noted_and_offered(permits: Permits) -> None:
    """Keywords as the module has them, the specification's confidence, and the owner alone is told."""
    key = permits.permit("A Back-Up Generator beside the chp.")
    run = permits.scan()
    assert permits.noted() == {(str(key), "MODULE_3", ("CHP", "back-up generator"))}
    (row,) = permits.all("cross_sell_triggers")
    assert (row.trigger_type, row.status, float(row.confidence)) == ("KEYWORD", "PENDING", 0.4)
    (told,) = permits.all("notifications")
    assert (told.channel, told.priority, told.notification_type) == ("IN_APP", "NORMAL", "MODULE_ACTIVATION")
    assert (told.recipient_email, told.entity_type, told.entity_id) == (
        "owner@ecocomply.test", "cross_sell_trigger", row.id,
    )  # fmt: skip
    assert told.body_text == (
        "We detected references to CHP in your permit. Would you like to activate Generators?"
    )
    assert told.action_url.endswith(f"/modules/activate/{permits.modules['MODULE_3']}")
    assert (run.counts["processed"], run.counts["triggers_created"], run.counts["notifications_sent"]) == (
        1,
        1,
        1,
    )


def test_part_of_a_word_is_nothing(permits: Permits) -> None:
    """As ruled: "chp" is not in "matchpoint"; the document counts as looked through all the same."""
    permits.permit("Matchpoint, sewerage, trade of effluent")
    assert permits.scan().counts["processed"] == 1
    assert not permits.noted()
    assert [row.scanned_at for row in permits.all("documents")] == [AS_OF]


@pytest.mark.parametrize(
    "values",
    [
        {"status": "SUPERSEDED"},
        {"extraction_status": "REVIEW_REQUIRED"},
        {"extracted_text": None},
        {"deleted_at": EARLIER},
        {"module_id": None},
        {"updated_at": AS_OF + timedelta(microseconds=1)},
    ],
)
def test_which_documents(permits: Permits, values: dict[str, Any]) -> None:
    """Active permits of module 1 whose text is there, as it was by then."""
    permits.permit("A sewer", **values)
    assert not permits.scan().counts["processed"]
    assert not permits.noted()


def test_documents_of_other_modules_are_left_out(permits: Permits) -> None:
    """A consent of module 2 speaks of sewers all the time."""
    permits.permit("A CHP", module_id=permits.modules["MODULE_2"])
    assert not permits.scan().counts["processed"]


@pytest.mark.parametrize(
    ("scanned", "again"),
    [(None, True), (EARLIER - timedelta(microseconds=1), True), (EARLIER, False), (EARLIER + DAY, False)],
)
def test_only_what_has_changed(permits: Permits, scanned: Any, *, again: bool) -> None:
    """By the document's own stamps, not by the last day: a run that was missed loses nothing."""
    permits.permit("A sewer", scanned_at=scanned)
    assert permits.scan().counts["processed"] == again
    assert bool(permits.noted()) == again


def test_all_of_them_if_asked(permits: Permits) -> None:
    """After new keywords everything is looked through again; what was noted is not noted twice."""
    permits.permit("A sewer and a meter", updated_at=EARLIER - 400 * DAY)
    permits.scan()
    permits.change("modules", permits.modules["MODULE_3"], cross_sell_keywords=["meter"])
    assert not permits.scan(AS_OF + DAY).counts["processed"]
    run = permits.scan(AS_OF + DAY, process_recent_only=False)
    assert (run.counts["processed"], run.counts["triggers_created"]) == (1, 1)
    assert {code for _, code, _ in permits.noted()} == {"MODULE_2", "MODULE_3"}
    permits.scan(AS_OF, process_recent_only=False)
    assert [row.scanned_at for row in permits.all("documents")] == [AS_OF + DAY]


def test_a_second_run_writes_nothing(permits: Permits) -> None:
    """What was looked through is left alone."""
    permits.permit("A sewer")
    permits.scan()
    before = [permits.all(table, "id") for table in ("documents", "cross_sell_triggers", "notifications")]
    assert not permits.scan().counts["processed"]
    assert before == [
        permits.all(table, "id") for table in ("documents", "cross_sell_triggers", "notifications")
    ]


def test_a_module_is_offered_to_a_company_once(permits: Permits) -> None:
    """As ruled: in one run or in another, whichever document it is found in; each document is noted."""
    permits.permit("A sewer")
    permits.permit("Another sewer")
    permits.scan()
    permits.permit("A third sewer", updated_at=AS_OF + DAY)
    assert permits.scan(AS_OF + DAY).counts["notifications_sent"] == 0
    assert len(permits.noted()) == 3
    assert len(permits.all("notifications")) == 1


@pytest.mark.parametrize(("status", "noted"), [("ACTIVE", False), ("INACTIVE", True), ("SUSPENDED", True)])
def test_a_module_that_the_company_has(permits: Permits, status: str, *, noted: bool) -> None:
    """Nobody is offered what they have; what they gave up may be offered."""
    permits.add(
        "module_activations",
        company_id=permits.company,
        module_id=permits.modules["MODULE_2"],
        status=status,
    )
    permits.permit("A sewer")
    permits.scan()
    assert bool(permits.noted()) == noted
    assert bool(permits.all("notifications")) == noted


def test_another_company_has_its_own(permits: Permits) -> None:
    """Each company is told by itself; a param narrows it to one of them, or to one document."""
    company = permits.add("companies", name="Other")
    site = permits.add("sites", company_id=company, name="Theirs")
    theirs = permits.permit("A sewer", company_id=company, site_id=site)
    mine, other = permits.permit("A sewer"), permits.permit("A CHP")
    run = permits.scan(company_id=str(company))
    assert {source for source, _, _ in permits.noted()} == {str(theirs)}
    assert run.counts["without_recipient"] == 1
    permits.scan(document_id=str(other))
    assert {source for source, _, _ in permits.noted()} == {str(theirs), str(other)}
    permits.scan()
    assert {source for source, _, _ in permits.noted()} == {str(theirs), str(other), str(mine)}


@pytest.mark.parametrize("values", [{"is_active": False}, {"cross_sell_keywords": []}])
def test_a_module_without_keywords_is_never_offered(permits: Permits, values: dict[str, Any]) -> None:
    """A module that is no longer sold, or has no words yet, is found nowhere."""
    permits.change("modules", permits.modules["MODULE_2"], **values)
    permits.permit("A sewer")
    permits.scan()
    assert not permits.noted()


@pytest.mark.parametrize("kind", ["text[]", "jsonb"])
def test_odd_lists_of_keywords(permits: Permits, kind: str) -> None:
    """An application may keep them as JSON, and an entry may be null: neither ends the job."""
    if kind == "jsonb":
        permits.run_sql("ALTER TABLE modules ALTER cross_sell_keywords DROP DEFAULT")
        permits.run_sql(
            "ALTER TABLE modules ALTER cross_sell_keywords TYPE jsonb USING to_jsonb(cross_sell_keywords)"
        )
        permits.run_sql("UPDATE modules SET cross_sell_keywords = 'null' WHERE module_code = 'MODULE_1'")
        permits.run_sql(
            """UPDATE modules SET cross_sell_keywords = '[7, null, "sewer"]' WHERE module_code = 'MODULE_2'"""
        )
    else:
        permits.change("modules", permits.modules["MODULE_2"], cross_sell_keywords=[None, "sewer"])
    key = permits.permit("A sewer 7")
    permits.scan()
    assert permits.noted() == {(str(key), "MODULE_2", ("sewer",))}


def test_a_bad_row_stands_alone(permits: Permits) -> None:
    """Ruling 6: a document that the database refuses to change keeps no other from being looked through."""
    bad, good = permits.permit("A sewer"), permits.permit("A sewer")
    permits.run_sql(f"ALTER TABLE documents ADD CHECK (id <> '{bad}' OR scanned_at IS NULL)")
    run = permits.scan()
    assert {source for source, _, _ in permits.noted()} == {str(good)}
    assert (run.counts["failed"], run.counts["processed"]) == (1, 1)


def test_progress_is_told(permits: Permits) -> None:
    """6.2 logs how many of how many documents were looked through, and what came of it."""
    heard: list[Any] = []
    for _ in range(3):
        permits.permit("A sewer")
    run = permits.run(
        job=cross_sell_trigger_detection.NAME, company_id=None, document_id=None, process_recent_only=True
    )
    run.progress = lambda current, total, said=None, **_: heard.append((current, total, said))
    cross_sell_trigger_detection.scan_documents(run, NothingOutside())
    assert heard == [(3, 3, "Scanned 3/3 documents, 3 triggers created")]
