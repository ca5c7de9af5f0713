"""Demo data: subscribers of two gazettes around a moment, with what the gazettes publish, and jobs that are due."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects.postgresql import insert

from include.nifya import ZONE
from include.nifya.tables import NOTIFICATIONS, SCHEDULED_JOBS, SUBSCRIPTIONS, USERS

_HOSTILE = '<a href="https://evil.test">Reset</a> & Co'
_MANY = 600
_DAY = timedelta(days=1)


def _id(kind: str, name: str) -> uuid.UUID:
    return uuid.uuid5(uuid.NAMESPACE_URL, f"nifya demo/{kind}/{name}")


PARAMS: Mapping[str, Mapping[str, Any]] = {
    "nifya_subscription_processing": {"subscription_id": str(_id("subscription", "ana becas"))},
    "nifya_digest_emails": {"hour_of_day": "09"},
}
"""What the DAGs that want params are given in a demo."""

# Name, prompts, type, active.
_SUBSCRIPTIONS: Sequence[tuple[str, Sequence[str], str, bool]] = (
    ("ana becas", ["becas", "ayudas al estudio"], "boe", True),
    ("ana energia", ["plantas solares", "energía renovable"], "boe", True),
    ("brais axudas", ["axudas", "subvencións"], "doga", True),
    ("carla empleo", ["auxiliar administrativo", "policía local"], "boe", True),
    ("carla borme", ["sociedades"], "borme", True),
    ("dario todo", ["resolución"], "boe", True),
    ("elena parada", ["becas"], "boe", False),
)


def seed(connection: Connection, now: datetime) -> None:
    """Put subscribers, their subscriptions and due jobs into a database; what is there already stays as it is."""
    old = {"created_at": now - 10 * _DAY}
    users = [
        {"id": "demo-ana", "email": "ana@nifya.example", "name": "Ana Núñez"},
        {
            "id": "demo-brais",
            "email": "brais@nifya.example",
            "name": "Brais Otero",
            "timezone": "Atlantic/Canary",
        },
        {
            "id": "demo-carla",
            "email": "carla@nifya.example",
            "name": _HOSTILE,
            "timezone": "America/Winnipeg",
        },
        {"id": "demo-dario", "email": "dario@nifya.example", "name": "Darío Gil"},
        {"id": "demo-elena", "email": None, "name": "Elena Sanz", "digest_hour": 18},
    ]
    _insert(connection, USERS, [old | user for user in users])
    subscriptions = [
        {
            "id": _id("subscription", name),
            "user_id": f"demo-{name.partition(' ')[0]}",
            "name": name.partition(" ")[2].capitalize(),
            "prompts": list(prompts),
            "type_id": type_id,
            "active": active,
            "created_at": now - 3 * _DAY,
        }
        for name, prompts, type_id, active in _SUBSCRIPTIONS
    ]
    _insert(connection, SUBSCRIPTIONS, subscriptions)
    _insert(connection, NOTIFICATIONS, _notifications(now))
    _insert(connection, SCHEDULED_JOBS, _jobs(now))


def gazettes(now: datetime) -> dict[str, Any]:
    """Return what the gazettes on loopback publish: four days of the BOE without yesterday, and the DOGA's."""
    today = now.astimezone(ZONE).date()
    solar = "planta solar fotovoltaica «Ebro 3», de 49,9 MW"
    entries = [
        {
            "section": "III. Otras disposiciones",
            "department": "MINISTERIO DE CIENCIA, INNOVACIÓN Y UNIVERSIDADES",
            "heading": "Becas",
            "title": "Resolución por la que se convocan becas de formación para titulados universitarios.",
        },
        {
            "section": "V. Anuncios. - B. Otros anuncios oficiales",
            "department": "MINISTERIO PARA LA TRANSICIÓN ECOLÓGICA Y EL RETO DEMOGRÁFICO",
            "title": f"Anuncio por el que se somete a información pública la solicitud de la {solar}.",
        },
        {
            "section": "II. Autoridades y personal. - B. Oposiciones y concursos",
            "department": "ADMINISTRACIÓN LOCAL",
            "heading": "Personal funcionario y laboral",
            "title": f"Resolución referente a la convocatoria de plazas de Auxiliar Administrativo. {_HOSTILE}",
        },
    ]
    days = [today - n * _DAY for n in (0, 2, 3)]
    doga = [
        {
            "title": f"Orde pola que se convocan axudas para a rehabilitación enerxética ({day:%d/%m/%Y})",
            "summary": "Consellería de Medio Ambiente",
            "url": f"https://www.xunta.gal/dog/Publicados/{day:%Y}/{day:%Y%m%d}/Anuncio1_gl.html",
            "metadata": {"date": day.isoformat(), "department": "Consellería de Medio Ambiente"},
        }
        for day in days
    ]
    return {
        "boe": {
            f"{day:%Y%m%d}": [
                {**entry, "identifier": f"BOE-A-{day:%Y}-{day:%m%d}{number}"}
                for number, entry in enumerate(entries[: 3 - place], start=1)
            ]
            for place, day in enumerate(days)
        },
        "doga": doga,
    }


def _notifications(now: datetime) -> list[dict[str, Any]]:
    """Return what an earlier run has found: a hostile title, one that was read, and far more than a mail shows."""

    def one(name: str, number: int, title: str, **more: Any) -> dict[str, Any]:
        return {
            "id": _id("notification", f"{name} {number}"),
            "user_id": f"demo-{name.partition(' ')[0]}",
            "subscription_id": _id("subscription", name),
            "title": title,
            "content": "MINISTERIO DE HACIENDA · III. Otras disposiciones",
            "source_url": f"https://www.boe.es/diario_boe/txt.php?id=BOE-A-2026-{name[:4].strip()}{number}",
            "created_at": now - timedelta(minutes=number),
            **more,
        }

    return [
        one("ana energia", 1, f"Parque solar {_HOSTILE}"),
        one("ana energia", 2, "Autorización de la planta solar «Tajo»", read=True),
        *(
            one("dario todo", n, f"Resolución número {n} de la Dirección General")
            for n in range(1, _MANY + 1)
        ),
    ]


def _jobs(now: datetime) -> list[dict[str, Any]]:
    """Return jobs that are due: one for each subscription, one that sends digests, one for a type that nobody knows."""
    daily = {"type": "daily", "hourOfDay": 9, "minuteOfHour": 0, "timezone": ZONE.key}
    due = {"schedule": daily, "next_run_at": now - timedelta(minutes=1)}
    processing = [
        due
        | {
            "id": _id("job", f"{name} {now:%Y%m%d}"),
            "type": "process-subscription",
            "data": {
                "subscriptionId": str(_id("subscription", name)), "userId": f"demo-{name.partition(' ')[0]}"
            },
        }
        for name, *_ in _SUBSCRIPTIONS
    ]  # fmt: skip
    others = [
        {"type": "send-digest-emails", "data": {"hourOfDay": 18}},
        {"type": "weekly-report", "data": {}},
    ]
    return processing + [due | job | {"id": _id("job", f"{job['type']} {now:%Y%m%d}")} for job in others]


def _insert(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    for row in rows:
        connection.execute(insert(table).on_conflict_do_nothing(), [dict(row)])
