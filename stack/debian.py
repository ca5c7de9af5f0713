"""Programs that only tests need, installed from Debian's packages where this user may."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence

from stack.errors import StackError
from stack.terminal import say

_SECONDS = 900


def install(packages: Sequence[str], what_for: str, *, refused: str, failed: str) -> None:
    """Install packages.

    Raises StackError, saying what a person has to do: `refused` where this user may not install, `failed`
    after apt's own reason.
    """
    apt = shutil.which("apt-get")
    root = _as_root()
    if apt is None or root is None:
        raise StackError(refused)
    say(f"installing {packages[0]} for {what_for}")
    for command in (["update"], ["install", "--yes", "--no-install-recommends", *packages]):
        _apt([*root, apt, "--quiet", *command], failed)


def _as_root() -> list[str] | None:
    """Return what to put before a command for it to run as root, or None if that is not allowed."""
    if os.geteuid() == 0:
        return []
    sudo = shutil.which("sudo")
    if sudo is None or subprocess.run([sudo, "-n", "true"], capture_output=True, check=False).returncode:
        return None
    return [sudo, "-n"]


def _apt(command: list[str], failed: str) -> None:
    try:
        done = subprocess.run(
            command,
            env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise StackError(f"{' '.join(command)}: not done after {_SECONDS} s") from None
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise StackError(f"{' '.join(command)}: {reason}; {failed}")
