"""The environment of a stack: secrets that stay, ports that give way, a file that only its owner reads."""

from __future__ import annotations

import os
import shlex
import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import make_url

from stack import environment
from stack.errors import StackError
from stack.home import Home
from stack.postgres import free_port
from stack.settings_file import load


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Return a home with its folders, and nothing in them."""
    home = Home(tmp_path / "home")
    home.make()
    return home


@pytest.fixture
def taken() -> Iterator[int]:
    """Hold a port for the length of the test."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        yield holder.getsockname()[1]


def test_only_its_owner_reads_what_opens_the_stack(home: Home) -> None:
    """The file holds every password: mode 0600, from its first byte on, and the folders closed to others."""
    settled = environment.settle(home, {})
    home.environment.write_text("old", encoding="utf-8")
    home.environment.chmod(0o644)
    before = os.umask(0)
    try:
        environment.write(home, settled)
        environment.write_logins(home, settled)
    finally:
        os.umask(before)
    for file in (home.environment, home.passwords):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    for folder in (home.airflow, home.outbox, home.storage, home.logs):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_restart_finds_its_secrets_and_ports(home: Home) -> None:
    """New secrets at every start would lock people out, and make stored connections unreadable."""
    first = environment.settle(home, {})
    environment.write(home, first)
    assert environment.settle(home, {}) == first


def test_two_stacks_share_no_secret(tmp_path: Path) -> None:
    """What is generated must be generated: a default that is the same everywhere is no secret."""
    homes = [Home(tmp_path / name) for name in ("a", "b")]
    one, other = (environment.settle(home, {}) for home in homes)
    secrets = [name for name in one if name.endswith(("PASSWORD", "TOKEN", "KEY", "SECRET"))]
    assert len(secrets) >= 8
    for name in secrets:
        assert one[name] != other[name]
        assert len(one[name]) >= 16


@pytest.mark.parametrize("value", ["p/s@s:%#1", "a b", "it's", 'quo"te', "$HOME `x` \\", "é", ""])
def test_a_shell_reads_the_file_as_it_was_written(home: Home, value: str) -> None:
    """Scripts source the file; R3's password and worse must arrive as they are, and run nothing."""
    environment.write(home, environment.settle(home, {}) | {"SOME_VALUE": value})
    script = f'. {shlex.quote(str(home.environment))}; printf %s "$SOME_VALUE"'
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, check=True, env={})
    assert done.stdout.decode() == value
    assert environment.read(home)["SOME_VALUE"] == value


def test_a_port_that_is_asked_for_and_taken_is_refused(home: Home, taken: int) -> None:
    """Whoever asks for a port wants that one: another one without a word would be found by nobody."""
    with pytest.raises(StackError, match=f"ALMANAC_PORT: port {taken} of 127.0.0.1 is in use"):
        environment.settle(home, {"ALMANAC_PORT": str(taken)})


def test_a_port_that_is_only_remembered_gives_way(home: Home, taken: int) -> None:
    """The last start's port may be anybody's by now, and that is no reason not to start."""
    environment.write(home, environment.settle(home, {}) | {"POSTGRES_PORT": str(taken)})
    assert environment.settle(home, {})["POSTGRES_PORT"] != str(taken)


@pytest.mark.parametrize("port", ["nonsense", "", "0", "65536", "1" * 5_000])
def test_a_remembered_port_that_is_none_gives_way(home: Home, port: str) -> None:
    """A file that was edited by hand is no reason not to start."""
    environment.write(home, environment.settle(home, {}) | {"POSTGRES_PORT": port})
    assert environment.settle(home, {})["POSTGRES_PORT"] != port


def test_one_port_for_two_is_refused(home: Home) -> None:
    """Whichever came second could not start, and would only say that something is there."""
    port = str(free_port())
    with pytest.raises(StackError, match=f"_PORT: {port} is [A-Z]+_PORT too"):
        environment.settle(home, {"ALMANAC_PORT": port, "POSTGRES_PORT": port})


def test_a_remembered_port_gives_way_to_the_one_that_is_asked_for(home: Home) -> None:
    """What was Postgres's yesterday may be asked for as Airflow's today."""
    first = environment.settle(home, {})
    environment.write(home, first)
    second = environment.settle(home, {"ALMANAC_PORT": first["POSTGRES_PORT"]})
    assert second["ALMANAC_PORT"] == first["POSTGRES_PORT"]
    assert len({second[name] for name in ("ALMANAC_PORT", "POSTGRES_PORT", "LAB_PORT")}) == 3


@pytest.mark.parametrize("content", [b"\x00\xff\xfe", b"LAB_TOKEN='half"])
def test_a_damaged_file_is_named(home: Home, content: bytes) -> None:
    """A disk that was full may have left half a file; the person must learn which one, and what helps."""
    home.environment.write_bytes(content)
    for use in (environment.read, lambda of: environment.settle(of, {})):
        with pytest.raises(StackError, match=rf"{home.environment}: .*damaged.*put a copy of it back"):
            use(home)


