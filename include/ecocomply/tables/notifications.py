"""Notifications, how people want them, digests of them, and the claims by which mail goes out."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    Date,
    ForeignKey,
    Index,
    Integer,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    column,
    false,
    text,
    true,
)

from include.columns import Word, identity, instant, one_of, stamp
from include.ecocomply.tables.base import METADATA, belongs, holds, indexed, json, tenant
from include.queues.schema import claim_columns

CHANNELS = ("EMAIL", "SMS", "IN_APP", "PUSH")
PRIORITIES = ("LOW", "NORMAL", "HIGH", "CRITICAL", "URGENT")
"""From the least urgent to the most; `urgency` is the place, from 1."""
NOTIFICATION_STATUSES = (
    "PENDING", "QUEUED", "SENDING", "SENT", "DELIVERED", "FAILED", "RETRYING", "CANCELLED"
)  # fmt: skip
DELIVERY_STATUSES = ("PENDING", "SENT", "DELIVERED", "FAILED", "BOUNCED", "COMPLAINED")
ESCALATION_STATES = ("PENDING", *(f"ESCALATED_LEVEL_{level}" for level in (1, 2, 3, 4)), "RESOLVED")
FREQUENCY_PREFERENCES = ("IMMEDIATE", "DAILY_DIGEST", "WEEKLY_DIGEST")
DIGEST_FREQUENCIES = ("DAILY", "WEEKLY")
DIGEST_STATUSES = ("queued", "sent", "failed", "abandoned")
ATTEMPT_OUTCOMES = ("accepted", "rejected", "deferred", "unknown")

EMAIL_BATCHES = Table(
    "email_batches",
    METADATA,
    # Its text is the idempotency key.
    identity(),
    Column("provider", Text, nullable=False),
    Column("run_id", Text, nullable=False),
    stamp("claimed_at"),
)

DIGESTS = tenant(
    "digests",
    belongs("user_id", "users", required=True),
    Column("frequency", Word, nullable=False),
    # The day that the digest is of, or the first of the week.
    Column("period_start", Date, nullable=False),
    Column("status", Word, nullable=False, server_default="queued"),
    Column("retry_count", Integer, nullable=False, server_default="0"),
    Column("permanent", Boolean, nullable=False, server_default=false()),
    Column("outcome_unknown", Boolean, nullable=False, server_default=false()),
    instant("next_attempt_at"),
    # The claim that holds the row; null when none does.
    belongs("batch_id", "email_batches", on_delete="SET NULL"),
    instant("sent_at"),
    Column("provider_message_id", Text),
    Column("last_error", Text),
    # What the link in the mail carries; the id itself stands in logs.
    Column("unsubscribe_token", Uuid, nullable=False, server_default=text("gen_random_uuid()")),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("frequency", DIGEST_FREQUENCIES),
    one_of("status", DIGEST_STATUSES),
    UniqueConstraint("user_id", "frequency", "period_start"),
    UniqueConstraint("unsubscribe_token"),
    Index("ix_digests_open", "period_start", "id", postgresql_where=text("status IN ('queued', 'failed')")),
)

NOTIFICATIONS = tenant(
    "notifications",
    belongs("user_id", "users", required=True),
    belongs("site_id", "sites", on_delete="SET NULL"),
    Column("recipient_email", Text),
    Column("recipient_phone", Text),
    Column("notification_type", Text, nullable=False),
    Column("channel", Word, nullable=False, server_default="IN_APP"),
    Column("priority", Word, nullable=False, server_default="NORMAL"),
    # The priority's place, kept by the database, for the order of delivery.
    Column("urgency", SmallInteger, nullable=False, server_default="2"),
    Column("subject", Text, nullable=False),
    Column("body_text", Text, nullable=False),
    Column("body_html", Text),
    json("variables"),
    Column("status", Word, nullable=False, server_default="PENDING"),
    Column("delivery_status", Word),
    Column("delivery_provider", Text),
    Column("delivery_provider_id", Text),
    Column("delivery_error", Text),
    Column("is_escalation", Boolean, nullable=False, server_default=false()),
    Column("escalation_level", Integer),
    Column("escalation_state", Word, server_default="PENDING"),
    Column("entity_type", Text),
    Column("entity_id", Uuid),
    belongs("obligation_id", "obligations", on_delete="SET NULL"),
    belongs("evidence_id", "evidence_items", on_delete="SET NULL"),
    Column("action_url", Text),
    stamp("scheduled_for"),
    json("metadata"),
    # Type, entity, the date or window that it counts toward, threshold, recipient and channel.
    Column("dedupe_key", Text),
    Column("retry_count", Integer, nullable=False, server_default="0"),
    instant("next_attempt_at"),
    *claim_columns(),
    belongs("batch_id", "email_batches", on_delete="SET NULL"),
    # Nobody knows whether the provider took it: a person decides.
    Column("outcome_unknown", Boolean, nullable=False, server_default=false()),
    belongs("digest_id", "digests", on_delete="SET NULL"),
    instant("sent_at"),
    instant("delivered_at"),
    instant("read_at"),
    stamp("created_at"),
    stamp("updated_at"),
    # Why it was sent, or was not, in words.
    Column("status_reason", Text),
    one_of("channel", CHANNELS),
    one_of("priority", PRIORITIES),
    one_of("status", NOTIFICATION_STATUSES),
    one_of("delivery_status", DELIVERY_STATUSES),
    one_of("escalation_state", ESCALATION_STATES),
    holds("escalation_level", "escalation_level BETWEEN 1 AND 4"),
    UniqueConstraint("dedupe_key"),
    # Most urgent first, then oldest.
    Index(
        "ix_notifications_due",
        column("urgency").desc(),
        "created_at",
        "id",
        postgresql_where=text("status IN ('PENDING', 'QUEUED', 'RETRYING')"),
    ),
    Index("ix_notifications_claimed", "heartbeat_at", postgresql_where=text("status = 'SENDING'")),
    # What a digest takes.
    Index(
        "ix_notifications_for_digest",
        "user_id",
        "created_at",
        postgresql_where=text("status = 'PENDING' AND channel = 'EMAIL' AND priority IN ('LOW', 'NORMAL')"),
    ),
    # A person's own, unread.
    Index(
        "ix_notifications_unread",
        "user_id",
        "created_at",
        postgresql_where=text("channel = 'IN_APP' AND read_at IS NULL"),
    ),
    Index("ix_notifications_entity", "entity_id", "notification_type"),
    # The log of them, latest first.
    Index("ix_notifications_created", "created_at", "id"),
    info={"written": True},
)

NOTIFICATION_PREFERENCES = tenant(
    "notification_preferences",
    belongs("user_id", "users", required=True),
    Column("notification_type", Text, nullable=False),
    # None: every channel that has no row of its own.
    Column("channel", Word),
    Column("is_enabled", Boolean, nullable=False, server_default=true()),
    Column("frequency_preference", Word, nullable=False, server_default="IMMEDIATE"),
    stamp("created_at"),
    stamp("updated_at"),
    one_of("channel", CHANNELS),
    one_of("frequency_preference", FREQUENCY_PREFERENCES),
    Index(
        "uq_notification_preferences_user",
        "user_id",
        "notification_type",
        "channel",
        unique=True,
        postgresql_nulls_not_distinct=True,
    ),
    Index(
        "ix_notification_preferences_digests",
        "frequency_preference",
        "user_id",
        postgresql_where=text("frequency_preference <> 'IMMEDIATE'"),
    ),
)

PUSH_SUBSCRIPTIONS = tenant(
    "push_subscriptions",
    belongs("user_id", "users", required=True),
    Column("endpoint", Text, nullable=False),
    # The browser's public key and its secret, as it gives them.
    Column("p256dh", Text, nullable=False),
    Column("auth", Text, nullable=False),
    # The push service said that there is no such subscription any more.
    instant("gone_at"),
    stamp("created_at"),
    stamp("updated_at"),
    UniqueConstraint("endpoint"),
)

EMAIL_ATTEMPTS = indexed(
    Table(
        "email_attempts",
        METADATA,
        Column("batch_id", Uuid, ForeignKey("email_batches.id", ondelete="CASCADE"), primary_key=True),
        Column("position", Integer, primary_key=True, autoincrement=False),
        belongs("company_id", "companies", required=True),
        belongs("notification_id", "notifications"),
        belongs("digest_id", "digests"),
        belongs("pack_sharing_id", "pack_sharing"),
        # As include.stored_message packs it, without a frame.
        Column("message", Text, nullable=False),
        # From then on the provider may have it.
        instant("begun_at"),
        Column("outcome", Word),
        Column("reason", Text),
        Column("provider_message_id", Text),
        instant("answered_at"),
        one_of("outcome", ATTEMPT_OUTCOMES),
        holds("subject", "num_nonnulls(notification_id, digest_id, pack_sharing_id) = 1"),
        Index("ix_email_attempts_open", "batch_id", postgresql_where=text("outcome IS NULL")),
    )
)

DELIVERY_PAUSES = Table(
    "delivery_pauses",
    METADATA,
    # The connection whose provider wants to be left alone.
    Column("service", Text, primary_key=True),
    instant("paused_until"),
    Column("pause_reason", Text),
)
