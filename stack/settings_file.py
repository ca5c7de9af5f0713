"""airflow_settings.yaml: the connections, pools and variables that the platform starts with.

Nothing in Airflow reads that file. Its layout is the one that Astronomer's tools use. A `${NAME}` in it
stands for a value of the environment, `${NAME:-default}` for one that may be missing, `$${` for a plain `${`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from stack.errors import StackError

_PLACEHOLDER = re.compile(r"\$(?:\$\{|\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\})")

_CONNECTION_KEYS = {
    "conn_id": "conn_id",
    "conn_type": "conn_type",
    "conn_description": "description",
    "conn_host": "host",
    "conn_port": "port",
    "conn_schema": "schema",
    "conn_login": "login",
    "conn_password": "password",
    "conn_extra": "extra",
}
_POOL_KEYS = {"pool_name": "name", "pool_slot": "slots", "pool_description": "description"}
_VARIABLE_KEYS = {
    "variable_name": "name",
    "variable_value": "value",
    "variable_description": "description",
}


@dataclass(frozen=True, slots=True)
class ConnectionSetting:
    """One Airflow connection; neither its password nor its extra shows in its repr."""

    conn_id: str
    conn_type: str
    description: str = ""
    host: str | None = None
    port: int | None = None
    schema: str | None = None
    login: str | None = None
    password: str | None = field(default=None, repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class PoolSetting:
    """One Airflow pool."""

    name: str
    slots: int
    description: str = ""


@dataclass(frozen=True, slots=True)
class VariableSetting:
    """One Airflow variable."""

    name: str
    value: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Settings:
    """What airflow_settings.yaml holds, its placeholders filled in."""

    connections: tuple[ConnectionSetting, ...]
    pools: tuple[PoolSetting, ...]
    variables: tuple[VariableSetting, ...]

    def to_databases(self) -> list[tuple[str, ConnectionSetting]]:
        """Return every Postgres connection beside its business database, which may have several."""
        return [(c.schema, c) for c in self.connections if c.conn_type == "postgres" and c.schema]

    def databases(self) -> dict[str, ConnectionSetting]:
        """Return the business databases by name, each with its Postgres connection: of several, the last."""
        return dict(self.to_databases())


def load(path: Path, environment: Mapping[str, str]) -> Settings:
    """Read the file and fill in its placeholders.

    Raises StackError, naming the entry, for a file that can't be read, an unknown key, a value of the wrong
    kind, a name that comes twice, or a placeholder that nothing fills.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StackError(f"{path.name}: there is no such file in {path.parent}") from None
    except yaml.YAMLError as error:
        raise StackError(f"{path.name}: is no YAML: {str(error).replace(chr(10), ' ')}") from None
    content = _mapping(content, path.name)
    _only(content, {"airflow"}, path.name)
    content = _mapping(content.get("airflow"), f"{path.name}: airflow")
    _only(content, {"connections", "pools", "variables"}, f"{path.name}: airflow")
    reader = _Reader(path.name, environment)
    settings = Settings(
        connections=tuple(reader.connection(entry) for entry in content.get("connections") or ()),
        pools=tuple(reader.pool(entry) for entry in content.get("pools") or ()),
        variables=tuple(reader.variable(entry) for entry in content.get("variables") or ()),
    )
    _once([c.conn_id for c in settings.connections], f"{path.name}: connection")
    _once([p.name for p in settings.pools], f"{path.name}: pool")
    _once([v.name for v in settings.variables], f"{path.name}: variable")
    return settings


class _Reader:
    def __init__(self, file: str, environment: Mapping[str, str]) -> None:
        self._file = file
        self._environment = environment

    def connection(self, entry: object) -> ConnectionSetting:
        where, values = self._entry(entry, "connection", "conn_id", _CONNECTION_KEYS)
        extra = values.pop("extra", None)
        if extra is None:
            extra = {}
        port = values.pop("port", None)
        if not isinstance(extra, Mapping):
            raise StackError(f"{where}: conn_extra must be a mapping")
        texts = {name: self._text(value, where, name) for name, value in values.items() if value is not None}
        if not texts.get("conn_type"):
            raise StackError(f"{where}: conn_type is missing")
        return ConnectionSetting(
            **texts, port=None if port in (None, "") else self._whole(port, where, "conn_port"), extra=extra
        )

    def pool(self, entry: object) -> PoolSetting:
        where, values = self._entry(entry, "pool", "pool_name", _POOL_KEYS)
        slots = self._whole(values.pop("slots", None), where, "pool_slot")
        texts = {name: self._text(value, where, name) for name, value in values.items()}
        return PoolSetting(**texts, slots=slots)

    def variable(self, entry: object) -> VariableSetting:
        where, values = self._entry(entry, "variable", "variable_name", _VARIABLE_KEYS)
        if values.get("value") is None:
            raise StackError(f"{where}: variable_value is missing; an empty one is written ''")
        return VariableSetting(**{name: self._text(value, where, name) for name, value in values.items()})

    def _entry(
        self, entry: object, kind: str, name_key: str, keys: Mapping[str, str]
    ) -> tuple[str, dict[str, Any]]:
        entry = _mapping(entry, f"{self._file}: {kind}")
        where = f"{self._file}: {kind} {entry.get(name_key)}"
        if not entry.get(name_key):
            raise StackError(f"{self._file}: a {kind} has no {name_key}")
        _only(entry, set(keys), where)
        return where, {keys[key]: self._filled(value, f"{where}: {key}") for key, value in entry.items()}

    def _filled(self, value: Any, where: str) -> Any:
        if isinstance(value, str):
            # Filled in after the YAML is read: no character of a secret means anything here.
            return _PLACEHOLDER.sub(lambda match: self._one(match, where), value)
        if isinstance(value, Mapping):
            return {key: self._filled(inner, where) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._filled(inner, where) for inner in value]
        return value

    def _one(self, match: re.Match[str], where: str) -> str:
        name, default = match.group(1), match.group(2)
        if name is None:
            return "${"
        found = self._environment.get(name)
        if found is None:
            found = default
        if found is None:
            raise StackError(f"{where}: nothing fills ${{{name}}}; set {name} in the environment")
        return found

    def _text(self, value: Any, where: str, name: str) -> str:
        if isinstance(value, str):
            return value
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        raise StackError(f"{where}: {name} must be text, not {type(value).__name__}; put it in quotes")

    def _whole(self, value: Any, where: str, name: str) -> int:
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        if isinstance(value, str) and value.isascii() and value.isdigit():
            return int(value)
        raise StackError(f"{where}: {name} must be a whole number, not {value!r}")


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise StackError(f"{where}: must be a mapping, not {type(value).__name__}")
    return value


def _only(found: Mapping[str, Any], known: set[str], where: str) -> None:
    for key in found:
        if key not in known:
            raise StackError(f"{where}: unknown key {key!r}; known are {', '.join(sorted(known))}")


def _once(names: list[str], what: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise StackError(f"{what} {name}: comes twice")
