"""Values for a DAG's params, made from their JSON schemas: at the edges of what is allowed, and beyond."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from jsonschema import Draft7Validator

from stack.api import Airflow

EVERY_DAGS = ("as_of", "dry_run")
"""The params of which every DAG knows."""

_OF_NO_TYPE = {
    "integer": ["x", "7", 1.5, True, [1], {"a": 1}],
    "string": [7, True, ["x"], {"a": "x"}],
    "boolean": ["true", 1, "", [True]],
    "array": ["x", 7, True, {"a": 1}],
    "object": ["x", 7, True, [1]],
}
_OF_NO_FORMAT = {
    "uuid": ["", "no-uuid", "1234", f"{uuid.uuid4()}0", "zzzzzzzz-zzzz-4zzz-8zzz-zzzzzzzzzzzz"],
    "date-time": [
        "", "yesterday", "2026-01-01", "2026-01-01T00:00:00", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z",
        "2026-01-01T25:00:00Z", "20260101T000000Z", "2026-W01-1T00:00:00Z", "2026-01-01T00:00:00+99:00", "1767225600",
    ],
    "date": ["", "yesterday", "2026-02-30", "01/02/2026"],
}  # fmt: skip
_OF_FORMAT = {
    "uuid": [str(uuid.uuid4()), str(uuid.uuid4()).upper()],
    "date-time": ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.123456+05:45", "2026-01-01T00:00:00-07:00"],
    "date": ["2028-02-29"],
}


def schemas_of(api: Airflow, dag_id: str) -> dict[str, Mapping[str, Any]]:
    """Return the JSON schema of every param of a DAG, as the trigger form reads it."""
    answer = api.call("GET", f"/api/v2/dags/{dag_id}/details")
    assert answer.is_success, answer.text
    return {name: param["schema"] for name, param in answer.json()["params"].items()}


def types(schema: Mapping[str, Any]) -> list[str]:
    """Return the JSON types that a param accepts."""
    found = schema["type"]
    return [found] if isinstance(found, str) else list(found)


def bad_values(schema: Mapping[str, Any]) -> list[Any]:
    """Return values that a schema must refuse: of other types, beyond bounds, outside the enum, of no format."""
    kinds = types(schema)
    values = [] if "null" in kinds else [None]
    for kind in kinds:
        values += _OF_NO_TYPE.get(kind, [])
    if "format" in schema:
        values += _OF_NO_FORMAT[schema["format"]]
    if "minimum" in schema:
        values.append(schema["minimum"] - 1)
    if "maximum" in schema:
        values += [schema["maximum"] + 1, 10**30]
    if "enum" in schema:
        values.append("no such word")
    if "items" in schema:
        edges = good_values(schema["items"])
        values += [[value] for value in bad_values(schema["items"])]
        values += [[]] * ("minItems" in schema) + [[edges[0]] * 2] * schema.get("uniqueItems", False)
        values += [list(range(schema["maxItems"] + 1))] * ("maxItems" in schema)
    if len(set(kinds) - {"null"}) > 1:
        # What is wrong as a number may be right as a text.
        values = [value for value in values if not Draft7Validator(schema).is_valid(value)]
    return values


def good_values(schema: Mapping[str, Any]) -> list[Any]:
    """Return values at the very edge of what a schema allows."""
    values: list[Any] = [None] if "null" in types(schema) else []
    values += [schema[edge] for edge in ("minimum", "maximum") if edge in schema]
    values += schema.get("enum", [])
    values += _OF_FORMAT.get(schema.get("format", ""), [])
    if "boolean" in types(schema):
        values += [True, False]
    if "object" in types(schema):
        values += [{}, {"a": [{"b": None}]}]
    if "items" in schema:
        values.append(good_values(schema["items"]))
    return values


def at_the_edges(api: Airflow, dag_id: str) -> dict[str, Any]:
    """Return a value at the very edge of what each of a DAG's own params allows, as long as the demo's data has it."""
    conf: dict[str, Any] = {}
    for name, schema in schemas_of(api, dag_id).items():
        if name in EVERY_DAGS:
            continue
        # An unknown certificate is a fault of its own, and so is an event's data without the event; where an id is
        # wanted, it is the demo's.
        if schema.get("format") != "uuid" and "object" not in types(schema):
            conf[name] = good_values(schema)[-1]
        elif "null" in types(schema):
            conf[name] = None
    return conf
