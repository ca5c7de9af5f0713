"""A database that EcoComply's application has used: its rows stay, its statements go on, nothing old is told anew."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine, inspect, text

from include import migrations
from include.ecocomply.access import act_as_service, act_as_user
from include.run import Transaction
from tests.ecocomply import catalog
from tests.ecocomply.catalog import OWNERLESS

# As the specification's 7.5 has the two tables; the others as its statements use them: children without a company,
# enum types that lack words, a column of the application's own.
APPLICATION = """
CREATE TYPE deadline_status AS ENUM ('PENDING', 'DUE_SOON', 'COMPLETED', 'OVERDUE');
CREATE TABLE companies (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), name text NOT NULL, deleted_at timestamptz);
CREATE TABLE users (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), company_id uuid NOT NULL REFERENCES companies (id),
    email text NOT NULL, full_name text, is_active boolean NOT NULL DEFAULT true, deleted_at timestamptz);
CREATE TABLE user_roles (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), user_id uuid REFERENCES users (id), role text);
CREATE TABLE sites (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), company_id uuid NOT NULL REFERENCES companies (id),
    name text NOT NULL);
CREATE TABLE modules (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), module_code text UNIQUE, module_name text,
    cross_sell_keywords text[] NOT NULL DEFAULT '{}', is_active boolean DEFAULT true);
CREATE TABLE documents (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), site_id uuid NOT NULL REFERENCES sites (id),
    title text NOT NULL, document_type text, expiry_date date, status text NOT NULL DEFAULT 'ACTIVE',
    extraction_status text NOT NULL DEFAULT 'MANUAL_MODE', created_at timestamptz DEFAULT now());
CREATE TABLE obligations (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), company_id uuid NOT NULL, site_id uuid,
    document_id uuid REFERENCES documents (id), summary text, deadline_date date, status text NOT NULL, theme text);
CREATE TABLE schedules (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), obligation_id uuid REFERENCES obligations (id),
    frequency text NOT NULL, base_date date, next_due_date date, status text, updated_at timestamptz);
CREATE TABLE deadlines (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), obligation_id uuid REFERENCES obligations (id),
    schedule_id uuid REFERENCES schedules (id), due_date timestamp NOT NULL,
    status deadline_status NOT NULL DEFAULT 'PENDING', created_at timestamptz DEFAULT now());
CREATE TABLE permit_workflows (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), document_id uuid, workflow_type text,
    status text, created_at timestamptz DEFAULT now());
CREATE TABLE compliance_clocks_universal (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), company_id uuid NOT NULL,
    entity_type text, entity_id uuid, clock_type text, target_date date, status text, reminder_days integer[],
    reminders_sent integer[]);
CREATE TABLE background_jobs (
    id UUID PRIMARY KEY DEFAULT gen_random_uuid(), job_type TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'PENDING'
        CHECK (status IN ('PENDING', 'RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED')),
    priority INTEGER NOT NULL DEFAULT 0, payload JSONB NOT NULL DEFAULT '{}', result JSONB, error_message TEXT,
    error_stack TEXT, scheduled_for TIMESTAMP WITH TIME ZONE NOT NULL DEFAULT NOW(),
    started_at TIMESTAMP WITH TIME ZONE, completed_at TIMESTAMP WITH TIME ZONE,
    retry_count INTEGER NOT NULL DEFAULT 0, max_retries INTEGER NOT NULL DEFAULT 2,
    timeout_seconds INTEGER NOT NULL DEFAULT 300, retry_backoff_seconds INTEGER NOT NULL DEFAULT 2,
    last_heartbeat TIMESTAMP WITH TIME ZONE,
    health_status TEXT NOT NULL DEFAULT 'HEALTHY' CHECK (health_status IN ('HEALTHY', 'STALE', 'FAILED')),
    heartbeat_interval_seconds INTEGER NOT NULL DEFAULT 60, dead_letter_queue_id UUID,
    created_by UUID REFERENCES users (id) ON DELETE SET NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL DEFAULT NOW(),
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL DEFAULT NOW()
);
CREATE TABLE dead_letter_queue (
    id UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    job_id UUID NOT NULL REFERENCES background_jobs (id) ON DELETE CASCADE,
    company_id UUID REFERENCES companies (id) ON DELETE SET NULL, error_message TEXT NOT NULL, error_stack TEXT,
    error_context JSONB NOT NULL DEFAULT '{}', retry_count INTEGER NOT NULL,
    last_attempted_at TIMESTAMP WITH TIME ZONE NOT NULL, resolved_at TIMESTAMP WITH TIME ZONE,
    resolved_by UUID REFERENCES users (id) ON DELETE SET NULL, resolution_notes TEXT,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL DEFAULT NOW()
);
ALTER TABLE background_jobs ADD FOREIGN KEY (dead_letter_queue_id) REFERENCES dead_letter_queue (id)
    ON DELETE SET NULL;
