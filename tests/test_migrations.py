"""Every history leads from anything that may be found to the tables that the code expects."""

from __future__ import annotations

import subprocess
import sys
import threading
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Engine, exc, inspect, text

from include import migrations
from include.errors import BadInput, Transient
from include.mail import Message
from include.run import EngineDatabase
from include.stored_message import unpack

EARLIER = [
    (system, revision)
    for system in migrations.systems()
    for revision in [None, *migrations.revisions(system)[:-1]]
]

USER = "00000000-0000-4000-8000-000000000001"
SESSION = "00000000-0000-4000-8000-000000000010"

# What was written by the first revision of each system: columns that every later one still has.
ROWS = {
    "clearpath": f"""
INSERT INTO users (id, email, full_name) VALUES ('{USER}', 'ana@example.test', 'Ana Núñez');
INSERT INTO contractors (name, status, cnrpp_expiry_date) VALUES ('Borea Radon', 'active', '2020-01-31');
INSERT INTO test_sessions (id, user_id, status, activated_at)
    VALUES ('{SESSION}', '{USER}', 'active', '2026-05-01T15:00Z');
INSERT INTO results (test_session_id, value_bq_m3) VALUES ('{SESSION}', 148);
INSERT INTO certificates (test_session_id, certificate_number) VALUES ('{SESSION}', 'CP-1');
INSERT INTO email_log (user_id, test_session_id, email_type, status, retry_count)
    VALUES ('{USER}', '{SESSION}', 'day_30', 'failed', 2), ('{USER}', NULL, 'welcome', 'sent', 0);
INSERT INTO jobs_state (job_name, last_run_at) VALUES ('emailQueue', '2026-05-01T15:00Z');
""",
    "leadmetrics": """
INSERT INTO registration_session (id, email, "currentStage") VALUES
    ('s1', 'ana@example.test', 'step_2'), ('s2', NULL, 'complete');
INSERT INTO scheduled_task ("taskType", payload, "scheduledAt") VALUES
    ('signup.reminder.early', '{"sessionId": "s1"}', '2026-05-01T15:00Z'), ('unknown', '{}', '-infinity');
UPDATE scheduled_task SET status = 'running', attempts = 1 WHERE "taskType" = 'unknown';
INSERT INTO notification_outbox (dedupe_key, tenant_id, template_slug, recipient, data, status) VALUES
    ('signup-reminder-early__s1', 's1', 'signup-reminder-early', 'ana@example.test', '{}', 'unknown'),
    ('signup-reminder-late__s1', 's1', 'signup-reminder-late', 'ana@example.test', '{}', 'pending');
INSERT INTO notification_pause (service, paused_until, reason) VALUES ('leadmetrics_email', 'infinity', 'quota');
""",
    "arcvest": """
INSERT INTO job_queue (job_type) VALUES ('news_scan');
INSERT INTO job_batches (batch_date, batch, job_type, job_id)
    VALUES ('2026-05-01', 'morning', 'news_scan', gen_random_uuid());
INSERT INTO idea_queue (source, url, title) VALUES ('news', 'https://news.test/1', 'One');
INSERT INTO content_calendar (title, html, excerpt, image_prompt) VALUES ('t', '<p>h</p>', 'e', 'i');
INSERT INTO activity_log (type) VALUES ('published');
INSERT INTO scan_state (source) VALUES ('https://news.test/feed');
INSERT INTO sync_slots (job, slot) VALUES ('arcvest_ads_sync', '2026-05-01T12:00Z');
INSERT INTO baseline (name) VALUES ('b');
""",
    "nifya": f"""
INSERT INTO users (id, email) VALUES ('user-1', 'ana@example.test'), ('user-2', NULL);
INSERT INTO subscriptions (id, user_id, type_id, prompts) VALUES ('{SESSION}', 'user-1', 'boe', '["beca"]');
INSERT INTO subscription_processing (subscription_id, status) VALUES ('{SESSION}', 'completed');
INSERT INTO notifications (user_id, subscription_id, title, source_url)
    VALUES ('user-1', '{SESSION}', 'Becas', 'https://boe.test/1');
INSERT INTO scheduled_jobs (type, data, schedule, next_run_at)
    VALUES ('process-subscription', '{{"subscriptionId": "{SESSION}"}}', NULL, '2026-05-01T15:00Z'),
           ('send-digest-emails', '{{"hourOfDay": "09"}}', '{{"type": "daily", "hourOfDay": 9}}',
            '2026-05-01T15:00Z');
UPDATE scheduled_jobs SET status = 'processing';
UPDATE scheduled_jobs SET status = 'completed' WHERE type = 'process-subscription';
INSERT INTO digests (user_id, due_at) VALUES ('user-1', '2026-05-01T07:00Z'), ('user-1', '2026-05-01T16:00Z');
""",
    "ecocomply": f"""
INSERT INTO companies (id, name) VALUES ('{SESSION}', 'Acme');
INSERT INTO sites (company_id, name) VALUES ('{SESSION}', 'Leeds'), ('{SESSION}', 'York');
INSERT INTO users (id, company_id, email) VALUES ('{USER}', '{SESSION}', 'ana@example.test');
INSERT INTO notifications (user_id, company_id, notification_type, channel, subject, body_text, status) VALUES
    ('{USER}', '{SESSION}', 'SYSTEM_ALERT', 'EMAIL', 'S', 'B', 'PENDING'),
    ('{USER}', '{SESSION}', 'SYSTEM_ALERT', 'SMS', 'S', 'B', 'FAILED');
""",
    "platform": """
INSERT INTO run_summary (dag_id, run_id, as_of, state) VALUES ('d', 'r', '2026-05-01T15:00Z', 'failed');
INSERT INTO run_step (dag_id, run_id, task_id, try_number, state) VALUES ('d', 'r', 't', 1, 'failed');
INSERT INTO preview (dag_id, run_id, as_of, result) VALUES ('d', 'r', '2026-05-01T15:00Z', '{}');
INSERT INTO alert (cause, kind, subject, body) VALUES ('c', 'task', 's', 'b');
INSERT INTO outage (service, reason) VALUES ('s', 'r');
INSERT INTO baseline (name) VALUES ('b');
""",
}