@pytest.mark.parametrize("left", [None, "LAB_TOKEN=x\n"])
def test_a_database_without_its_secrets_is_not_started(home: Home, left: str | None) -> None:
    """A new key against the old database would leave every stored connection unreadable, far from the cause."""
    home.postgres.mkdir()
    (home.postgres / "PG_VERSION").write_text("18\n")
    if left is not None:
        home.environment.write_text(left)
    with pytest.raises(StackError, match=rf"{home.environment}: .* put a copy of it back"):
        environment.settle(home, {})


def test_what_can_not_be_printed_is_said(home: Home) -> None:
    """Somebody deleted the file while the stack runs."""
    with pytest.raises(StackError, match="is gone or damaged: there is no ALMANAC_ADMIN_PASSWORD"):
        environment.reach({}, home.environment)


@pytest.mark.parametrize("port", ["http", "0", "65536", "-1", "80 ", "\uff18\uff10", "1" * 5_000])
def test_a_port_that_is_none_is_refused(home: Home, port: str) -> None:
    """A typing error must be named here, not surface as some server's refusal to bind."""
    with pytest.raises(StackError, match=r"ALMANAC_PORT: .* is not a port"):
        environment.settle(home, {"ALMANAC_PORT": port})


def test_other_installations_settings_stay_out(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell set up for another Airflow must not turn ours; connections and variables by environment may."""
    monkeypatch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS", "True")
    monkeypatch.setenv("AIRFLOW__CORE__AUTH_MANAGER", "somebody.elses")
    monkeypatch.setenv("AIRFLOW_HOME", "/somewhere/else")
    monkeypatch.setenv("AIRFLOW_VAR_SOME", "thing")
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    whole = environment.for_processes(environment.settle(home, {}))
    assert whole["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS"] == "False"
    assert "AIRFLOW__CORE__AUTH_MANAGER" not in whole
    assert whole["AIRFLOW_HOME"] == str(home.airflow)
    assert whole["AIRFLOW_VAR_SOME"] == "thing"
    assert "127.0.0.1" in whole["no_proxy"]
    assert whole["PYTHONTZPATH"] == ""


def test_every_placeholder_of_the_settings_is_filled(home: Home) -> None:
    """The file and the environment are written apart; a name that only one of them knows stops the start."""
    settings = load(home.settings, environment.settle(home, {}))
    assert {"almanac", "clearpath"} <= set(settings.databases())


def test_every_database_has_its_uri(home: Home) -> None:
    """Whoever wants to look into a system's rows must not have to put an address together by hand."""
    settled = environment.settle(home, {})
    databases = load(home.settings, settled).databases()
    assert {f"{connection.conn_id.upper()}_URI" for connection in databases.values()} < set(settled)
    for name, connection in databases.items():
        uri = make_url(settled[f"{connection.conn_id.upper()}_URI"])
        assert (uri.host, uri.port, uri.database) == ("127.0.0.1", int(settled["POSTGRES_PORT"]), name)
        assert (uri.username, uri.password) == (settled["POSTGRES_USER"], settled["POSTGRES_PASSWORD"])


def test_every_system_is_opened_by_its_name(home: Home) -> None:
    """`make sql DB=ecocomply`: where a system has two connections to its database, its own name opens it too."""
    systems = {file.parent.name for file in (home.project / "dags").glob("*/*.py")}
    uris = environment.database_uris(environment.settle(home, {}))
    assert systems | {"almanac", "airflow"} <= set(uris)
    assert all(uris[system].endswith(f"/{system}") for system in systems)


def test_what_is_printed_is_what_a_person_needs(home: Home) -> None:
    """Addresses, logins as pairs and databases; the processes' own keys stay in the file."""
    settled = environment.settle(home, {})
    lines = environment.reach(settled, home.environment)
    said = "\n".join(value for _, value in lines)
    for login in environment.LOGINS:
        assert f"{login} / {settled[f'ALMANAC_{login.upper()}_PASSWORD']}" in said
    for name in ("ALMANAC_DB_URI", "CLEARPATH_DB_URI", "AIRFLOW_DB_URI"):
        assert (name, settled[name]) in lines
    keys = [name for name in settled if name.endswith(("KEY", "SECRET", "TOKEN"))]
    assert len(keys) >= 5
    assert [name for name in keys if settled[name] in said] == []
    assert len(lines) < 20


def test_logins_without_a_password_are_refused(home: Home) -> None:
    """Airflow would invent a password and print it into a log."""
    with pytest.raises(StackError, match="ALMANAC_VIEWER_PASSWORD missing"):
        environment.write_logins(home, environment.settle(home, {}) | {"ALMANAC_VIEWER_PASSWORD": ""})
