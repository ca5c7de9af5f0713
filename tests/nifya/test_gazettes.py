"""The BOE's summary and a parser's answer as they are read, hostile ones included."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from include.errors import BadInput, Outage
from include.nifya.gazettes import parser_of, read_content, read_summary
from stack.fakes.gazette_server import summary

DAY = date(2026, 11, 25)
ITEM = {"identificador": "BOE-A-2026-1", "titulo": "Orden", "url_html": "https://www.boe.es/txt.php?id=1"}


def document(diario: Any) -> Any:
    """Return a summary's document around its diaries."""
    return {"status": {"code": "200"}, "data": {"sumario": {"diario": diario}}}


def below(item: Any, *, listed: bool) -> Any:
    """Return a document with an item, every level a list, or an object that stands alone."""
    wrap: Any = (lambda one: [one]) if listed else (lambda one: one)
    heading = {"nombre": "Becas", "item": wrap(item)}
    department = {"codigo": "1", "nombre": "HACIENDA", "epigrafe": wrap(heading)}
    section = {"codigo": "3", "nombre": "III. Otras", "departamento": wrap(department)}
    return document(wrap({"numero": "1", "seccion": wrap(section)}))


@pytest.mark.parametrize("listed", [True, False])
def test_one_entry_is_read_as_a_list_or_as_an_object(*, listed: bool) -> None:
    """S3: an element that stands alone is an object where others are lists, on every level."""
    (entry,) = read_summary(below(ITEM, listed=listed), DAY, "gazette")
    assert entry == ("BOE-A-2026-1", "Orden", "HACIENDA", "III. Otras", "Becas", ITEM["url_html"], DAY)


def test_an_entry_below_its_department_is_read() -> None:
    """Announcements stand below their department, without a heading."""
    entries = read_summary(
        summary(
            "20261125", [{"title": "Anuncio", "department": "DEFENSA"}, {"title": "Beca", "heading": "Becas"}]
        ),
        DAY,
        "gazette",
    )
    assert [(one.title, one.department, one.heading) for one in entries] == [
        ("Anuncio", "DEFENSA", ""),
        ("Beca", "MINISTERIO DE HACIENDA", "Becas"),
    ]


@pytest.mark.parametrize(
    ("item", "read"),
    [
        ({**ITEM, "url_html": "javascript:alert(1)"}, []),
        (
            {**ITEM, "url_html": None, "url_pdf": {"texto": "https://www.boe.es/1.pdf"}},
            ["https://www.boe.es/1.pdf"],
        ),
        ({**ITEM, "url_html": 7, "url_pdf": "https://www.boe.es/2.pdf"}, ["https://www.boe.es/2.pdf"]),
        ({**ITEM, "titulo": ""}, []),
        ({**ITEM, "titulo": {"deep": 1}}, []),
        ({**ITEM, "url_html": "https://user:pw@www.boe.es/"}, []),
        ([ITEM, ITEM], [ITEM["url_html"]]),
        ([None, 7, "x", [ITEM]], []),
    ],
)
def test_what_is_no_entry_is_left_out(item: Any, read: list[str]) -> None:
    """One broken entry must not cost the day's others, and only http(s) addresses are links (E4)."""
    assert [entry.url for entry in read_summary(below(item, listed=False), DAY, "gazette")] == read


def test_texts_are_such_as_a_database_holds() -> None:
    """Null characters, lone surrogates and texts without end come from outside."""
    (entry,) = read_summary(
        below({**ITEM, "titulo": "a\x00b\ud800 " + "c" * 9_000}, listed=True), DAY, "gazette"
    )
    assert "\x00" not in entry.title
    assert len(entry.title) <= 1_000
    entry.title.encode()


@pytest.mark.parametrize(
    "hostile", [None, [], 7, "x", {}, {"data": []}, {"data": {"sumario": 7}}, document("x"), document(None)]
)
def test_what_is_no_summary_is_an_outage(hostile: Any) -> None:
    """A page of another kind with status 200 is the service's fault, and tried again."""
    with pytest.raises(Outage, match="without a summary"):
        read_summary(hostile, DAY, "gazette")


def test_an_edition_without_an_end_is_refused() -> None:
    """Nobody may fill the database with one answer."""
    items = [{**ITEM, "url_html": f"https://www.boe.es/{n}"} for n in range(10_001)]
    with pytest.raises(Outage, match="more than 10,000"):
        read_summary(below(items, listed=False), DAY, "gazette")
    found = [{"title": "x", "url": f"https://x.test/{n}"} for n in range(10_001)]
    with pytest.raises(Outage, match="more than 10,000"):
        read_content({"content": found}, "parser")


def test_a_parsers_content_is_read_once_an_address() -> None:
    """The same address twice is one notification; what is no content is left out."""
    one = {
        "title": "A",
        "summary": "S",
        "url": "https://x.test/1",
        "metadata": {"a": "b", "c": 1, "d": "\x00"},
    }
    found = read_content({"content": [one, {**one, "title": "B"}, 7, {"title": "C"}]}, "parser")
    assert [(c.title, c.metadata) for c in found] == [("A", {"a": "b", "d": ""})]
    for hostile in (None, [], {"content": {}}, {"content": None}):
        with pytest.raises(Outage, match="without a list of content"):
            read_content(hostile, "parser")


@pytest.mark.parametrize(("type_id", "parser"), [("boe", "boe"), (" DOGA ", "doga"), ("BOE", "boe")])
def test_the_type_chooses_the_parser(type_id: str, parser: str) -> None:
    """Ruling: parsers are chosen by type_id."""
    assert parser_of(type_id) == parser


def test_an_unknown_type_is_a_permanent_error() -> None:
    """Trying again would give the same answer, so the row fails at once and says which type it is."""
    with pytest.raises(BadInput, match="no parser reads for type_id 'borme'"):
        parser_of("borme")
