"""The tables keep what the jobs rely on: words of lists, owners, keys that make a thing happen once."""

from __future__ import annotations

import re
from typing import Any

import pytest
from sqlalchemy import CheckConstraint, Connection, text
from sqlalchemy.exc import IntegrityError

from include.ecocomply.tables import METADATA
from include.ecocomply.tables.notifications import PRIORITIES
from stack import schema_page
from tests.ecocomply import catalog
from tests.ecocomply.catalog import INTERNAL, OWNERLESS, SHARED
from tests.ecocomply.conftest import TODAY

LISTS = [
    (table.name, check.info["column"])
    for table in METADATA.sorted_tables
    for check in sorted(table.constraints, key=lambda check: str(check.name))
    if isinstance(check, CheckConstraint) and "words" in check.info
]

# What is done once, by the table that holds it to that.
ONCE = (
    "aer_documents", "audit_packs", "compliance_clocks_universal", "consultant_client_assignments",
    "consultant_dashboard", "cross_sell_triggers", "deadlines", "digests", "email_attempts", "escalations",
    "evidence_gaps", "extraction_answers", "extraction_logs", "notification_preferences", "notifications",
    "obligation_evidence_links", "pack_sharing", "permit_workflows", "push_subscriptions",
    "recurrence_trigger_executions", "review_queue_escalation_history", "review_queue_items", "risk_scores",
    "schedules", "tasks", "user_roles", "user_site_assignments", "validation_executions",
)  # fmt: skip


def one(connection: Connection, statement: str, **binds: Any) -> Any:
    """Return the only value of a statement."""
    return connection.execute(text(statement), binds).scalar_one()


def refused(connection: Connection, statement: str, **binds: Any) -> str:
    """Return the SQLSTATE by which the database refuses a statement; '' if it does not."""
    try:
        with connection.begin_nested():
            connection.execute(text(statement), binds)
    except IntegrityError as error:
        return str(getattr(error.orig, "sqlstate", None))
    return ""


@pytest.mark.parametrize(("table", "column"), LISTS)
def test_a_word_of_no_list_is_refused(connection: Connection, table: str, column: str) -> None:
    """Applications write these columns too: a word that no job knows would make its row invisible to all."""
    statement = f"UPDATE {table} SET {column} = 'NO_SUCH_WORD' WHERE ctid = (SELECT min(ctid) FROM {table})"
    assert refused(connection, statement) == "23514"


def test_every_status_has_its_list(connection: Connection) -> None:
    """A status column without a check takes any typing error."""
    columns = connection.execute(
        text("""
            SELECT c.relname, a.attname FROM pg_class AS c
            JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
            WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND c.relname <> 'queue_audit'
              AND a.atttypid = 'text'::regtype AND a.attname ~ '(^|_)(status|frequency|channel|phase|band|severity)$'
        """)
    ).all()
    assert len(columns) > 30
    assert {tuple(row) for row in columns} - set(LISTS) == set()


def test_every_row_belongs_to_a_company(connection: Connection) -> None:
    """Children too: a policy can look at the row alone, and a table that is added is held to it by its column."""
    owned = catalog.tables(connection)
    others = connection.execute(
        text("SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'")
    ).scalars()
    assert set(others) - set(owned) == SHARED | INTERNAL
    nullable = connection.execute(
        text("""
            SELECT attrelid::regclass::text FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
            WHERE a.attname = 'company_id' AND c.relkind = 'r' AND NOT a.attnotnull
        """)
    ).scalars()
    assert set(nullable) == OWNERLESS
    assert len(owned) > 50


def test_row_level_security_is_forced_for_every_company_table(connection: Connection) -> None:
    """Unforced, the login that made the tables would see everything whatever the policies say."""
    found = connection.execute(
        text("SELECT relname, relrowsecurity AND relforcerowsecurity FROM pg_class WHERE relkind = 'r'")
    )
    forced = {row[0] for row in found if row[1]}
    assert forced == set(catalog.tables(connection))