# As Prisma makes it: enum types that lack words of the specification, instants without a zone, unique
# indexes in place of constraints, a column and a table of the application's own.
PRISMA = f"""
CREATE TYPE "SessionStatus" AS ENUM ('pending', 'active', 'mailed', 'complete', 'cancelled');
CREATE TYPE "EmailStatus" AS ENUM ('queued', 'sent', 'failed');
CREATE TYPE "EmailType" AS ENUM ('day_30', 'results_prompt', 'welcome');
CREATE TYPE "CertificateStatus" AS ENUM ('valid', 'expired');
CREATE TABLE users (id uuid PRIMARY KEY, email varchar(200) NOT NULL, full_name text,
    created_at timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP);
CREATE UNIQUE INDEX users_email_key ON users (email);
CREATE TABLE test_sessions (id uuid PRIMARY KEY, user_id uuid NOT NULL REFERENCES users (id),
    status "SessionStatus" NOT NULL DEFAULT 'pending', clearpath_order_id text, kit_serial_number text,
    activated_at timestamp(3), expected_completion_date timestamp(3), notes text);
CREATE TABLE email_log (id uuid PRIMARY KEY, user_id uuid NOT NULL REFERENCES users (id),
    test_session_id uuid REFERENCES test_sessions (id), email_type "EmailType" NOT NULL,
    status "EmailStatus" NOT NULL DEFAULT 'queued', scheduled_at timestamp(3) NOT NULL,
    sent_at timestamp(3), retry_count integer, template_version integer NOT NULL);
CREATE TABLE certificates (id uuid PRIMARY KEY, test_session_id uuid NOT NULL, certificate_number text,
    status "CertificateStatus" NOT NULL, valid_until date, created_at timestamptz NOT NULL DEFAULT now());
CREATE UNIQUE INDEX certificates_certificate_number_key ON certificates (certificate_number);
CREATE TABLE jobs_state (id serial PRIMARY KEY, job_name text NOT NULL);
CREATE UNIQUE INDEX jobs_state_job_name_key ON jobs_state (job_name);
CREATE TABLE app_settings (key text PRIMARY KEY, value text);

INSERT INTO users (id, email) VALUES ('{USER}', 'ana@example.test');
INSERT INTO test_sessions (id, user_id, status, activated_at, expected_completion_date, notes)
    VALUES ('{SESSION}', '{USER}', 'active', '2026-05-01 15:00', '2026-08-01', 'basement');
INSERT INTO email_log
    SELECT gen_random_uuid(), '{USER}', '{SESSION}', 'day_30', 'sent', '2026-05-31 15:00', '2026-05-31 15:15',
           NULL, n
    FROM generate_series(1, 3) AS n;
INSERT INTO certificates (id, test_session_id, certificate_number, status, valid_until)
    SELECT gen_random_uuid(), '{SESSION}', 'CP-' || n, 'valid', '2028-01-01' FROM generate_series(1, 2) AS n;
INSERT INTO jobs_state (job_name) VALUES ('emailQueue');
INSERT INTO app_settings VALUES ('theme', 'dark');
"""

