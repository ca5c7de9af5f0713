"""The call for the content pipeline: a notification, while jobs of it are due."""

from __future__ import annotations

from include.arcvest.jobs import PACKAGE, PIPELINE
from include.run import Run
from include.statements import statement

CHANNEL = "arcvest_pipeline"
"""What the database notifies when a job of the pipeline falls due."""


def call_pipeline(run: Run) -> None:
    """Call the pipeline's next run if a job of it is due: a retry falls due without a sound."""
    with run.transaction() as tx:
        tx.rows(statement(PACKAGE, "pipeline_tell_more"), channel=CHANNEL, job_type=PIPELINE)
