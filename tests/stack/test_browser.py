"""A Chromium for the browser tests: found, installed where that is allowed, or asked for in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from stack import browser
from stack.errors import StackError


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the only folder with programs of a machine that has none yet."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setattr(browser, "_MAC", str(tmp_path / "none"))
    return tmp_path


def program(folder: Path, name: str, script: str = "") -> Path:
    """Write a program into the machine."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_the_machines_own_is_found(machine: Path) -> None:
    """Where there is one, nothing is installed; CHROMIUM names another."""
    found = program(machine, "chromium")
    assert browser.install() == str(found)


def test_a_named_one_goes_first(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person who sets CHROMIUM means that one."""
    program(machine, "chromium")
    other = program(machine, "my-browser")
    monkeypatch.setenv("CHROMIUM", str(other))
    assert browser.install() == str(other)


def test_root_installs_debians(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clean machine `make test` must get by without a person."""
    monkeypatch.setattr(browser.os, "geteuid", lambda: 0)
    made = f'printf "#!/bin/sh\\n" > {machine}/chromium; /bin/chmod 755 {machine}/chromium'
    program(machine, "apt-get", f'case "$*" in *install*chromium*) {made};; esac')
    assert browser.install() == str(machine / "chromium")


def test_sudo_installs_where_it_asks_for_no_password(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CI's user is not root, but may become it."""
    monkeypatch.setattr(browser.os, "geteuid", lambda: 1000)
    program(
        machine, "apt-get", f"printf '#!/bin/sh\\n' > {machine}/chromium; /bin/chmod 755 {machine}/chromium"
    )
    program(machine, "sudo", '[ "$1" = -n ] || exit 1\nshift\n[ "$1" = true ] || exec "$@"')
    assert browser.install() == str(machine / "chromium")


@pytest.mark.parametrize("tools", [(), ("sudo",), ("apt-get",)])
def test_what_can_not_be_installed_is_asked_for(
    machine: Path, monkeypatch: pytest.MonkeyPatch, tools: tuple[str, ...]
) -> None:
    """Without root, or without apt, the person has to do it, and must read what."""
    monkeypatch.setattr(browser.os, "geteuid", lambda: 1000)
    for tool in tools:
        program(machine, tool, "exit 1")
    with pytest.raises(StackError, match="apt install chromium"):
        browser.install()


def test_a_failed_installation_gives_its_reason(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No network, a locked package list: apt's own last line says which."""
    monkeypatch.setattr(browser.os, "geteuid", lambda: 0)
    program(machine, "apt-get", "echo 'E: Could not get lock' >&2; exit 100")
    with pytest.raises(StackError, match="E: Could not get lock; install chromium by hand"):
        browser.install()