# Grown by hand: text statuses with words of its own, no keys, no defaults, an orphan, duplicates.
BY_HAND = f"""
CREATE TABLE users (id uuid, email text, full_name text);
CREATE TABLE contractors (id uuid PRIMARY KEY, name text, status text, cnrpp_expiry_date date);
CREATE TABLE test_sessions (id uuid PRIMARY KEY, user_id uuid, status varchar(20), contractor_id uuid,
    expected_completion_date date);
CREATE TABLE results (id uuid PRIMARY KEY, test_session_id uuid, value_bq_m3 double precision);
CREATE TABLE certificates (id uuid PRIMARY KEY, test_session_id uuid, status text, valid_until date);
CREATE TABLE email_log (id uuid PRIMARY KEY, user_id uuid, test_session_id uuid, email_type text, status text,
    scheduled_at timestamptz, retry_count integer);
INSERT INTO users VALUES ('{USER}', 'ana@example.test', 'Ana');
INSERT INTO contractors VALUES
    (gen_random_uuid(), 'Long gone', 'active', '2019-06-30'),
    (gen_random_uuid(), 'Long gone and known', 'inactive', '2019-06-30'),
    (gen_random_uuid(), 'Current', 'active', '2199-06-30');
INSERT INTO test_sessions VALUES
    ('{SESSION}', '{USER}', 'mailed', NULL, '2026-08-01'),
    (gen_random_uuid(), gen_random_uuid(), 'archived', NULL, NULL);
INSERT INTO results SELECT gen_random_uuid(), '{SESSION}', v FROM unnest(ARRAY[148.0, -1.0]) AS v;
INSERT INTO certificates
    SELECT gen_random_uuid(), '{SESSION}', 'valid', '2028-01-01' FROM generate_series(1, 3);
INSERT INTO email_log
    SELECT gen_random_uuid(), '{USER}', NULL, 'day_30', 'sent', '2026-05-31T15:00Z', NULL
    FROM generate_series(1, 2);
INSERT INTO email_log SELECT gen_random_uuid(), '{USER}', NULL, 'welcome', 'bounced', now(), NULL;
"""


def script(engine: Engine, statements: str) -> None:
    """Run several statements in one transaction."""
    with engine.begin() as connection:
        raw: Any = connection.connection.driver_connection
        raw.execute(statements)


def values(engine: Engine, statement: str) -> list[Any]:
    """Return the first column of a query."""
    with engine.connect() as connection:
        return list(connection.execute(text(statement)).scalars())


