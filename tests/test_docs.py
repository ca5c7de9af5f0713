"""What the pages say is there, is there: links, targets, settings, subjects, states; and nothing of one machine."""

from __future__ import annotations

import re
from datetime import date
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest

from almanac.alerts import FailedTask
from almanac.teller import _REASONS
from include.clearpath import mail_templates, tables
from include.platform.tables import RUN_STATES
from tests.dags.every import DagFile, dag_files

ROOT = Path(__file__).resolve().parents[1]
OPERATIONS = ROOT / "docs" / "operations.md"
# What is made here and not kept.
_MADE = {".git", ".venv", ".almanac", ".pytest_cache", ".ruff_cache", ".hypothesis", ".import_linter_cache"}

_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
_TARGET = re.compile(r"^([a-z][a-z-]*):", re.MULTILINE)
# In prose a command stands in backquotes; in an example it begins a line.
_IN_PROSE = re.compile(r"`make ([a-z][a-z-]*)")
_IN_EXAMPLE = re.compile(r"^make ([a-z][a-z-]*)", re.MULTILINE)
_ONE_MACHINE = re.compile(r"(?<![\w.])/(?:(?:work|root|Users)(?=/)|home/[a-z])[/\w]*/|(?<![\w.])/tmp/[a-z]")
_REGISTRY = re.compile(
    r"pypi\.(?:org|python)|pythonhosted|artifactory|npmjs|(?:ghcr|quay|gcr)\.io|docker\.io|--index-url|crates\.io"
)


@cache
def pages() -> tuple[Path, ...]:
    """Return README.md, CHANGELOG.md and every page below docs/."""
    found = (ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md")))
    assert len(found) > 10
    return found


@cache
def text_of(page: Path) -> str:
    """Return a page's text."""
    return page.read_text(encoding="utf-8")


every_page = pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))


def targets_named(page: Path) -> set[str]:
    """Return the targets that a page tells its reader to make."""
    text = text_of(page)
    examples = "\n".join(_FENCE.findall(text))
    return set(_IN_PROSE.findall(text)) | set(_IN_EXAMPLE.findall(examples))


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    made: dict[str, int] = {}
    found = set()
    for heading in _HEADING.findall(_FENCE.sub("", text_of(page))):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")
        number = made.get(slug, 0)
        made[slug] = number + 1
        found.add(f"{slug}-{number}" if number else slug)
    return found


@every_page
def test_every_link_leads_somewhere(page: Path) -> None:
    """A page that is moved or renamed leaves links behind; a reader at night follows them."""
    broken = []
    for target in _LINK.findall(_FENCE.sub("", text_of(page))):
        if target.startswith(("https://", "mailto:")):
            continue
        path, _, anchor = unquote(target).partition("#")
        there = (page.parent / path).resolve() if path else page
        if (
            not there.is_relative_to(ROOT)
            or not there.is_file()
            or (anchor and there.suffix == ".md" and anchor not in anchors(there))
        ):
            broken.append(target)
    assert broken == []


def test_every_picture_is_shown() -> None:
    """A picture that no page shows is not kept fresh by anybody."""
    shown = {
        (page.parent / unquote(link)).resolve() for page in pages() for link in _LINK.findall(text_of(page))
    }
    assert sorted(set((ROOT / "docs" / "pictures").iterdir()) - shown) == []


@every_page
def test_every_target_exists(page: Path) -> None:
    """A command that a page names can be typed."""
    targets = set(_TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8")))
    assert targets_named(page) - targets == set()


def test_the_readme_names_every_target() -> None:
    """Its table says `all targets`; those without a sentence in the Makefile are parts of others."""
    listed = set(
        re.findall(r"^([a-z][a-z-]*):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert listed - targets_named(ROOT / "README.md") - {"help"} == set()


@pytest.mark.parametrize("file", dag_files(), ids=str)
def test_every_setting_is_in_the_table(file: DagFile) -> None:
    """Ruling 18: what a job reads is a Variable that the operations page names, with its default."""
    rows = [line for line in text_of(OPERATIONS).splitlines() if line.startswith("| ")]
    settings = "\n".join(row for row in rows if "Variable" in row)
    for name, default in file.job.SETTINGS.items():
        (row,) = [row for row in settings.splitlines() if f"`{name}`" in row.split("|")[2]]
        said = row.split("|")[3]
        assert (default or "none") in said, row


def test_every_subject_is_explained() -> None:
    """Whoever is woken by a mail finds its subject on the operations page."""
    page = text_of(OPERATIONS)
    subjects = [
        FailedTask("<dag>", "r", "<name>", 1, -1, "", "").subject,
        *(f"<dag>: the run {reason}" for reason in (*_REASONS.values(), "failed, and no task of it did")),
        "<service> is out of reach",
    ]
    assert [subject for subject in subjects if f"`{subject}`" not in page] == []


def test_every_jobs_own_subject_is_explained() -> None:
    """ClearPath's two alerts to the administrator begin as the operations page says."""
    page = text_of(OPERATIONS)
    contractor = mail_templates.cnrpp_alert(
        contractor_name="Borea Radon", cnrpp_id="C-1", expiry_date=date(2027, 3, 12), today=date(2027, 3, 10)
    )
    stuck = mail_templates.queue_stuck_alert(oldest_due=None, minutes_late=0, failed_in_24_hours=11)
    assert contractor.subject.startswith("C-NRPP certification ")
    assert contractor.subject.endswith(": Borea Radon")
    assert "`C-NRPP certification …: <contractor>`" in page
    assert stuck.subject.startswith("ClearPath mail is stuck: ")
    assert "`ClearPath mail is stuck: …`" in page


def test_every_state_is_explained() -> None:
    """A word in the console or in a column is one that the operations page explains, if it is no plain success."""
    rows = [line.split("|")[1:3] for line in text_of(OPERATIONS).splitlines() if line.startswith("| ")]
    said = {(where.strip(), word) for where, state in rows for word in re.findall(r"`(\w+)`", state)}
    assert {("run", state) for state in RUN_STATES} - said == {("run", "success")}
    assert {("mail", status) for status in tables.EMAIL_STATUSES} - said == {
        ("mail", "queued"),
        ("mail", "sent"),
    }


def test_the_decisions_are_all_in_the_index() -> None:
    """A decision that the index does not name is not found."""
    folder = ROOT / "docs" / "decisions"
    listed = set(_LINK.findall(text_of(folder / "README.md")))
    assert listed == {page.name for page in folder.glob("*.md")} - {"README.md"}


def test_nothing_is_of_one_machine() -> None:
    """The repository works wherever it is put: no path of a machine that it was written on, no registry's host."""
    found = []
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        if parts[0] in _MADE or "__pycache__" in parts or not path.is_file() or path.samefile(__file__):
            continue
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        found += [
            f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
            for number, line in enumerate(lines, 1)
            if _ONE_MACHINE.search(line) or _REGISTRY.search(line)
        ]
    assert found == []
