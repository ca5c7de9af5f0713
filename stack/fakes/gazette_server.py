"""The gazettes on loopback: the BOE's open data in the form that it publishes, and a parser service for the DOGA.

`GET /datosabiertos/api/boe/sumario/YYYYMMDD` answers a day's summary, 404 for a day without an edition.
`POST /doga/new-content` answers what was published between two days and holds a word of a prompt.
A data file is JSON: `{"boe": {"YYYYMMDD": [entry, …]}, "doga": [content, …]}`, read anew for every request; an
entry is `{"section", "department", "heading", "title", "identifier"}`, a content what a parser service answers,
its metadata with the `date`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stack.fakes.http_fake import HttpFake, Request, Sent, as_json, command_line

SUMMARY = "/datosabiertos/api/boe/sumario/"
SEARCH = "/doga/new-content"
TOKEN = "doga-token"  # noqa: S105 - a fake's


def summary(day: str, entries: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Return a day's document (`day` is YYYYMMDD); what stands alone is an object, as the BOE writes it."""
    sections: dict[str, dict[str, dict[str, list[Any]]]] = {}
    for number, entry in enumerate(entries, start=1):
        named = entry.get("identifier") or f"BOE-A-{day[:4]}-{day[4:]}{number:03d}"
        item = {
            "identificador": named,
            "control": f"{day[:4]}/{number}",
            "titulo": entry["title"],
            "url_pdf": {
                "szBytes": "204800", "szKBytes": "200", "pagina_inicial": str(number), "pagina_final": str(number + 1),
                "texto": f"https://www.boe.es/boe/dias/{day[:4]}/{day[4:6]}/{day[6:]}/pdfs/{named}.pdf",
            },
            "url_html": f"https://www.boe.es/diario_boe/txt.php?id={named}",
            "url_xml": f"https://www.boe.es/diario_boe/xml.php?id={named}",
        }  # fmt: skip
        departments = sections.setdefault(entry.get("section", "III. Otras disposiciones"), {})
        headings = departments.setdefault(entry.get("department", "MINISTERIO DE HACIENDA"), {})
        headings.setdefault(entry.get("heading", ""), []).append(item)
    diary = {
        "numero": "1",
        "sumario_diario": {"identificador": f"BOE-S-{day[:4]}-1"},
        "seccion": _alone(
            [
                {
                    "codigo": str(place),
                    "nombre": section,
                    "departamento": _alone([_department(name, there) for name, there in departments.items()]),
                }
                for place, (section, departments) in enumerate(sections.items(), start=1)
            ]
        ),
    }
    return {
        "status": {"code": "200", "text": "ok"},
        "data": {
            "sumario": {"metadatos": {"publicacion": "BOE", "fecha_publicacion": day}, "diario": [diary]}
        },
    }


def _department(name: str, headings: Mapping[str, list[Any]]) -> dict[str, Any]:
    below = [{"nombre": heading, "item": _alone(items)} for heading, items in headings.items() if heading]
    said: dict[str, Any] = {"codigo": "1", "nombre": name}
    if below:
        said["epigrafe"] = _alone(below)
    if "" in headings:
        said["item"] = _alone(headings[""])
    return said


def _alone(found: list[Any]) -> Any:
    return found[0] if len(found) == 1 else found


class GazetteServer(HttpFake):
    """The gazettes.

    `editions` are the BOE's entries by day (YYYYMMDD), `content` the DOGA's; `answers` are served before both, by
    path. `asked` holds every path in order.
    """

    def __init__(self, *, data: Path | None = None, port: int = 0, token: str = TOKEN) -> None:
        super().__init__(port=port)
        self.editions: dict[str, Sequence[Mapping[str, str]]] = {}
        self.content: list[Mapping[str, Any]] = []
        self.answers: dict[str, Sent] = {}
        self.asked: list[str] = []
        self.token = token
        self._data = data

    def answer(self, request: Request) -> Sent:
        path = request.path
        self.asked.append(path)
        if path in self.answers:
            return self.answers[path]
        known = self._known()
        if request.method == "GET" and path.startswith(SUMMARY):
            day = path.removeprefix(SUMMARY)
            entries = {**known.get("boe", {}), **self.editions}.get(day)
            if entries:
                return _json(200, summary(day, entries))
            return _json(404, {"status": {"code": "404", "text": "La información solicitada no existe"}})
        if request.method == "POST" and path == SEARCH:
            if request.headers.get("Authorization") != f"Bearer {self.token}":
                return _json(401, {"error": "bad token"})
            content = [*known.get("doga", ()), *self.content]
            return _json(200, {"content": _found(content, json.loads(request.body))})
        return _json(404, {"error": "no such path"})

    def _known(self) -> dict[str, Any]:
        if self._data is None or not self._data.exists():
            return {}
        return json.loads(self._data.read_text(encoding="utf-8"))


def _found(content: Sequence[Mapping[str, Any]], asked: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    words = [word.casefold() for prompt in asked["prompts"] for word in prompt.split() if len(word) > 3]  # noqa: PLR2004 - a shorter one says little
    return [
        one
        for one in content
        if asked["since"] <= one["metadata"]["date"] <= asked["until"]
        and any(word in one["title"].casefold() for word in words)
    ]


def _json(status: int, said: Any) -> Sent:
    return as_json(said, status, content_type="application/json; charset=utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve a JSON file of editions, and say on the first line of standard output where."""
    parser = command_line("gazette_server", main.__doc__)
    parser.add_argument("--data", type=Path, required=True, help="JSON file; read anew for every request")
    parser.add_argument(
        "--token",
        default=os.environ.get("NIFYA_DOGA_TOKEN", TOKEN),
        help="default: the variable NIFYA_DOGA_TOKEN",
    )
    given = parser.parse_args(arguments)
    GazetteServer(data=given.data, port=given.port, token=given.token).serve("gazettes")


if __name__ == "__main__":
    main()