def snapshot(engine: Engine, tables: Iterable[str], columns: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return every row of some tables as text, in the named columns alone, whatever their types."""
    with engine.connect() as connection:
        connection.exec_driver_sql("SET LOCAL timezone = 'UTC'")
        return {
            table: sorted(
                str([_plain(row[column]) for column in columns[table]])
                for row in connection.exec_driver_sql(f'SELECT * FROM "{table}"').mappings()
            )
            for table in tables
        }


def _plain(value: Any) -> str:
    # An instant gains its zone and a midnight becomes its date: the same moment, said in another type.
    return str(value).replace("+00:00", "").removesuffix(" 00:00:00").removesuffix(".0")


def adopt(engine: Engine, statements: str) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Make an application's database, bring it to head, and return its rows before and after."""
    script(engine, statements)
    seen = inspect(engine)
    columns = {
        table: [column["name"] for column in seen.get_columns(table) if column["name"] != "retry_count"]
        for table in seen.get_table_names()
    }
    before = snapshot(engine, columns, columns)
    migrations.upgrade("clearpath", engine)
    return before, snapshot(engine, columns, columns)


def findings(engine: Engine) -> dict[tuple[str, str], int | None]:
    """Return what the adoption reported: rows by table and subject."""
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT table_name, subject, row_count FROM adoption_findings")).all()
    return {(row.table_name, row.subject): row.row_count for row in rows}


def row_counts(engine: Engine) -> dict[str, int]:
    """Return how many rows each table holds."""
    return {
        table: len(values(engine, f"SELECT 1 FROM {table}")) for table in inspect(engine).get_table_names()
    }


def catalogue(engine: Engine) -> set[str]:
    """Return a line for every column, constraint and index of a database, in Postgres's own words."""
    with engine.connect() as connection:
        lines = connection.execute(
            text("""
                SELECT format('%s.%s %s null=%s default=%s', c.relname, a.attname,
                              format_type(a.atttypid, a.atttypmod), NOT a.attnotnull,
                              pg_get_expr(d.adbin, d.adrelid))
                FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
                LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
                WHERE n.nspname = 'public' AND c.relkind = 'r' AND c.relname NOT LIKE 'alembic%'
                UNION ALL
                SELECT format('%s %s valid=%s %s', conrelid::regclass, conname, convalidated,
                              pg_get_constraintdef(oid))
                FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype <> 'n'
                    AND conrelid::regclass::text NOT LIKE 'alembic%'
                UNION ALL
                SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename NOT LIKE 'alembic%'
            """)
        ).scalars()
        return set(lines)


@pytest.mark.parametrize(("system", "revision"), EARLIER)
def test_up_from_every_earlier_revision_keeps_the_rows(
    empty_database: Engine, system: str, revision: str | None
) -> None:
    """A database that was last migrated long ago must come up with its rows; a fresh one hides that."""
    before: dict[str, int] = {}
    if revision is not None:
        migrations.upgrade(system, empty_database, revision)
        assert migrations.current(system, empty_database) == revision
        script(empty_database, ROWS[system])
        before = row_counts(empty_database)
        assert sum(before.values()) > 5
    migrations.upgrade(system, empty_database)
    assert migrations.current(system, empty_database) == migrations.revisions(system)[-1]
    after = row_counts(empty_database)
    assert {table: after[table] for table in before} == before


@pytest.mark.parametrize("system", migrations.systems())
def test_the_migrated_database_is_what_the_tables_say(
    databases: Any, empty_database: Engine, system: str
) -> None:
    """The code reads tables.py, the database comes from the history: they drift apart unless compared.

    Alembic compares neither checks nor the conditions of indexes, so Postgres's catalogue is compared too.
    """
    migrations.upgrade(system, empty_database)
    with empty_database.connect() as connection:
        options = {
            "version_table": migrations.version_table(system),
            "compare_type": True,
            "compare_server_default": True,
        }
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, migrations.tables(system)) == []
    name, created = databases.make(None)
    try:
        migrations.tables(system).create_all(created)
        assert catalogue(empty_database) == catalogue(created)
    finally:
        databases.drop(name, created)


def test_a_claim_of_an_earlier_revision_goes_out_as_it_was(empty_database: Engine) -> None:
    """Claimed before an upgrade, sent after it: a resumed batch must be the same request, byte for byte."""
    migrations.upgrade("clearpath", empty_database, "0003")
    message = Message(
        sender="a@b.test", to="c@d.test", subject='Ñ "q"', text="one\ntwo\t\\ 🏠", html="<p>é</p>"
    )
    batch, mail = uuid.uuid4(), uuid.uuid4()
    script(
        empty_database,
        f"""
INSERT INTO users (id) VALUES ('{USER}');
INSERT INTO email_batches (id, provider, run_id) VALUES ('{batch}', 'clearpath_email', 'r');
INSERT INTO email_log (id, user_id, email_type, batch_id) VALUES ('{mail}', '{USER}', 'day_30', '{batch}');
""",
    )
    with empty_database.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO email_attempts (batch_id, position, email_id, message) VALUES (:batch, 1, :mail, :json)"
            ),
            {"batch": batch, "mail": mail, "json": message.to_json().decode()},
        )
    migrations.upgrade("clearpath", empty_database)
    (stored,) = values(empty_database, "SELECT message FROM email_attempts WHERE frame IS NULL")
    assert stored == message.to_json().decode()
    assert unpack(stored, None, {}) == message


