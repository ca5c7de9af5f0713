"""airflow_settings.yaml as the stack reads it: exact values, clear refusals, no secret in the file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from stack.errors import StackError
from stack.home import PROJECT
from stack.settings_file import ConnectionSetting, PoolSetting, Settings, VariableSetting, load

SECRET = "p/s@s:%#1"
ENVIRONMENT = {"SECRET": SECRET, "PORT": "5433", "EMPTY": "", "HOST": "db.example"}


def loaded(path: Path, content: object) -> Settings:
    """Read `content` as a settings file; text is taken as it is."""
    file = path / "airflow_settings.yaml"
    file.write_text(content if isinstance(content, str) else yaml.safe_dump(content), encoding="utf-8")
    return load(file, ENVIRONMENT)


def connection(**fields: Any) -> dict[str, Any]:
    """Return the content of a file with one connection."""
    return {"airflow": {"connections": [{"conn_id": "one", "conn_type": "postgres"} | fields]}}


def test_a_password_of_any_characters_arrives_as_it_is(tmp_path: Path) -> None:
    """R3: `p/s@s:%#1` means something in a URL and in YAML, and nothing in a password."""
    content = connection(conn_password="${SECRET}", conn_extra={"key": "x${SECRET}y", "list": ["${SECRET}"]})
    (found,) = loaded(tmp_path, content).connections
    assert found.password == SECRET
    assert found.extra == {"key": f"x{SECRET}y", "list": [SECRET]}


def test_a_secret_does_not_show(tmp_path: Path) -> None:
    """R3: an error or a log that prints a connection must not print what opens it."""
    (found,) = loaded(
        tmp_path, connection(conn_password="${SECRET}", conn_extra={"key": "${SECRET}"})
    ).connections
    assert SECRET not in repr(found)


def test_a_base_url_with_a_path_arrives_as_it_is(tmp_path: Path) -> None:
    """R3: a host that is a URL keeps its path."""
    (found,) = loaded(tmp_path, connection(conn_host="https://${HOST}:8443/partner/v1")).connections
    assert found.host == "https://db.example:8443/partner/v1"


def test_everything_a_file_may_hold(tmp_path: Path) -> None:
    """The whole layout in one piece, so that a key which is read but lost on the way shows."""
    content = {
        "airflow": {
            "connections": [
                {
                    "conn_id": "one",
                    "conn_type": "postgres",
                    "conn_description": "first",
                    "conn_host": "${HOST}",
                    "conn_port": "${PORT}",
                    "conn_schema": "clearpath",
                    "conn_login": "me",
                    "conn_password": "${SECRET}",
                    "conn_extra": {"sslmode": "require", "deep": {"n": 1}},
                },
                {"conn_id": "two", "conn_type": "http", "conn_port": 80, "conn_host": "${EMPTY}"},
            ],
            "pools": [{"pool_name": "p", "pool_slot": 10, "pool_description": "ten"}],
            "variables": [{"variable_name": "v", "variable_value": 2, "variable_description": "two"}],
        }
    }
    assert loaded(tmp_path, content) == Settings(
        connections=(
            ConnectionSetting(
                conn_id="one",
                conn_type="postgres",
                description="first",
                host="db.example",
                port=5433,
                schema="clearpath",
                login="me",
                password=SECRET,
                extra={"sslmode": "require", "deep": {"n": 1}},
            ),
            ConnectionSetting(conn_id="two", conn_type="http", host="", port=80),
        ),
        pools=(PoolSetting("p", 10, "ten"),),
        variables=(VariableSetting("v", "2", "two"),),
    )


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("${HOST}", "db.example"),
        ("${MISSING:-else where}", "else where"),
        ("${EMPTY:-else}", ""),
        ("${MISSING:-}", ""),
        ("$${HOST}", "${HOST}"),
        ("$HOST {HOST} $", "$HOST {HOST} $"),
        ("${HOST}${HOST}", "db.exampledb.example"),
    ],
)
def test_what_a_placeholder_stands_for(tmp_path: Path, written: str, expected: str) -> None:
    """A default is for what is missing alone: an empty value is a choice."""
    (found,) = loaded(tmp_path, connection(conn_host=written)).connections
    assert found.host == expected


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("airflow: [", "is no YAML"),
        ("just text", "must be a mapping"),
        ({"airflow": {}, "other": {}}, "unknown key 'other'"),
        ({"airflow": {"conections": []}}, "unknown key 'conections'"),
        (connection(conn_pasword="x"), "connection one: unknown key 'conn_pasword'"),
        (connection(conn_host="${MISSING}"), r"connection one: conn_host: nothing fills \${MISSING}"),
        (connection(conn_port="many"), "connection one: conn_port must be a whole number, not 'many'"),
        (connection(conn_port=True), "conn_port must be a whole number"),
        (connection(conn_host=["a"]), "host must be text, not list"),
        (connection(conn_login=True), "login must be text, not bool"),
        (connection(conn_extra="a=b"), "conn_extra must be a mapping"),
        ({"airflow": {"connections": [{"conn_type": "http"}]}}, "a connection has no conn_id"),
        ({"airflow": {"connections": [{"conn_id": "one"}]}}, "connection one: conn_type is missing"),
        ({"airflow": {"connections": ["one"]}}, "connection: must be a mapping"),
        ({"airflow": {"pools": [{"pool_name": "p"}]}}, "pool p: pool_slot must be a whole number"),
        ({"airflow": {"pools": [{"pool_name": "p", "pool_slot": 1.5}]}}, "must be a whole number, not 1.5"),
        ({"airflow": {"variables": [{"variable_name": "v"}]}}, "variable v: variable_value is missing"),
        (
            {"airflow": {"pools": [{"pool_name": "p", "pool_slot": 1}, {"pool_name": "p", "pool_slot": 2}]}},
            "pool p: comes twice",
        ),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, content: object, reason: str) -> None:
    """Who mistypes a key must read which entry and which key, not find a connection missing at night."""
    with pytest.raises(StackError, match=reason) as error:
        loaded(tmp_path, content)
    assert str(error.value).startswith("airflow_settings.yaml: ")
    assert SECRET not in str(error.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """The first thing that goes wrong in a copied folder is that the file is not there."""
    with pytest.raises(StackError, match="there is no such file"):
        load(tmp_path / "airflow_settings.yaml", {})


def test_the_projects_file_holds_no_secret() -> None:
    """Whatever opens something comes from the environment: the file is in the repository, for all to read."""
    content = yaml.safe_load((PROJECT / "airflow_settings.yaml").read_text(encoding="utf-8"))
    for entry in content["airflow"]["connections"]:
        assert re.fullmatch(r"\$\{\w+(:-)?\}|", str(entry.get("conn_password", ""))), entry["conn_id"]
        for key, value in (entry.get("conn_extra") or {}).items():
            if re.search("secret|password|token|key", key):
                assert re.fullmatch(r"\$\{\w+(:-)?\}", str(value)), (entry["conn_id"], key)


def test_every_pool_of_the_dags_is_in_the_projects_file() -> None:
    """A DAG whose pool does not exist stays queued for ever, without a word."""
    file = PROJECT / "airflow_settings.yaml"
    every = dict.fromkeys(re.findall(r"\$\{(\w+)\}", file.read_text(encoding="utf-8")), "1")
    pools = {pool.name for pool in load(file, every).pools}
    used = set()
    for dag in (PROJECT / "dags").glob("*/*.py"):
        used |= set(re.findall(r'pool="([^"]+)"', dag.read_text(encoding="utf-8")))
    assert used
    assert used <= pools
