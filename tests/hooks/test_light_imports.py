"""What importing a hook costs."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("requests", "boto3", "botocore", "typst", "pypdf", "airflow.providers.http", "itsdangerous")


def test_hooks_import_nothing_heavy() -> None:
    """Airflow parses each DAG file in a new process, again and again; a hook's libraries wait for its use."""
    code = (
        "import sys, airflow.sdk; before = set(sys.modules)\n"
        "import hooks.lab, hooks.storage, hooks.certificate_pdf\n"
        f"print([name for name in {HEAVY} if name in set(sys.modules) - before])"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