@pytest.mark.parametrize("system", migrations.systems())
def test_upgrading_twice_is_upgrading_once(empty_database: Engine, system: str) -> None:
    """Every start of the stack migrates; the second time must find nothing to do."""
    migrations.upgrade(system, empty_database)
    before = catalogue(empty_database)
    migrations.upgrade(system, empty_database)
    assert catalogue(empty_database) == before


def test_two_processes_that_upgrade_at_once_both_succeed(empty_database: Engine) -> None:
    """Several components migrate when they start, at the same moment: one works, the other waits."""
    ready = threading.Barrier(2)

    def go() -> None:
        ready.wait(timeout=10)
        migrations.upgrade("clearpath", empty_database)

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(go), pool.submit(go)]:
            done.result(timeout=60)
    assert migrations.current("clearpath", empty_database) == migrations.revisions("clearpath")[-1]


def test_a_table_that_an_application_holds_makes_the_upgrade_give_up(empty_database: Engine) -> None:
    """A migration that queues for a lock makes every query of the application queue behind it."""
    migrations.upgrade("clearpath", empty_database, "0001")
    with empty_database.connect() as application:
        application.execute(text("SELECT * FROM email_log"))
        with pytest.raises(Transient, match="lock timeout"):
            migrations.upgrade("clearpath", empty_database, lock_seconds=0.2)
    assert migrations.current("clearpath", empty_database) == "0001"
    migrations.upgrade("clearpath", empty_database)


def test_a_revision_that_is_refused_leaves_the_ones_before_it(empty_database: Engine) -> None:
    """Each revision commits by itself: a long adoption need not start anew when a later one is stopped."""
    script(empty_database, "CREATE TABLE email_batches (id text PRIMARY KEY)")
    with pytest.raises(BadInput, match=r"email_batches\.id is TEXT"):
        migrations.upgrade("clearpath", empty_database)
    assert migrations.current("clearpath", empty_database) == "0001"
    script(empty_database, "DROP TABLE email_batches")
    migrations.upgrade("clearpath", empty_database)


def test_an_unknown_system_or_revision_is_named(empty_database: Engine) -> None:
    """A typing error must not pass for a database that needs nothing."""
    with pytest.raises(BadInput, match="'clearpaht' is not a system"):
        migrations.upgrade("clearpaht", empty_database)
    with pytest.raises(BadInput, match="'0999'"):
        migrations.upgrade("clearpath", empty_database, "0999")


@pytest.fixture(params=["UTC", "Europe/Madrid"])
def zoned_database(databases: Any, request: pytest.FixtureRequest) -> Iterator[Engine]:
    """Make an empty database whose sessions are in a zone."""
    name, engine = databases.make(None, request.param)
    yield engine
    databases.drop(name, engine)


def test_prismas_database_is_adopted_without_losing_a_row(zoned_database: Engine) -> None:
    """Ruling 15, T4: the application keeps its enum types, its rows and its tables, and goes on writing."""
    before, after = adopt(zoned_database, PRISMA)
    assert after == before
    found = findings(zoned_database)
    assert found["email_log", "uq_email_log_sequenced_once"] == 2
    assert found["certificates", "uq_certificates_test_session_id"] == 1
    assert ("email_log", "template_version") in found
    assert found["email_log", "retry_count"] == 3
    # Read as UTC, whatever the zone of the session.
    assert values(zoned_database, "SELECT activated_at = '2026-05-01T15:00Z' FROM test_sessions") == [True]
    # The application's type stays and knows the specification's words now.
    assert values(zoned_database, "SELECT pg_typeof(status)::text FROM email_log LIMIT 1") == [
        '"EmailStatus"'
    ]
    script(zoned_database, "UPDATE email_log SET status = 'abandoned' WHERE template_version = 3")
    script(zoned_database, "UPDATE test_sessions SET status = 'results_pending'")


def test_a_database_grown_by_hand_is_adopted_without_losing_a_row(empty_database: Engine) -> None:
    """Ruling 15: text statuses, words of its own, orphans, negative values: reported, kept, not enforced."""
    before, after = adopt(empty_database, BY_HAND)
    assert after == before
    found = findings(empty_database)
    assert found["test_sessions", "status"] == 1
    assert found["email_log", "status"] == 1
    assert found["results", "ck_results_value_bq_m3"] == 1
    assert found["test_sessions", "fk_test_sessions_user_id"] == 1
    assert found["certificates", "uq_certificates_test_session_id"] == 2
    assert found["results", "uq_results_test_session_id"] == 1
    # The application goes on with its word; a word that nobody used yet is refused.
    script(empty_database, "UPDATE test_sessions SET status = 'archived'")
    with pytest.raises(psycopg.errors.CheckViolation):
        script(empty_database, "UPDATE test_sessions SET status = 'archvied'")