CREATE TABLE app_settings (company_id uuid, key text);

INSERT INTO companies (id, name) VALUES
    ('00000000-0000-4000-8000-00000000000a', 'A'), ('00000000-0000-4000-8000-00000000000b', 'B');
INSERT INTO users (id, company_id, email)
    SELECT gen_random_uuid(), id, 'owner@' || lower(name) || '.example' FROM companies;
INSERT INTO user_roles (user_id, role) SELECT id, 'OWNER' FROM users;
INSERT INTO sites (company_id, name) SELECT id, 'Works' FROM companies;
INSERT INTO documents (site_id, title, document_type, expiry_date)
    SELECT id, 'Permit', 'PERMIT', '2199-01-01' FROM sites;
INSERT INTO permit_workflows (document_id, workflow_type, status) SELECT id, 'RENEWAL', 'DRAFT' FROM documents;
INSERT INTO obligations (company_id, site_id, document_id, summary, deadline_date, status, theme)
    SELECT s.company_id, s.id, d.id, 'Report', '2020-01-31', 'OVERDUE', 'dark'
    FROM sites AS s JOIN documents AS d ON d.site_id = s.id;
INSERT INTO schedules (obligation_id, frequency, status) SELECT id, 'MONTHLY', 'ACTIVE' FROM obligations;
INSERT INTO deadlines (obligation_id, schedule_id, due_date, status)
    SELECT obligation_id, id, day, 'PENDING' FROM schedules
    CROSS JOIN unnest(ARRAY['2020-01-31', '2020-01-31', '2199-02-28']::timestamp[]) AS day;
INSERT INTO compliance_clocks_universal (company_id, entity_type, entity_id, clock_type, target_date, status,
        reminder_days, reminders_sent)
    SELECT id, 'company', id, 'X', current_date + 20, 'ACTIVE', '{90,30,7}', '{}' FROM companies;
INSERT INTO background_jobs (job_type, status, created_by)
    SELECT 'MONITORING_SCHEDULE', status, u.id FROM users AS u
    CROSS JOIN unnest(ARRAY['PENDING', 'RUNNING', 'FAILED']) AS status;
INSERT INTO app_settings SELECT id, 'theme' FROM companies;
"""


def execute(engine: Engine, statements: str) -> None:
    """Run several statements in one transaction."""
    with engine.begin() as connection:
        raw: Any = connection.connection.driver_connection
        raw.execute(statements)


def value(engine: Engine, statement: str) -> Any:
    """Return the first column of the first row."""
    with engine.connect() as connection:
        return connection.execute(text(statement)).scalar()


@pytest.fixture
def adopted(empty_database: Engine) -> Engine:
    """Make a database that the application used, and bring it up to date."""
    execute(empty_database, APPLICATION)
    migrations.upgrade("ecocomply", empty_database)
    return empty_database


def test_its_rows_stay(adopted: Engine) -> None:
    """Nothing of the application's is dropped or narrowed; it writes its own columns on."""
    counts = {"companies": 2, "obligations": 2, "deadlines": 6, "background_jobs": 6, "app_settings": 2}
    assert {table: value(adopted, f"SELECT count(*) FROM {table}") for table in counts} == counts
    assert value(adopted, "SELECT count(*) FROM obligations WHERE theme = 'dark'") == 2
    execute(adopted, "UPDATE deadlines SET status = 'NOT_APPLICABLE' WHERE due_date > '2100-01-01'")


def test_children_got_their_company(adopted: Engine) -> None:
    """From what they name, and the database insists on it from then on."""
    with adopted.connect() as connection:
        owned = catalog.tables(connection)
    columns = inspect(adopted)
    for table in set(owned) - OWNERLESS - {"companies", "app_settings"}:
        (company,) = [each for each in columns.get_columns(table) if each["name"] == "company_id"]
        assert not company["nullable"], table
    for table in ("documents", "schedules", "deadlines", "user_roles", "permit_workflows"):
        assert value(adopted, f"SELECT count(DISTINCT company_id) FROM {table}") == 2
    assert value(adopted, "SELECT count(*) FROM background_jobs WHERE company_id IS NULL") == 0


