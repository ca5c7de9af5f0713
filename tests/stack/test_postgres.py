"""The embedded Postgres: private, safe to kill, and startable over whatever an earlier start left."""

from __future__ import annotations

import os
import pwd
import signal
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError

from stack.errors import StackError
from stack.postgres import Cluster, end_left_over


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Cluster]:
    """Return a cluster of this test's own, not yet started, with TCP."""
    server = Cluster(tmp_path / "data", tcp=True, durable=False, log=tmp_path / "log")
    yield server
    server.remove()


def value(url: str, statement: str) -> object:
    """Return the first column of the first row."""
    engine = create_engine(url)
    try:
        with engine.begin() as connection:
            return connection.execute(text(statement)).scalar()
    finally:
        engine.dispose()


def run(url: str, statement: str) -> None:
    """Run a statement that gives no rows, and commit."""
    engine = create_engine(url)
    try:
        with engine.begin() as connection:
            connection.execute(text(statement))
    finally:
        engine.dispose()


def test_both_ways_in_reach_the_same_database(server: Cluster) -> None:
    """Tests use the socket and Airflow's connections use TCP; both must lead to one place."""
    server.start()
    server.create_database("one")
    run(server.url("one", over_tcp=False), "CREATE TABLE seen (it int)")
    assert value(server.url("one"), "SELECT count(*) FROM seen") == 0
    assert make_url(server.url("one")).host == "127.0.0.1"


def test_tcp_wants_the_password(server: Cluster) -> None:
    """Every process of the machine can reach a port of loopback, so the port alone must not open anything."""
    server.start()
    server.create_database("one")
    wrong = make_url(server.url("one")).set(password="wrong")
    with pytest.raises(OperationalError, match="password authentication failed"):
        value(wrong.render_as_string(hide_password=False), "SELECT 1")


def test_the_role_is_no_superuser_and_the_socket_is_private(server: Cluster) -> None:
    """A statement that slips through must not read the machine's files, nor other users reach the socket."""
    server.start()
    server.create_database("one")
    assert value(server.url("one"), "SELECT current_setting('is_superuser')") == "off"
    folder = Path(str(make_url(server.url("one", over_tcp=False)).query["host"]))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_it_listens_on_loopback_alone(server: Cluster) -> None:
    """Nothing of the embedded stack may be reachable from another machine."""
    server.start()
    process = psutil.Process(server.pid)
    addresses = {c.laddr.ip for c in process.net_connections() if c.status == psutil.CONN_LISTEN}
    assert addresses == {"127.0.0.1"}


def test_a_database_is_copied_from_a_template_and_dropped_under_its_clients(server: Cluster) -> None:
    """Tests take a copy each, and drop it although a pool still holds a connection."""
    server.start()
    server.create_database("template")
    run(server.url("template"), "CREATE TABLE seen AS SELECT 7 AS it")
    server.create_database("copy", "template")
    client = psycopg.connect(server.url("copy").replace("+psycopg", ""))
    assert client.execute("SELECT it FROM seen").fetchone() == (7,)
    server.drop_database("copy")
    client.close()
    assert "copy" not in server.databases()
    server.drop_database("copy")


def test_names_are_names_whatever_is_in_them(server: Cluster) -> None:
    """A database's name goes into a statement that takes no binds: it must stay a name."""
    server.start()
    name = 'a"; DROP DATABASE postgres; --'
    server.create_database(name)
    assert name in server.databases()
    assert "postgres" in server.databases()


def test_stopping_leaves_nothing(server: Cluster) -> None:
    """Neither a process nor a socket's folder may stay; the data must."""
    server.start()
    server.create_database("one")
    folder = Path(str(make_url(server.url("one", over_tcp=False)).query["host"]))
    pid, port = server.pid, server.port
    server.stop()
    assert server.pid is None
    assert not folder.exists()
    assert not psutil.pid_exists(pid or 0)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", port or 0))
    server.start()
    assert "one" in server.databases()


def test_a_server_that_was_killed_starts_again_with_its_data(server: Cluster) -> None:
    """R2's kind: kill -9 of Postgres must cost nothing that was committed, nor hinder the next start."""
    server.start()
    server.create_database("one")
    run(server.url("one"), "CREATE TABLE seen AS SELECT 1 AS it")
    os.kill(server.pid or 0, signal.SIGKILL)
    assert server.process is not None
    server.process.wait()
    assert server.pid is None
    server.start()
    assert value(server.url("one"), "SELECT it FROM seen") == 1