def test_every_reference_has_an_index(connection: Connection) -> None:
    """A delete of a company, or a look for a row's children, must not read whole tables; users are never deleted."""
    begun = {
        (row[0], row[1])
        for row in connection.execute(
            text("""
                SELECT i.indrelid::regclass::text, a.attname
                FROM pg_index AS i JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
                WHERE i.indpred IS NULL
            """)
        )
    }
    missing = [
        found
        for found in catalog.references(connection)
        if (found.table, found.column) not in begun
        and not (found.parent == "users" and found.on_delete == "n")
    ]
    assert missing == []


def test_no_row_names_a_row_of_another_company(connection: Connection) -> None:
    """A deadline of one company under the obligation of another would tell each of the other's affairs."""
    owned = catalog.tables(connection)
    between = [
        found
        for found in catalog.references(connection)
        if found.table in owned and found.parent in owned and found.parent not in ("companies", "users")
    ]
    assert len(between) > 60
    # The service's own books; and a digest is its reader's, whose notifications may be of clients.
    books = {
        ("background_jobs", "dead_letter_queue_id"),
        ("dead_letter_queue", "job_id"),
        ("notifications", "digest_id"),
    }
    let_through = set()
    for table, column, parent, _ in between:
        statement = f"""
            UPDATE {table} AS t SET {column} = (
                SELECT p.id FROM {parent} AS p WHERE p.company_id <> t.company_id ORDER BY p.id LIMIT 1
            ) WHERE t.ctid = (SELECT min(ctid) FROM {table})
        """
        if refused(connection, statement) != "23503":
            let_through.add((table, column))
    assert let_through == books


@pytest.mark.parametrize("table", ONCE)
def test_what_is_done_once_is_held_to_it(connection: Connection, table: str) -> None:
    """Rulings 2, R4: a job that runs twice, or beside itself, finds that the database does not take it twice."""
    new = "" if table == "email_attempts" else "|| jsonb_build_object('id', gen_random_uuid())"
    statement = f"""
        INSERT INTO {table}
        SELECT made.* FROM (SELECT * FROM {table} ORDER BY ctid LIMIT 1) AS t
        CROSS JOIN LATERAL jsonb_populate_record(NULL::{table}, to_jsonb(t) {new}) AS made
    """
    assert refused(connection, statement) == "23505"


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("escalations", "resolved_at = now()"),
        ("evidence_gaps", "resolved_at = now()"),
        ("dead_letter_queue", "resolved_at = now()"),
        ("obligation_evidence_links", "unlinked_at = now()"),
        ("review_queue_items", "review_status = 'CONFIRMED'"),
        ("permit_workflows", "expiry_date = expiry_date + 365"),
    ],
)
def test_what_is_over_may_begin_again(connection: Connection, table: str, change: str) -> None:
    """A gap that was closed can open anew; a key over all rows would hide the second one."""
    connection.execute(text(f"CREATE TEMP TABLE first_row AS SELECT * FROM {table} ORDER BY ctid LIMIT 1"))
    connection.execute(text(f"UPDATE {table} SET {change} WHERE id = (SELECT id FROM first_row)"))
    connection.execute(text("UPDATE first_row SET id = gen_random_uuid()"))
    assert refused(connection, f"INSERT INTO {table} SELECT * FROM first_row") == ""


def test_a_child_takes_its_company_and_site_from_what_it_names(connection: Connection) -> None:
    """The specification's own statements name no company: an application goes on writing them as they are."""
    obligation = connection.execute(text("SELECT * FROM obligations ORDER BY id LIMIT 1")).one()
    made = connection.execute(
        text("""
            INSERT INTO deadlines (obligation_id, due_date, status) VALUES (:id, '2031-01-01', 'PENDING')
            RETURNING company_id, site_id
        """),
        {"id": obligation.id},
    ).one()
    assert tuple(made) == (obligation.company_id, obligation.site_id)


