"""`make up`, `down`, `env` and `demo` as a person meets them: once, twice, after every accident."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psutil
import psycopg
import pytest

from stack import environment
from stack.demo import dags_of_folder
from stack.home import PROJECT, Home

PROGRAM = [sys.executable, "-m", "stack", "demo"]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """Return the home of a stack of this test's own; whatever still runs in it at the end is ended."""
    home = tmp_path / "home"
    yield home
    stack(home, "down")


def stack(
    home: Path, *command: str, project: Path = PROJECT, more: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command of the stack to its end."""
    return subprocess.run(
        [sys.executable, "-m", "stack", *command],
        cwd=project,
        env=surroundings(home, project) | (more or {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )


def surroundings(home: Path, project: Path = PROJECT) -> dict[str, str]:
    """Return the environment that the Makefile gives the stack's commands."""
    paths = os.pathsep.join([str(project), str(project / "plugins")])
    return os.environ | {"ALMANAC_HOME": str(home), "PYTHONPATH": paths, "PYTHONTZPATH": ""}


def of_home(home: Path) -> list[psutil.Process]:
    """Return every process whose command or environment names a home; this one's own are not among them."""
    found = []
    for process in psutil.process_iter():
        try:
            named = [*process.cmdline(), process.environ().get("ALMANAC_HOME", "")]
        except psutil.Error:
            continue
        if process.pid != os.getpid() and any(str(home) in each for each in named):
            found.append(process)
    return found


def descendants(pid: int) -> list[psutil.Process]:
    """Return what a process has started, and what that has started in turn."""
    return psutil.Process(pid).children(recursive=True)


def ports(home: Path) -> list[int]:
    """Return the ports of a stack."""
    lines = (home / "env").read_text(encoding="utf-8").splitlines()
    return [int(line.partition("=")[2]) for line in lines if re.match("(?!AIRFLOW_)[A-Z_]+_PORT=", line)]


def nothing_is_left(home: Path, ran: list[psutil.Process]) -> None:
    """Hold that a stack has left neither a process, of these or any other, nor a port, nor a record."""
    # One whose parent was killed is dead until the system buries it, which takes a moment.
    assert [one for one in ran if one.is_running() and one.status() != psutil.STATUS_ZOMBIE] == []
    assert [process.cmdline() for process in of_home(home)] == []
    assert len(set(ports(home))) > 2
    for port in ports(home):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
    assert not (home / "started.json").exists()
    assert not (home / "pgdata" / "postmaster.pid").exists()


def one_clear_line(done: subprocess.CompletedProcess[str]) -> str:
    """Hold that a command failed with one line that a person can read, and return it."""
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("error: ")
    return lines[0]


@pytest.mark.live
@pytest.mark.xdist_group("live")
@pytest.mark.timeout(900)
def test_up_env_down_and_a_killed_supervisor(home: Path) -> None:
    """One life of a stack: up once, known to `env`, not up twice, killed, cleared away, up again, down."""
    done = stack(home, "up")
    assert done.returncode == 0, done.stdout + done.stderr
    assert stat.S_IMODE((home / "env").stat().st_mode) == 0o600

    said = environment.read(Home(home))
    told = stack(home, "env").stdout
    assert f"{said['ALMANAC_LOGIN']} / {said['ALMANAC_PASSWORD']}" in told
    assert said["CLEARPATH_DB_URI"] in told
    assert said["AIRFLOW__CORE__FERNET_KEY"] not in told
    health = httpx.get(said["ALMANAC_URL"] + "/api/v2/monitor/health", trust_env=False).json()
    assert {part["status"] for part in health.values()} == {"healthy"}
    login = {"username": said["ALMANAC_LOGIN"], "password": said["ALMANAC_PASSWORD"]}
    token = httpx.post(said["ALMANAC_URL"] + "/auth/token", json=login, trust_env=False)
    assert token.status_code == httpx.codes.CREATED
    with psycopg.connect(said["CLEARPATH_DB_URI"]) as connection:
        assert connection.execute("SELECT count(*) FROM email_log").fetchone() == (0,)

    assert "a stack is up already" in one_clear_line(stack(home, "up"))
    refused = stack(home, "demo", "--exit")
    assert "a stack is up already" in one_clear_line(refused)
    assert "stopp" not in refused.stdout

    supervisor = json.loads((home / "started.json").read_text())["supervisor"]["pid"]
    os.kill(supervisor, signal.SIGKILL)
    until(lambda: stack(home, "env").returncode)
    assert "no stack is up" in one_clear_line(stack(home, "env"))

    again = stack(home, "up")
    assert again.returncode == 0, again.stdout + again.stderr
    assert "had left behind" in again.stdout
    # Whoever was logged in, or had the address, still has it.
    assert said["ALMANAC_PASSWORD"] in stack(home, "env").stdout

    ran = descendants(json.loads((home / "started.json").read_text())["supervisor"]["pid"])
    # Airflow's four processes, the lab, Postgres, and what each of them has started.
    assert len(ran) > 12
    assert stack(home, "down").returncode == 0
    nothing_is_left(home, ran)
    assert "No stack was up" in stack(home, "down").stdout


@pytest.mark.live
@pytest.mark.xdist_group("live")
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("number", "seconds", "command", "code"),
    [
        (signal.SIGINT, 0, PROGRAM, 130),
        (signal.SIGINT, 1, PROGRAM, 130),
        (signal.SIGTERM, 1, PROGRAM, 130),
        (signal.SIGHUP, 4, PROGRAM, 130),
        # A service manager knows make alone, which ends by the signal.
        (signal.SIGTERM, 1, ["make", "demo"], -signal.SIGTERM),
    ],
)
def test_a_start_that_is_broken_off_leaves_nothing(
    home: Path, number: signal.Signals, seconds: int, command: list[str], code: int
) -> None:
    """Ctrl-C, `kill` and a closed terminal come at any moment, also halfway through the start."""
    running = subprocess.Popen(
        command,
        cwd=PROJECT,
        env=surroundings(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until((home / "started.json").exists)
    time.sleep(seconds)
    ran = descendants(running.pid)
    assert ran or not seconds
    running.send_signal(number)
    output, errors = running.communicate(timeout=60)
    assert running.returncode == code, output + errors
    # make says in a line of its own that it was ended.
    assert command != PROGRAM or errors == ""
    assert "stopped: no process is left" in output
    nothing_is_left(home, ran)


def test_a_demo_of_an_unknown_system_starts_nothing(home: Path) -> None:
    """A slip in the name costs a line, not a minute's start."""
    line = one_clear_line(stack(home, "demo", "--exit", "--system", "clearpth"))
    assert "'clearpth'" in line
    assert "clearpath, ecocomply, leadmetrics" in line
    assert not (home / "started.json").exists()


def test_a_demo_of_one_system_is_of_its_dags(home: Path) -> None:
    """The folder says which they are."""
    found = dags_of_folder(Home(home), "leadmetrics")
    assert found == ["leadmetrics_scheduled_tasks"]
    assert set(found) < set(dags_of_folder(Home(home)))


@pytest.mark.parametrize("name", ["ALMANAC_PORT", "POSTGRES_PORT", "LAB_PORT", "MODELS_PORT"])
def test_a_port_in_use_is_one_clear_line(home: Path, name: str) -> None:
    """The person has to learn which port, and who asked for it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        line = one_clear_line(stack(home, "up", more={name: port}))
    assert name in line
    assert port in line
    assert of_home(home) == []


def test_a_mistake_in_the_settings_is_one_clear_line(home: Path, tmp_path: Path) -> None:
    """What stops the preparation, a process of its own, must reach the person like all else."""
    project = tmp_path / "project"
    for folder in ("stack", "include", "plugins"):
        shutil.copytree(PROJECT / folder, project / folder)
    (project / "airflow_settings.yaml").write_text("airflow:\n  conections: []\n")
    line = one_clear_line(stack(home, "up", project=project))
    assert "unknown key 'conections'" in line
    assert of_home(home) == []


@pytest.mark.parametrize("command", ["up", "env", "down", "demo"])
def test_a_home_that_is_a_file_is_one_clear_line(home: Path, command: str) -> None:
    """A slip in ALMANAC_HOME must not look like a fault of the stack's, nor cost the file."""
    home.write_text("mine")
    assert str(home) in one_clear_line(stack(home, command))
    assert home.read_text() == "mine"
    home.unlink()


def test_a_file_in_a_folders_place_is_one_clear_line(home: Path) -> None:
    """Whoever put it there learns which it is."""
    home.mkdir()
    (home / "logs").write_text("mine")
    assert f"{home / 'logs'}: is no folder" in one_clear_line(stack(home, "up"))


def test_a_disk_without_room_is_one_clear_line(home: Path) -> None:
    """A limit on files' sizes stands for the disk: the system refuses each write in the same way."""
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); "
        "from stack.__main__ import main; sys.exit(main(['up']))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=PROJECT, env=surroundings(home), capture_output=True, text=True, check=False, timeout=280
    )
    assert f"{home / 'env'}: can't be written: File too large" in one_clear_line(done)
    assert of_home(home) == []


