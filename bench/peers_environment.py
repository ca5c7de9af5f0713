"""The peers' environment, made once, and what they say of their own time."""

from __future__ import annotations

import json
import subprocess
import venv
from pathlib import Path

from include.errors import Permanent
from stack.home import PROJECT

_HERE = Path(__file__).with_name("peers")
_FOLDER = PROJECT / ".almanac" / "peers"


def seconds(peer: str, url: str, what: str, jobs: int, *rest: int) -> float:
    """Let a peer do something in a process of its own, and return the seconds that it took by its own clock."""
    python = _environment()
    command = [str(python), str(_HERE / f"{peer}_peer.py"), url, what, str(jobs), *map(str, rest)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Permanent(f"bench: {peer} {what}: {done.stderr.strip()[-500:]}")
    return float(json.loads(done.stdout))


def _environment() -> Path:
    python = _FOLDER / "bin" / "python"
    stamp = _FOLDER / "ready"
    wanted = (_HERE / "requirements.txt").read_text(encoding="utf-8")
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        # With pip, which knows the machine's own index where there is one.
        venv.create(_FOLDER, clear=True, with_pip=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"]
        subprocess.run([*install, _HERE / "requirements.txt"], check=True)
        stamp.write_text(wanted, encoding="utf-8")
    return python
