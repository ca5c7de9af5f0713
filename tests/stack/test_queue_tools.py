"""Redis, Node and BullMQ's worker: found, installed where that is allowed, or asked for in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stack import debian, queue_tools
from stack.errors import StackError


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the only folder with programs of a machine that has none yet; its packages go beside it."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr(queue_tools, "INSTALLED", tmp_path / "installed")
    return programs


def program(folder: Path, name: str, script: str = "") -> None:
    """Write a program into the machine."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


def test_what_is_there_is_not_installed(machine: Path) -> None:
    """Where all three are, apt is not asked."""
    for name in ("redis-server", "node", "npm"):
        program(machine, name)
    program(machine, "apt-get", "exit 1")
    queue_tools.install_programs()


def test_root_installs_what_is_missing(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clean machine `make test` must get by without a person; what is there stays."""
    monkeypatch.setattr(debian.os, "geteuid", lambda: 0)
    for name in ("node", "npm"):
        program(machine, name)
    made = f'printf "#!/bin/sh\\n" > {machine}/redis-server; /bin/chmod 755 {machine}/redis-server'
    program(
        machine, "apt-get", f'case "$*" in *install*nodejs*) exit 1;; *install*redis-server*) {made};; esac'
    )
    queue_tools.install_programs()
    assert queue_tools.program("redis-server") == str(machine / "redis-server")


def test_what_can_not_be_installed_is_asked_for(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without root the person has to do it, and must read what."""
    monkeypatch.setattr(debian.os, "geteuid", lambda: 1000)
    with pytest.raises(StackError, match="apt install redis-server nodejs npm"):
        queue_tools.install_programs()
    with pytest.raises(StackError, match="need redis-server; run `make queue-tools`"):
        queue_tools.program("redis-server")


def test_the_worker_is_installed_once(machine: Path) -> None:
    """The packages are those of the lock; a lock that is not changed is not installed again."""
    program(machine, "npm", f'echo "$@" >> {machine}/asked')
    for _ in range(2):
        assert (queue_tools.installed_worker() / "worker.mjs").is_file()
    assert (machine / "asked").read_text() == "ci --ignore-scripts --no-audit --no-fund\n"


def test_a_failed_installation_gives_its_reason(machine: Path) -> None:
    """No network: npm's own last line says so, and the next run tries again."""
    program(machine, "npm", "echo 'npm error network' >&2; exit 1")
    for _ in range(2):
        with pytest.raises(StackError, match="npm error network"):
            queue_tools.installed_worker()


def test_the_lock_pins_everything() -> None:
    """Every package has its hash, and none is bound to the registry that a developer happened to use."""
    lock = json.loads((queue_tools.WORKER / "package-lock.json").read_text(encoding="utf-8"))
    packages = {name: facts for name, facts in lock["packages"].items() if name}
    assert "node_modules/bullmq" in packages
    assert all(facts.get("integrity") and not facts.get("resolved") for facts in packages.values())
