"""A parent that parses DAG files as Airflow's does: `python -m bench.dag_processor`, a path a line.

It loads the plugins as a starting `airflow dag-processor` does, and forks for every file. For each line of
input it answers with the seconds from the fork to the end of the child, and the number of DAGs found.
"""

from __future__ import annotations

import gc
import selectors
import socket
import sys
import time
from pathlib import Path
from typing import Any, cast

_MARK = "parsed"


def serve() -> None:
    """Answer until the input ends. What the processes log goes to standard error."""
    answers = sys.stdout
    sys.stdout = sys.stderr
    # By its command line a plugin knows which service it is loaded into.
    sys.argv = ["airflow", "dag-processor"]
    from airflow.jobs.job import Job  # noqa: PLC0415 - after the command line is set

    # The real one does this first; its making is what loads the plugins and tells the listeners.
    Job()
    gc.freeze()
    for line in sys.stdin:
        seconds, dags = _parse(Path(line.strip()))
        answers.write(f"{_MARK} {seconds!r} {dags}\n")
        answers.flush()


def _parse(path: Path) -> tuple[float, int]:
    import structlog  # noqa: PLC0415 - Airflow's, as above
    import uuid6  # noqa: PLC0415 - as above
    from airflow.dag_processing.processor import DagFileProcessorProcess  # noqa: PLC0415 - as above

    from include.errors import Permanent  # noqa: PLC0415 - what the plugins load is theirs to load first

    selector = selectors.DefaultSelector()
    with Path("/dev/null").open("wb") as nowhere:
        began = time.perf_counter()
        process = DagFileProcessorProcess.start(
            id=uuid6.uuid7(),
            path=path,
            bundle_path=path.parent,
            bundle_name="bench",
            dag_file_rel_path=path.name,
            callbacks=[],
            selector=selector,
            logger=structlog.wrap_logger(structlog.WriteLogger(sys.stderr)),
            logger_filehandle=nowhere,
            # What a file may ask Airflow's API for; none of these asks.
            client=cast("Any", None),
        )
        while not process.is_ready:
            for key, _ in selector.select(timeout=0.02):
                handle, closed = key.data
                if not handle(key.fileobj):
                    closed(key.fileobj)
                    cast("socket.socket", key.fileobj).close()
        seconds = time.perf_counter() - began
    result = process.parsing_result
    if result is None or result.import_errors:
        raise Permanent(f"bench: {path} does not load: {result.import_errors if result else 'no answer'}")
    return seconds, len(result.serialized_dags)


if __name__ == "__main__":
    serve()
