"""What the preparation throws away for a fresh demo: the demo's own data, and nobody else's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stack.errors import StackError
from stack.home import Home
from stack.postgres import ROLE, Cluster
from stack.prepare import throw_away
from stack.settings_file import ConnectionSetting, Settings

PASSWORD = "of this test alone"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """Start a cluster that stands for the embedded stack's, with what belongs to it in the environment."""
    server = Cluster(tmp_path / "data", tcp=True, durable=False, password=PASSWORD, log=tmp_path / "log")
    server.start()
    for name in ("airflow", "almanac", "clearpath"):
        server.create_database(name)
    monkeypatch.setenv("POSTGRES_HOST", "127.0.0.1")
    monkeypatch.setenv("POSTGRES_PORT", str(server.port))
    monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", server.url("airflow"))
    yield server
    server.remove()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Return a home with a mail and a file in it."""
    home = Home(tmp_path / "home")
    home.make()
    (home.outbox / "a.eml").touch()
    (home.storage / "certificates").mkdir()
    return home


def connections(host: str, port: int | None) -> Settings:
    """Return settings whose databases are at an address."""
    made = [
        ConnectionSetting(f"{name}_db", "postgres", "", host, port, name, ROLE, PASSWORD)
        for name in ("almanac", "clearpath")
    ]
    return Settings(tuple(made), (), ())


def test_the_demos_data_goes_and_the_platforms_stays(server: Cluster, home: Home) -> None:
    """A second demo shows something again; what the platform knows of earlier runs is kept."""
    throw_away(connections("127.0.0.1", server.port), home)
    assert "clearpath" not in server.databases()
    assert {"airflow", "almanac"} <= set(server.databases())
    assert list(home.outbox.iterdir()) == list(home.storage.iterdir()) == []
    throw_away(connections("127.0.0.1", server.port), home)


@pytest.mark.parametrize(("host", "off"), [("db.internal", 0), ("127.0.0.1", 1)])
def test_a_database_elsewhere_is_never_thrown_away(server: Cluster, home: Home, host: str, off: int) -> None:
    """A connection that was turned to a real database must cost nobody's data."""
    with pytest.raises(StackError, match=r"connection clearpath_db: .* not the embedded stack's own"):
        throw_away(connections(host, (server.port or 0) + off), home)
    assert "clearpath" in server.databases()
    assert (home.outbox / "a.eml").exists()