def test_a_key_that_old_rows_break_holds_for_new_rows(empty_database: Engine) -> None:
    """A unique key is what makes a job safe to run twice; old duplicates must not cost it."""
    adopt(empty_database, BY_HAND)
    assert (
        len(values(empty_database, "SELECT 1 FROM certificates WHERE adoption_duplicate_of IS NOT NULL")) == 2
    )
    # Each names a row that is kept, and no younger.
    kept = """SELECT c.id FROM certificates AS c JOIN certificates AS k ON k.id::text = c.adoption_duplicate_of
        WHERE k.adoption_duplicate_of IS NOT NULL OR k.created_at > c.created_at"""
    assert values(empty_database, kept) == []
    for statement in (
        f"INSERT INTO certificates (test_session_id) VALUES ('{SESSION}')",
        f"INSERT INTO results (test_session_id) VALUES ('{SESSION}')",
        f"INSERT INTO email_log (user_id, email_type, status) VALUES ('{USER}', 'day_30', 'sent')",
    ):
        with pytest.raises(psycopg.errors.UniqueViolation):
            script(empty_database, statement)
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        script(empty_database, "INSERT INTO test_sessions (user_id) VALUES (gen_random_uuid())")


def test_what_was_past_at_adoption_is_marked_as_seen(empty_database: Engine) -> None:
    """Ruling 15: the first run on a live database must not alert about all its history."""
    adopt(empty_database, BY_HAND)
    assert values(empty_database, "SELECT name FROM baseline") == ["adoption"]
    assert values(
        empty_database,
        "SELECT c.name FROM cnrpp_alerts a JOIN contractors c ON c.id = a.contractor_id "
        "WHERE a.past_at_adoption AND a.sent_at IS NULL",
    ) == ["Long gone"]
    assert values(empty_database, "SELECT past_at_adoption FROM certificates") == [True] * 3
    assert values(empty_database, "SELECT status FROM contractors WHERE name = 'Long gone'") == ["active"]


def test_a_database_of_our_own_has_no_history(clearpath: EngineDatabase) -> None:
    """A baseline in a fresh database would silence the alerts of its first day."""
    assert values(clearpath.engine, "SELECT name FROM baseline") == []
    assert findings(clearpath.engine) == {}


@pytest.mark.parametrize(
    ("statements", "named"),
    [
        ("CREATE TABLE users (id text PRIMARY KEY)", "users.id is TEXT, which can't serve as UUID"),
        (
            """CREATE TABLE test_sessions (id uuid PRIMARY KEY, expected_completion_date timestamp);
               INSERT INTO test_sessions VALUES (gen_random_uuid(), '2026-05-01 07:00')""",
            "test_sessions.expected_completion_date is TIMESTAMP WITHOUT TIME ZONE and holds times of day",
        ),
        (
            f"CREATE TABLE users (id uuid);INSERT INTO users VALUES ('{USER}'), ('{USER}'), (NULL)",
            "users has 1 rows without id and 1 that repeat one",
        ),
        (
            """CREATE TABLE users (id uuid PRIMARY KEY, created_at timestamp);
               CREATE VIEW people AS SELECT created_at FROM users""",
            "users.created_at is TIMESTAMP .* can't become .*used by a view",
        ),
    ],
)
def test_a_database_that_cannot_be_adopted_is_left_as_it_was(
    empty_database: Engine, statements: str, named: str
) -> None:
    """A half-adopted database would be worse than none: the refusal names the column and changes nothing."""
    script(empty_database, statements)
    before = catalogue(empty_database)
    with pytest.raises(BadInput, match=named):
        migrations.upgrade("clearpath", empty_database)
    assert catalogue(empty_database) == before
    assert migrations.current("clearpath", empty_database) is None