def test_a_record_that_nobody_can_read_is_kept(home: Path) -> None:
    """It may name processes that still run: a start that is refused must not throw it away."""
    home.mkdir()
    (home / "started.json").write_text("{")
    for command in ("up", "down", "up"):
        assert "started.json: is not readable" in one_clear_line(stack(home, command))
    assert (home / "started.json").read_text() == "{"
    (home / "started.json").unlink()


def test_an_env_file_without_its_key_is_not_called_gone(home: Path) -> None:
    """What a full disk left of it is there, and empty."""
    (home / "pgdata").mkdir(parents=True)
    (home / "pgdata" / "PG_VERSION").write_text("18\n")
    assert "env: is gone" in one_clear_line(stack(home, "up"))
    (home / "env").write_text("")
    assert "env: holds no key" in one_clear_line(stack(home, "up"))


def test_an_env_file_that_is_cut_off_is_not_made_up_for(home: Path) -> None:
    """New secrets in the place of lost ones would end every login, and every signed link that is out."""
    Home(home).make()
    environment.write(Home(home), environment.settle(Home(home), {}))
    whole = (home / "env").read_text()
    lines = whole.splitlines(keepends=True)
    for cut in (whole[:1500], "".join(lines[:-1]), "".join(lines[:20])):
        (home / "env").write_text(cut)
        for command in ("up", "demo"):
            assert "env: is damaged: it is cut off" in one_clear_line(stack(home, command))
        assert (home / "env").read_text() == cut


@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-", "<&- >&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_nobody_elses_place(home: Path, closed: str) -> None:
    """The pipe between `make up` and its stack would get the number of a stream that the shell has closed."""
    code = (
        "import os, sys; from stack.__main__ import _fill_closed_streams; _fill_closed_streams(); "
        "sys.exit(min(os.pipe()) < 3)"
    )
    command = ["sh", "-c", f'"$0" -c "{code}" {closed}', sys.executable]
    assert subprocess.run(command, cwd=PROJECT, env=surroundings(home), check=False).returncode == 0


def test_without_a_stack_there_is_nothing_to_print_or_to_end(home: Path) -> None:
    """`make env` and `make down` in a fresh clone say so, and make no mess."""
    assert "no stack is up; `make up` starts one" in one_clear_line(stack(home, "env"))
    done = stack(home, "down")
    assert (done.returncode, done.stdout) == (0, "No stack was up.\n")
    assert not home.exists()


def until(condition: Callable[[], object], seconds: float = 60) -> None:
    """Wait until something holds, or fail."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