def test_a_notification_without_a_company_is_its_readers(connection: Connection) -> None:
    """8.1 and 10.1 insert by user alone."""
    user = connection.execute(text("SELECT id, company_id FROM users ORDER BY id LIMIT 1")).one()
    statement = """
        INSERT INTO notifications (user_id, recipient_email, notification_type, priority, subject, body_text)
        VALUES (:user, 'a@b.example', 'ESCALATION_ALERT', :priority, 's', 'b') RETURNING company_id, urgency
    """
    for place, priority in enumerate(PRIORITIES, start=1):
        made = connection.execute(text(statement), {"user": user.id, "priority": priority}).one()
        assert tuple(made) == (user.company_id, place)


def test_a_clock_whose_date_changes_has_sent_no_reminder(connection: Connection) -> None:
    """A permit that is prolonged is reminded of anew, whoever moved the date."""
    connection.execute(text("UPDATE compliance_clocks_universal SET reminders_sent = '{90}'"))
    connection.execute(
        text("UPDATE compliance_clocks_universal SET target_date = target_date + (days_remaining > 100)::int")
    )
    assert one(
        connection,
        "SELECT bool_and((reminders_sent = '{}') = (days_remaining > 100)) FROM compliance_clocks_universal",
    )


def test_a_consignment_note_that_changes_is_checked_anew(connection: Connection) -> None:
    """11.1 looks at new and at updated notes; what it writes itself is no update of the note."""
    changed = "UPDATE consignment_notes SET {} WHERE pre_validation_status = 'PASSED'"
    count = "SELECT count(*) FROM consignment_notes WHERE pre_validation_status = 'NOT_VALIDATED'"
    before = one(connection, count)
    connection.execute(text(changed.format("pre_validated_at = now(), quantity = quantity")))
    assert one(connection, count) == before
    done = connection.execute(text(changed.format("quantity = quantity + 1"))).rowcount
    assert one(connection, count) == before + done
    assert done


def test_the_hours_of_a_generator_come_from_one_place(connection: Connection) -> None:
    """Recorded hours win; a meter's count, once approved, for generators that have none."""
    sources = dict(
        connection.execute(
            text("""
                SELECT g.id, array[
                    (SELECT sum(hours_recorded) FROM run_hour_records AS r WHERE r.generator_id = g.id),
                    (SELECT sum(runtime_hours) FROM runtime_monitoring AS m
                     WHERE m.generator_id = g.id AND m.validation_status = 'APPROVED')]
                FROM generators AS g
            """)
        ).all()
    )
    seen = dict(
        connection.execute(text("SELECT generator_id, sum(hours) FROM generator_hours GROUP BY 1")).all()
    )
    assert seen == {generator: recorded or metered for generator, (recorded, metered) in sources.items()}
    assert len(seen) == 18
    connection.execute(
        text("""
            INSERT INTO run_hour_records (generator_id, recording_date, hours_recorded)
            SELECT id, :day, 1 FROM generators
        """),
        {"day": TODAY},
    )
    after = dict(
        connection.execute(text("SELECT generator_id, sum(hours) FROM generator_hours GROUP BY 1")).all()
    )
    assert after == {generator: (recorded or 0) + 1 for generator, (recorded, _) in sources.items()}


def test_the_dashboard_can_be_refreshed_beside_its_readers(connection: Connection) -> None:
    """CONCURRENTLY wants a unique index over plain columns, also for clocks without a site or a module."""
    connection.execute(
        text("""
            INSERT INTO compliance_clocks_universal (company_id, entity_type, entity_id, clock_type, target_date)
            SELECT id, 'company', id, 'OTHER', '2030-01-01' FROM companies
        """)
    )
    for _ in range(2):
        connection.execute(text("REFRESH MATERIALIZED VIEW CONCURRENTLY compliance_clock_dashboard"))
    assert one(connection, "SELECT sum(total_clocks) FROM compliance_clock_dashboard") == one(
        connection, "SELECT count(*) FROM compliance_clocks_universal"
    )
    assert one(connection, "SELECT count(*) FROM compliance_clock_dashboard WHERE site_id IS NULL") == 3


def test_the_page_draws_every_table() -> None:
    """An area that is added without its module in AREAS would be missing from it without a word."""
    drawn = set(re.findall(r"^    (\w+) \{$", schema_page.page(), re.MULTILINE))
    assert drawn == set(METADATA.tables) - {"adoption_findings", "baseline"}
