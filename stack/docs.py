"""The pages that are written from the code: `python -m stack.docs`; with `--check`, whether one is stale."""

from __future__ import annotations

import argparse
import inspect
import os
import sys
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from stack import schema_page, specification_page
from stack.errors import StackError
from stack.home import PROJECT
from stack.terminal import complain, say

PAGE = PROJECT / "docs" / "dags.md"

_HEAD = """\
# The DAGs

Written by `make docs` from the files in `dags/`; `make check` fails when it is stale. Each DAG's text is also
the page that Airflow's UI shows.

"""


def page(dags: Path) -> str:
    """Return the page for a folder of DAG files.

    Raises StackError if a file does not load.
    """
    from airflow.dag_processing.dagbag import DagBag  # noqa: PLC0415 - Airflow reads its settings on import

    bag = DagBag(str(dags))
    for file, error in bag.import_errors.items():
        raise StackError(f"{file}: {error.strip().splitlines()[-1]}")
    # Airflow passes over a file that does not look like a DAG's, without a word.
    missing = {file.stem for file in dags.glob("*/*.py") if file.stem != "__init__"} - set(bag.dags)
    if missing or not bag.dags:
        raise StackError(f"{dags}: holds no DAG of the name {', '.join(sorted(missing)) or 'of any file'}")
    # Systems in the order of their names, DAGs likewise.
    found = sorted(bag.dags.values(), key=lambda dag: (Path(dag.fileloc).parent.name, dag.dag_id))
    return _HEAD + _overview(found) + "".join(_chapter(dag) for dag in found)


def _overview(dags: Iterable[Any]) -> str:
    rows = [["DAG", "system", "schedule", "zone", "pool", "priority"]]
    for dag in dags:
        when, zone = _schedule(dag)
        anchor = f"[{dag.dag_id}](#{dag.dag_id})"
        rows.append([anchor, Path(dag.fileloc).parent.name, when, zone, _pools(dag), _priority(dag)])
    return _table(rows) + "\n"


def _chapter(dag: Any) -> str:
    when, zone = _schedule(dag)
    attempts = max(task.retries for task in dag.tasks) + 1
    facts = [
        ["schedule", f"{when} ({zone})" if zone else when],
        ["pool, priority", f"{_pools(dag)}, {_priority(dag)}"],
        ["attempts of a task", f"{attempts}{_delays(dag)}"],
        ["limit of an attempt", ", ".join(sorted({_span(t.execution_timeout) for t in dag.tasks}))],
        ["limit of a run", _span(dag.dagrun_timeout)],
        ["runs at once", str(dag.max_active_runs)],
        ["tasks", " → ".join(f"`{task.task_id}`" for task in dag.topological_sort())],
        ["tags", ", ".join(f"`{tag}`" for tag in sorted(dag.tags))],
    ]
    text = inspect.cleandoc(dag.doc_md or "")
    return f"\n## {dag.dag_id}\n\n{text}\n\n{_table([['fact', 'value'], *facts])}\n{_params(dag)}"


def _schedule(dag: Any) -> tuple[str, str]:
    """Return when a DAG runs, and the zone that this is told in ('' where time plays no part)."""
    timetable = dag.timetable
    name = type(timetable).__name__
    if hasattr(timetable, "expression"):
        return f"`{timetable.expression}`", str(getattr(timetable, "timezone", ""))
    inner = getattr(timetable, "timetable", None)
    if inner is not None and hasattr(inner, "expression"):
        return f"`{inner.expression}` and by event", str(getattr(inner, "timezone", ""))
    return ("by event, or by hand" if "Asset" in name else "by hand"), ""


def _pools(dag: Any) -> str:
    return ", ".join(f"`{pool}`" for pool in sorted({task.pool for task in dag.tasks}))


def _priority(dag: Any) -> str:
    from almanac.defaults import PRIORITIES  # noqa: PLC0415 - imports Airflow

    names = {weight: name for name, weight in PRIORITIES.items()}
    return ", ".join(sorted({names.get(t.priority_weight, str(t.priority_weight)) for t in dag.tasks}))


def _delays(dag: Any) -> str:
    delays = {tuple(getattr(task.retry_policy, "delays", ())) for task in dag.tasks} - {()}
    said = [", ".join(f"{seconds} s" for seconds in each) for each in sorted(delays)]
    return f", the next after {' or '.join(said)}" if said else ""


def _span(span: timedelta | None) -> str:
    if span is None:
        return "none"
    seconds = int(span.total_seconds())
    hours, rest = divmod(seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    parts = [(hours, "h"), (minutes, "min"), (seconds, "s")]
    return " ".join(f"{number} {unit}" for number, unit in parts if number) or "0 s"


def _params(dag: Any) -> str:
    rows = [["param", "takes", "default", "meaning"]]
    for name, param in dag.params.items():
        plain = dag.params.get_param(name) if hasattr(dag.params, "get_param") else param
        schema = plain.schema
        default = plain.value
        rows.append(
            [
                f"`{name}`",
                _takes(schema),
                ""
                if default is None
                else f"`{str(default).lower() if isinstance(default, bool) else default}`",
                (plain.description or "").strip(),
            ]
        )
    return "\n" + _table(rows) if len(rows) > 1 else ""


def _takes(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    kinds = schema.get("type", "anything")
    kinds = [kinds] if isinstance(kinds, str) else list(kinds)
    said = " or ".join(sorted(kind for kind in kinds if kind != "null"))
    for key, word in (("format", ""), ("minimum", "from "), ("maximum", "to "), ("pattern", "like ")):
        if key in schema:
            said += f", {word}{schema[key]}"
    return said + (", or none" if "null" in kinds else "")


def _table(rows: Sequence[Sequence[str]]) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |\n"

    head, *body = rows
    return line(head) + line(["---"] * len(head)) + "".join(line(row) for row in body)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pages, or with `--check` compare them; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m stack.docs", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if a page is stale")
    asked = parser.parse_args(arguments)
    os.environ.setdefault("AIRFLOW__LOGGING__LOGGING_LEVEL", "WARNING")
    try:
        fresh = {
            PAGE: page(PROJECT / "dags"),
            schema_page.PAGE: schema_page.page(),
            specification_page.PAGE: specification_page.page(),
        }
    except StackError as error:
        complain(f"error: {error}")
        return 1
    stale = [
        file for file, text in fresh.items() if not file.exists() or file.read_text(encoding="utf-8") != text
    ]
    for file in stale:
        if asked.check:
            complain(f"error: {os.path.relpath(file)} is stale; run `make docs`")
        else:
            file.write_text(fresh[file], encoding="utf-8")
            say(f"wrote {os.path.relpath(file)}")
    return 1 if asked.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
