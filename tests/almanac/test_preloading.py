"""What a process that forks loads for its children: all that they need, and never what was edited since."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.hooks.processes import ROOT, told

# As `airflow dag-processor` and `airflow scheduler` start: by their command line the plugin knows them, and
# what a Job is made of loads the plugins and calls the listeners.
_START = """
import os, sys
sys.argv = ["airflow", sys.argv[1]]
from airflow.jobs.job import Job
Job()

def child(answer):
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.write(writing, repr(answer()).encode())
        os._exit(0)
    os.wait()
    return os.read(reading, 100_000).decode()
"""

_PARSE = """
from pathlib import Path
from airflow.dag_processing.dagbag import DagBag

def loaded():
    before = set(sys.modules)
    bag = DagBag(os.environ["FOLDER"], bundle_path=Path(os.environ["FOLDER"]))
    from airflow.serialization.serialized_objects import DagSerialization
    for dag in bag.dags.values():
        DagSerialization.to_dict(dag)
    new = {name for name in set(sys.modules) - before if not name.startswith("unusual_prefix_")}
    # A file of one line, which not every way in loads.
    return len(bag.dags), sorted(new - {"airflow.version"})

print("loaded:", child(loaded))
"""

_EDIT = """
from pathlib import Path
file = Path(os.environ["FOLDER"]) / "include" / "clearpath" / "units.py"

def look():
    import include.run
    import include.clearpath.units as units
    return Path(units.__file__) == file, hasattr(units, "EDITED"), units is parents, include.run is run

import include.run as run
import include.clearpath.units as parents
before = child(look)
file.write_text(file.read_text(encoding="utf-8") + "EDITED = 1\\n", encoding="utf-8")
print("seen:", before, child(look))
"""


@pytest.mark.parametrize("service", ["dag-processor", "scheduler"])
def test_no_child_loads_anything_more(service: str, tmp_path: Path) -> None:
    """An import left to a child is paid for by each task and each parsing; a broken file changes nothing of that."""
    dags = tmp_path / "dags"
    shutil.copytree(ROOT / "dags", dags, ignore=shutil.ignore_patterns("__pycache__"))
    (dags / "broken.py").write_text("this is no Python\n", encoding="utf-8")
    (dags / "missing.py").write_text("import nowhere_to_be_found\n", encoding="utf-8")
    answer = told(
        "-c",
        _START + _PARSE,
        service,
        marked="loaded: ",
        FOLDER=str(dags / "clearpath"),
        AIRFLOW_HOME=str(tmp_path / "home"),
        AIRFLOW__CORE__DAGS_FOLDER=str(dags),
    )
    assert answer == repr((len(list((dags / "clearpath").glob("*.py"))), []))


def test_an_edited_module_is_seen_without_a_restart(tmp_path: Path) -> None:
    """A person who edits a job sees it in the next run, and never old code that calls new."""
    for name in ("include", "plugins", "dags"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    answer = told(
        # The copy's modules, not those of the folder that it starts in.
        "-P",
        "-c",
        _START + _EDIT,
        "dag-processor",
        marked="seen: ",
        FOLDER=str(tmp_path),
        PYTHONPATH=f"{tmp_path}:{tmp_path / 'plugins'}",
        AIRFLOW_HOME=str(tmp_path / "home"),
        AIRFLOW__CORE__DAGS_FOLDER=str(tmp_path / "dags"),
        AIRFLOW__CORE__PLUGINS_FOLDER=str(tmp_path / "plugins"),
    )
    assert answer == "(True, False, True, True) (True, True, False, False)"