def test_a_server_that_outlived_its_launcher_is_ended_by_the_next_start(server: Cluster) -> None:
    """kill -9 of the supervisor leaves Postgres running; the next start must not fail, nor run a second."""
    server.start()
    server.create_database("one")
    orphan = psutil.Process(server.pid)
    orphans_socket = Path(str(make_url(server.url("one", over_tcp=False)).query["host"]))
    heir = Cluster(server.folder, durable=False)
    try:
        heir.start()
        assert not orphan.is_running() or orphan.status() == psutil.STATUS_ZOMBIE
        assert not orphans_socket.exists()
        assert "one" in heir.databases()
    finally:
        heir.stop()


def test_a_process_that_took_over_the_number_is_left_alone(server: Cluster) -> None:
    """A stale postmaster.pid may name a process that has nothing to do with us: this very test, say."""
    server.folder.mkdir(parents=True)
    mine = psutil.Process()
    stale = [str(mine.pid), str(server.folder), "1000000", "5432", "/nowhere", "127.0.0.1", "", "ready"]
    (server.folder / "postmaster.pid").write_text("\n".join(stale) + "\n")
    assert end_left_over(server.folder) == 0
    assert mine.is_running()
    assert not (server.folder / "postmaster.pid").exists()


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00\n/tmp/almanac-pg-\x00", b"one\ntwo\n"])
def test_a_server_is_found_without_its_own_word(server: Cluster, content: bytes) -> None:
    """A second server over one folder would ruin it; a damaged postmaster.pid must not lead there."""
    server.start()
    server.create_database("one")
    orphan = psutil.Process(server.pid)
    (server.folder / "postmaster.pid").write_bytes(content)
    assert end_left_over(server.folder) == 1
    assert not orphan.is_running() or orphan.status() == psutil.STATUS_ZOMBIE
    assert end_left_over(server.folder) == 0
    server.start()
    assert "one" in server.databases()


def test_the_reason_is_of_this_start(server: Cluster, tmp_path: Path) -> None:
    """What an earlier start died of stands in the same log, and misleads."""
    server.log = tmp_path / "log"
    server.log.write_text("FATAL:  of another day\n")
    server.start()
    server.stop()
    control = server.folder / "global" / "pg_control"
    control.rename(control.with_suffix(".kept"))
    with pytest.raises(StackError, match=r"could not open file .*pg_control"):
        server.start()
    control.with_suffix(".kept").rename(control)
    server.start()


def test_the_reason_of_a_failed_initdb_is_the_line_that_gives_it(
    server: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last line says that it clears up, never why; a full disk is the commonest of reasons."""
    said = "FATAL:  could not write to file: No space left on device\nchild process exited with exit code 1\n"
    (tmp_path / "said").write_text(f"{said}initdb: removing contents of data directory\n")
    program = tmp_path / "initdb"
    program.write_text(f"#!/bin/sh\ncat {tmp_path / 'said'}\nexit 1\n")
    program.chmod(0o755)
    (tmp_path / "postgres").touch(mode=0o755)
    tmp_path.chmod(0o755)
    monkeypatch.setattr(server, "_binaries", tmp_path)
    with pytest.raises(
        StackError, match=r"initdb failed in .*: FATAL:  could not write to file: No space left"
    ):
        server.start()


def test_a_first_start_that_was_cut_off_is_done_again(server: Cluster) -> None:
    """initdb that dies halfway leaves a folder that looks like a cluster; it must not be taken for one."""
    half = server.folder.with_name(server.folder.name + ".new")
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    server.folder.mkdir()
    server.start()
    server.create_database("one")
    assert not half.exists()


def test_a_damaged_folder_is_kept(server: Cluster) -> None:
    """Without PG_VERSION it is no cluster any more, but all that somebody has may lie in it."""
    server.start()
    server.create_database("one")
    server.stop()
    version = (server.folder / "PG_VERSION").read_text()
    (server.folder / "PG_VERSION").unlink()
    with pytest.raises(StackError, match="has no PG_VERSION but other files, perhaps your data"):
        server.start()
    (server.folder / "PG_VERSION").write_text(version)
    server.start()
    assert "one" in server.databases()


def test_a_port_in_use_is_one_clear_line(server: Cluster) -> None:
    """The person who starts it must read which port, not a traceback of the server's."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        server.port = taken.getsockname()[1]
        with pytest.raises(StackError, match=f"port {server.port} of 127.0.0.1 is in use"):
            server.start()
    assert server.pid is None


def test_it_runs_in_a_folder_that_nobody_else_may_pass_and_never_as_root(tmp_path: Path) -> None:
    """Root's project lies in /root, which Postgres's own user can't pass, and Postgres refuses to be root."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    with Cluster(closed / "data", durable=False) as server:
        user = psutil.Process(server.pid).uids().real
        assert user == (os.geteuid() or pwd.getpwnam("nobody").pw_uid)
        server.create_database("one")
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700
