"""The end of a job that held up others of its batch calls the pipeline, whose jobs come last in one."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"

_WAITS = """
CREATE OR REPLACE FUNCTION pipeline_waits() RETURNS trigger LANGUAGE plpgsql AS $waits$
BEGIN
    IF EXISTS (
        SELECT FROM new_rows AS q
        WHERE q.job_type = 'process_pipeline' AND q.status::text = 'pending' AND q.next_run_at <= clock_timestamp()
    ) OR EXISTS (
        SELECT FROM new_rows AS n
        JOIN job_queue AS q ON q.correlation_id = n.correlation_id
        WHERE n.status::text IN ('completed', 'failed', 'cancelled')
          AND q.job_type = 'process_pipeline' AND q.status = 'pending' AND q.next_run_at <= clock_timestamp()
    ) THEN
        PERFORM pg_notify('arcvest_pipeline', '');
    END IF;
    RETURN NULL;
END
$waits$
"""


def upgrade() -> None:
    """Replace the function that both triggers call."""
    op.execute(_WAITS)
