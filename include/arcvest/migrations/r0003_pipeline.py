"""A job of the content pipeline that falls due is told of on a channel of its own."""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"

_WAITS = """
CREATE OR REPLACE FUNCTION pipeline_waits() RETURNS trigger LANGUAGE plpgsql AS $waits$
BEGIN
    IF EXISTS (
        SELECT FROM new_rows AS q
        WHERE q.job_type = 'process_pipeline' AND q.status::text = 'pending' AND q.next_run_at <= clock_timestamp()
    ) THEN
        PERFORM pg_notify('arcvest_pipeline', '');
    END IF;
    RETURN NULL;
END
$waits$
"""
_ADDED = """
CREATE OR REPLACE TRIGGER pipeline_added AFTER INSERT ON job_queue
REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION pipeline_waits()
"""
_MOVED = """
CREATE OR REPLACE TRIGGER pipeline_moved AFTER UPDATE ON job_queue
REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION pipeline_waits()
"""


def upgrade() -> None:
    """Make the function and both triggers."""
    for definition in (_WAITS, _ADDED, _MOVED):
        op.execute(definition)
