"""`python -m bench [name…]`: run the benchmarks, show their ratios, and write docs/benchmarks.md if all ran."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType

from bench import (
    bad_row,
    dag_parsing,
    dispatch_run,
    ecocomply_delivery,
    ecocomply_jobs,
    ecocomply_rates,
    email_queue,
    queue_engine,
    queue_start,
    report,
    session_expiry,
    signup_tasks,
)
from bench.databases import open_databases
from bench.machine import describe
from bench.measure import Comparison
from include.errors import AlmanacError
from stack.errors import StackError
from stack.terminal import complain, progress, say, table

BENCHMARKS: Mapping[str, ModuleType] = {
    "email_queue": email_queue,
    "session_expiry": session_expiry,
    "bad_row": bad_row,
    "queue_engine": queue_engine,
    "signup_tasks": signup_tasks,
    "ecocomply_delivery": ecocomply_delivery,
    "ecocomply_jobs": ecocomply_jobs,
    "ecocomply_rates": ecocomply_rates,
    "dag_parsing": dag_parsing,
    "dispatch_run": dispatch_run,
    "queue_start": queue_start,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for; return 0 if it ran, whatever the ratios are."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="The benchmarks")
    parser.add_argument("names", nargs="*", choices=[*BENCHMARKS, []], help="all of them if none is named")
    parser.add_argument("--tiny", action="store_true", help="a size at which the ratios mean nothing")
    parser.add_argument("--million", action="store_true", help="EcoComply's jobs on a million rows: hours")
    asked = parser.parse_args(arguments)
    found: list[Comparison] = []
    try:
        with open_databases() as databases:
            machine = describe(databases.version)
            for name in asked.names or BENCHMARKS:
                progress(f"{name} …")
                benchmark = BENCHMARKS[name]
                full = getattr(benchmark, "MILLION", benchmark.FULL) if asked.million else benchmark.FULL
                measured = benchmark.measure(databases, benchmark.TINY if asked.tiny else full)
                # At once: what was measured took long, and stands whatever breaks later.
                table(report.HEADING, [report.row(compared) for compared in measured])
                found += measured
    except (AlmanacError, StackError) as error:
        complain(f"error: {error}")
        return 1
    if not asked.names and not asked.tiny:
        report.PAGE.write_text(report.page(found, machine), encoding="utf-8")
        say(f"Written to {report.PAGE}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