def test_its_statements_go_on(adopted: Engine) -> None:
    """The specification's INSERT of 2.1 names neither company nor site."""
    execute(
        adopted,
        """INSERT INTO deadlines (obligation_id, schedule_id, due_date, status)
           SELECT obligation_id, id, '2199-03-31', 'PENDING' FROM schedules""",
    )
    assert (
        value(adopted, "SELECT count(*) FROM deadlines WHERE due_date = '2199-03-31' AND site_id IS NOT NULL")
        == 2
    )


def test_old_duplicates_stay_and_new_ones_are_refused(adopted: Engine) -> None:
    """Ruling 15: reported instead of failing, and the key holds for new rows."""
    assert (
        value(
            adopted,
            "SELECT row_count FROM adoption_findings WHERE subject = 'uq_deadlines_obligation_id_due_date'",
        )
        == 2
    )
    with pytest.raises(Exception, match="uq_deadlines_obligation_id_due_date"):
        execute(
            adopted,
            "INSERT INTO deadlines (obligation_id, due_date) SELECT obligation_id, due_date FROM deadlines",
        )


def test_what_was_past_is_marked_as_seen(adopted: Engine) -> None:
    """A first run on a live database must not alert about all its history."""
    assert value(adopted, "SELECT name FROM baseline") == "adoption"
    assert value(
        adopted,
        "SELECT bool_and(past_at_adoption = (due_date < '2100-01-01') AND breach_notification_sent = past_at_adoption) "
        "FROM deadlines",
    )
    assert value(adopted, "SELECT bool_and(past_at_adoption) FROM obligations")
    assert value(adopted, "SELECT bool_and(reminders_sent = '{90,30}') FROM compliance_clocks_universal")
    assert value(adopted, "SELECT bool_and(expiry_date = '2199-01-01') FROM permit_workflows")


def test_each_company_sees_its_own(adopted: Engine) -> None:
    """Policies hold on adopted tables too; who worked on them by another login is told so."""
    with adopted.begin() as connection:
        owner = connection.execute(text("SELECT id FROM users ORDER BY email LIMIT 1")).scalar_one()
        act_as_user(Transaction(connection), owner)
        found = {
            table: connection.execute(text(f"SELECT count(*) FROM {table}")).scalar()
            for table in ("companies", "deadlines", "schedules", "background_jobs")
        }
        assert found == {"companies": 1, "deadlines": 3, "schedules": 1, "background_jobs": 3}
        act_as_service(Transaction(connection))
        assert connection.execute(text("SELECT count(*) FROM deadlines")).scalar() == 6
    said = "SELECT count(*) FROM adoption_findings WHERE subject = 'row-level security'"
    assert value(adopted, said) == 12
    assert not value(adopted, "SELECT relrowsecurity FROM pg_class WHERE relname = 'app_settings'")


def test_its_jobs_are_a_queue_now(adopted: Engine) -> None:
    """What the application enqueued before is due like the rest; the guard holds for its old rows."""
    assert value(adopted, "SELECT count(*) FROM pg_indexes WHERE indexname = 'ix_background_jobs_due'") == 1
    execute(adopted, "UPDATE background_jobs SET status = 'COMPLETED' WHERE status = 'RUNNING'")
    with pytest.raises(Exception, match="can't go from COMPLETED to PENDING"):
        execute(adopted, "UPDATE background_jobs SET status = 'PENDING'")


def test_a_row_of_nobodys_is_reported(empty_database: Engine) -> None:
    """An orphan can't be given a company; the migration goes on, and the user sees none of it."""
    execute(
        empty_database,
        APPLICATION + "INSERT INTO schedules (obligation_id, frequency) VALUES (NULL, 'DAILY');",
    )
    migrations.upgrade("ecocomply", empty_database)
    assert value(empty_database, "SELECT row_count FROM adoption_findings WHERE subject = 'company_id'") == 1
    assert value(empty_database, "SELECT count(*) FROM schedules WHERE company_id IS NULL") == 1
    # Once it is repaired the row is as any other.
    execute(empty_database, "DELETE FROM schedules WHERE company_id IS NULL")


def test_the_integrity_of_what_is_new_holds(adopted: Engine) -> None:
    """A schedule of one company under the other's obligation is refused from now on."""
    with pytest.raises(Exception, match="is not of company"):
        execute(
            adopted,
            """INSERT INTO deadlines (obligation_id, company_id, due_date)
               SELECT o.id, c.id, '2199-05-31' FROM obligations AS o JOIN companies AS c ON c.id <> o.company_id""",
        )