def test_a_notification_follows_every_insert_of_certificates(clearpath: EngineDatabase) -> None:
    """Rendering starts by this event; one insert of many rows is one event, and nothing else is any."""
    url = clearpath.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url, autocommit=True) as listener:
        listener.execute("LISTEN clearpath_certificates")
        script(
            clearpath.engine,
            f"INSERT INTO users (id) VALUES ('{USER}');"
            f"INSERT INTO test_sessions (user_id) SELECT '{USER}' FROM generate_series(1, 3);"
            "INSERT INTO certificates (test_session_id) SELECT id FROM test_sessions;",
        )
        script(clearpath.engine, "UPDATE certificates SET status = 'expired'")
        heard = [notice.channel for notice in listener.notifies(timeout=0.3)]
    assert heard == ["clearpath_certificates"]


def test_null_sessions_are_equal_for_sequenced_mail_alone(clearpath: EngineDatabase) -> None:
    """The queue's rule: without a session two sequenced mails are copies, two of an application's are not."""
    once = f"INSERT INTO email_log (user_id, email_type, status) VALUES ('{USER}', '%s', 'sent')"
    script(clearpath.engine, f"INSERT INTO users (id) VALUES ('{USER}')")
    script(clearpath.engine, once % "welcome")
    script(clearpath.engine, once % "welcome")
    script(clearpath.engine, once % "day_30")
    with pytest.raises(psycopg.errors.UniqueViolation):
        script(clearpath.engine, once % "day_30")
    script(clearpath.engine, f"INSERT INTO email_log (user_id, email_type) VALUES ('{USER}', 'day_30')")
    with pytest.raises(psycopg.errors.UniqueViolation):
        script(clearpath.engine, "UPDATE email_log SET status = 'sent'")


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-0.1"])
def test_a_result_is_a_number_that_can_be_measured(clearpath: EngineDatabase, value: str) -> None:
    """S2: Postgres takes NaN for a numeric and puts it above every limit; the table must not."""
    script(clearpath.engine, f"INSERT INTO users (id) VALUES ('{USER}')")
    script(clearpath.engine, f"INSERT INTO test_sessions (id, user_id) VALUES ('{SESSION}', '{USER}')")
    statement = text(
        "INSERT INTO results (test_session_id, value_bq_m3) VALUES (:session, CAST(:value AS numeric))"
    )
    with pytest.raises(exc.IntegrityError), clearpath.engine.begin() as connection:
        connection.execute(statement, {"session": SESSION, "value": value})


def test_a_database_is_brought_up_from_the_command_line(empty_database: Engine) -> None:
    """On an Airflow without the embedded stack this is how a database is adopted; it shows no secret."""
    script(empty_database, PRISMA)
    url = empty_database.url.set(drivername="postgresql", password="hush-hush")
    done = subprocess.run(
        [sys.executable, "-m", "include.migrations", "clearpath", url.render_as_string(hide_password=False)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    newest = migrations.revisions("clearpath")[-1]
    with empty_database.connect() as connection:
        found = connection.execute(text("SELECT count(*) FROM adoption_findings")).scalar_one()
    assert found
    assert done.stdout == f"clearpath: at revision {newest}; adoption_findings has {found} rows\n"
    assert "hush" not in done.stdout + done.stderr
    assert migrations.current("clearpath", empty_database) == newest


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://almanac:hush-hush@127.0.0.1:1/x", "error: database: connection failed"),
        ("postgresql://almanac:hush-hush@127.0.0.1:none/x", "error: URL: can't be read"),
        ("hush-hush", "error: URL: can't be read"),
        ("mysql://almanac:hush-hush@127.0.0.1/x", "error: URL: 'mysql' is not postgresql"),
    ],
)
def test_a_url_that_leads_nowhere_is_one_clear_line_without_the_password(
    capsys: pytest.CaptureFixture[str], url: str, said: str
) -> None:
    """A person at a prompt reads one line, and a log of the prompt holds no secret."""
    assert migrations.main(["clearpath", url]) == 1
    printed = capsys.readouterr()
    assert printed.err.startswith(said)
    assert len(printed.err.splitlines()) == 1
    assert "hush" not in printed.out + printed.err


def test_the_command_line_names_the_systems(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever mistypes a system's name is told which there are."""
    with pytest.raises(SystemExit):
        migrations.main(["clearpaths", "postgresql://127.0.0.1:1/x"])
    said = capsys.readouterr().err
    assert all(system in said for system in migrations.systems())
