"""Matching: what a prompt finds, whatever the accents and endings, and how well, on labelled entries."""

from __future__ import annotations

import json
import time
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from include.nifya.gazettes import Entry, read_summary
from include.nifya.matching import matching, stems_of
from stack.fakes.gazette_server import summary

DAY = date(2026, 11, 25)
LABELLED: dict[str, Any] = json.loads(Path(__file__).with_name("labelled_entries.json").read_text("utf-8"))
DOCS = Path(__file__).resolve().parents[2] / "docs" / "gazettes.md"


def entry(title: str, department: str = "", section: str = "", heading: str = "") -> Entry:
    """Return an entry with a title, and what else matters."""
    return Entry("BOE-A-2026-1", title, department, section, heading, "https://www.boe.es/1", DAY)


def finds(prompt: str, one: Entry) -> bool:
    """Say whether a prompt asks for an entry."""
    return bool(matching([one], [prompt]))


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("subvención", "Se convocan SUBVENCIONES para cooperativas"),
        ("SUBVENCIONES", "Se concede una subvencion"),
        ("contratacion", "Contrataciones del Estado"),
        ("contratación", "CONTRATACION DEL SECTOR PUBLICO"),
        ("biologia", "Grado en Biología"),
        ("becas", "Convocatoria de una beca"),
        ("autónomo", "Ayudas a las autónomas"),
        ("pequeñas", "Empresa pequena"),
        ("luces", "Sistema de luz"),
        ("país", "Acuerdo entre países"),
        ("fotovoltaica", "Paneles fotovoltaicos"),
        ("red eléctrica", "Redes eléctricas"),
        ("viaje", "Agencias de viajes"),
        ("auxiliar administrativo", "Plazas de auxiliares administrativos"),
        ("ley 3/2018", "Se modifica la Ley Orgánica 3/2018"),
        ("Subvenci\u006f\u0301n", "subvención"),
    ],
)
def test_accents_and_endings_do_not_matter(prompt: str, title: str) -> None:
    """People write without accents and in the singular; gazettes write in capitals and in the plural."""
    assert finds(prompt, entry(title))


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("policía local", "Comisario de la Policía Nacional"),
        ("sal", "Cambios del salario"),
        ("beca", "El ganado becerro"),
        ("quiero saber cuándo sale", "Quiero saber cuándo sale"),
        ("", "Anything"),
        ("¿?", "Anything"),
    ],
)
def test_what_is_not_asked_for(prompt: str, title: str) -> None:
    """Every word of a short prompt must be there, as a word; a prompt without a telling word asks for nothing."""
    assert not finds(prompt, entry(title))


def test_department_section_and_heading_count(tmp_path: Path) -> None:
    """A user may follow a ministry or a section, which no title names."""
    assert finds("ministerio de defensa", entry("Orden", department="MINISTERIO DE DEFENSA"))
    assert finds("oposiciones justicia", entry("Orden", "JUSTICIA", "B. Oposiciones y concursos"))
    assert finds("impacto ambiental", entry("Resolución", heading="Impacto ambiental"))


def test_a_sentence_needs_two_thirds_of_its_words() -> None:
    """A prompt is often a sentence: one word that the gazette words otherwise must not hide everything."""
    prompt = "ayudas y subvenciones para instalar energía solar en viviendas"
    assert finds(prompt, entry("Subvenciones para energía solar en viviendas"))
    assert not finds(prompt, entry("Subvenciones para viviendas"))


def test_each_entry_comes_once_with_all_that_ask_for_it() -> None:
    """One notification an entry, however many of a subscription's prompts match."""
    found = matching([entry("Beca de energía"), entry("Otra")], ["becas", "energia", "deporte"])
    assert [asked for _, asked in found] == [["becas", "energia"]]


def test_hostile_prompts_cost_no_time() -> None:
    """A prompt is a stranger's text: no length and no letters of it may take more than a moment."""
    began = time.monotonic()
    for prompt in ("a" * 1_000_000, "ó" * 100_000, "á b " * 100_000, "\x00\ud800", "ﷺ" * 10_000):
        matching([entry("Beca")], [prompt])
    assert len(stems_of("palabra1 palabra2 " * 500)) <= 40
    assert time.monotonic() - began < 2


def precision_and_recall() -> tuple[float, float]:
    """Return both over all pairs of prompt and labelled entry, read from a document as the gazette publishes it."""
    labelled = LABELLED["entries"]
    wanted = {(name, one["identifier"]) for one in labelled for name in one["asked_by"]}
    entries = read_summary(summary("20261125", labelled), DAY, "labelled")
    assert len(entries) == len(labelled) == 30
    found = {
        (name, one.identifier)
        for name, prompt in LABELLED["prompts"].items()
        for one, _ in matching(entries, [prompt])
    }
    right = len(wanted & found)
    return right / len(found), right / len(wanted)


def test_precision_and_recall_on_labelled_entries() -> None:
    """How good the matching is, as a person labelled it; a change that makes it worse must be a choice."""
    precision, recall = precision_and_recall()
    assert precision >= 0.9, f"precision {precision:.2f}"
    assert recall >= 0.7, f"recall {recall:.2f}"
    assert f"precision {precision:.2f}, recall {recall:.2f}" in DOCS.read_text("utf-8")
