"""What Airflow's connection form asks for, per connection type of this project.

Airflow reads this by the entry point in `plugins/almanac_hooks.dist-info`: it takes connection types from
packages alone, and that folder is a package's description on the path where Airflow finds plugins.
"""

from __future__ import annotations

from typing import Any


def provider_info() -> dict[str, Any]:
    """Return the description in the form of Airflow's provider_info.schema.json."""
    return {
        "package-name": "almanac-hooks",
        "name": "Almanac",
        "description": "Connection types of Almanac's hooks.",
        "connection-types": [
            _EMAIL,
            _LAB,
            _STORAGE,
            _FEEDS,
            _MAILBOX,
            _NOTIFICATION_QUEUE,
            _MODELS,
            _APPLICATION,
            _GAZETTE,
            _SMS,
            _PUSH,
            _KEY,
        ],
    }


def _field(label: str, description: str, **schema: Any) -> dict[str, Any]:
    return {"label": label, "description": description, "schema": {"type": ["string", "null"], **schema}}


def _number(label: str, description: str, low: float, high: float) -> dict[str, Any]:
    return _field(label, description, type=["number", "null"], minimum=low, maximum=high)


_EMAIL = {
    "connection-type": "almanac_email",
    "hook-class-name": "hooks.email.EmailHook",
    "hook-name": "E-mail (Almanac)",
    "conn-fields": {
        "provider": _field(
            "Provider",
            "resend, sendgrid: their APIs, the password is the key. smtp: a mail server. outbox: files in a folder.",
            enum=["resend", "sendgrid", "smtp", "outbox"],
        ),
        "from": _field("From", "Sender of messages that name none: Name <address>."),
        "base_url": _field("Base URL", "Of the API, if it is not the provider's own."),
        "folder": _field("Folder", "Of the outbox; without it `outbox` in Airflow's home."),
        "security": _field("Security", "Of SMTP; without it starttls.", enum=["starttls", "tls", "none"]),
        "ca_file": _field("CA file", "Certificates that SMTP trusts instead of the system's."),
        "batch_size": _number("Batch size", "Messages in one request to Resend; without it 100.", 1, 100),
        "in_flight": _number(
            "In flight", "Requests at a time; without it 10 (Resend; 100 singles) or 20 (SendGrid).", 1, 200
        ),
        "timeout": _number("Timeout", "Seconds for one answer; without it 30.", 0.1, 600),
        "longest_wait": _number("Longest wait", "Seconds a rate limit is waited for; without it 30.", 0, 300),
        "per_second": _number(
            "Per second", "Messages a second at most, 0 is no cap; without it 50 with SendGrid.", 0, 10_000
        ),
    },
    "ui-field-behaviour": {
        "hidden-fields": ["schema"],
        "relabeling": {"password": "API key or password", "host": "Host or base URL"},
        "placeholders": {"port": "587"},
    },
}

_LAB = {
    "connection-type": "almanac_lab",
    "hook-class-name": "hooks.lab.LabHook",
    "hook-name": "Lab (Almanac)",
    "ui-field-behaviour": {
        "hidden-fields": ["schema", "login", "port"],
        "relabeling": {"password": "Token", "host": "Base URL"},
        "placeholders": {"host": "https://lab.example/api/v1"},
    },
}

_STORAGE = {
    "connection-type": "almanac_storage",
    "hook-class-name": "hooks.storage.StorageHook",
    "hook-name": "Storage (Almanac)",
    "conn-fields": {
        "folder": _field("Folder", "Of files on this machine; without it `storage` in Airflow's home."),
        "base_url": _field("Base URL", "A folder's links begin with it; the password signs them."),
        "bucket": _field("Bucket", "Of S3, instead of a folder; login and password are its keys."),
        "prefix": _field("Prefix", "Of names in the bucket."),
        "region_name": _field("Region", "Of the bucket."),
        "endpoint_url": _field("Endpoint", "Of a service that is compatible with S3."),
        "public_endpoint_url": _field("Public endpoint", "Of the bucket's links, if it is another."),
    },
    "ui-field-behaviour": {
        "hidden-fields": ["schema", "port"],
        "relabeling": {"password": "Signing key, or secret key of the bucket", "login": "Key of the bucket"},
        "placeholders": {},
    },
}

_FEEDS = {
    "connection-type": "almanac_feeds",
    "hook-class-name": "hooks.feeds.FeedsHook",
    "hook-name": "Feeds (Almanac)",
    "conn-fields": {
        "hosts": _field("Hosts", "That may be asked, redirects included: feeds.example.com, *.example.com."),
        "private_addresses": _field(
            "Private addresses", "true: these hosts may stand in a private network.", type=["boolean", "null"]
        ),
    },
    "ui-field-behaviour": {
        "hidden-fields": ["schema", "port", "login", "password"],
        "relabeling": {"host": "A feed's URL, for the Test button"},
        "placeholders": {"host": "https://feeds.example.com/news.xml"},
    },
}

_MAILBOX = {
    "connection-type": "almanac_mailbox",
    "hook-class-name": "hooks.mailbox.MailboxHook",
    "hook-name": "Mailbox (Almanac)",
    "conn-fields": {
        "security": _field("Security", "Of IMAP; without it tls.", enum=["tls", "starttls", "none"]),
        "folder": _field("Folder", "That is read; without it INBOX."),
        "ca_file": _field("CA file", "Certificates that IMAP trusts instead of the system's."),
    },
    "ui-field-behaviour": {
        "hidden-fields": ["schema"],
        "relabeling": {},
        "placeholders": {"port": "993"},
    },
}

_NOTIFICATION_QUEUE = {
    "connection-type": "almanac_redis",
    "hook-class-name": "hooks.notification_queue.NotificationQueueHook",
    "hook-name": "BullMQ on Redis (Almanac)",
    "conn-fields": {
        "prefix": _field("Prefix", "Of BullMQ's keys; without it `bull`."),
        "tls": _field("TLS", "Whether to speak TLS.", type=["boolean", "null"]),
        "ca_file": _field("CA file", "Certificates that TLS trusts instead of the system's."),
        "timeout": _number("Timeout", "Seconds for one answer; without it 10.", 0.1, 600),
    },
    "ui-field-behaviour": {
        "hidden-fields": [],
        "relabeling": {"schema": "Database number"},
        "placeholders": {"port": "6379", "schema": "0"},
    },
}

_MODELS = {
    "connection-type": "almanac_models",
    "hook-class-name": "hooks.models.ModelsHook",
    "hook-name": "Language models (Almanac)",
    "conn-fields": {
        "provider": _field(
            "Provider",
            "vendors: Anthropic, OpenAI and Google. stand_in: nobody is asked, and the texts say so.",
            enum=["vendors", "stand_in"],
        ),
        "anthropic_api_key": _field("Anthropic's key", "Without it the password.", format="password"),
        "openai_api_key": _field("OpenAI's key", "Without it the password.", format="password"),
        "google_api_key": _field("Google's key", "Without it the password.", format="password"),
        "anthropic_url": _field("Anthropic's URL", "If it is another than the vendor's, or the gateway's."),
        "openai_url": _field("OpenAI's URL", "As above."),
        "google_url": _field("Google's URL", "As above."),
        "timeout": _number("Timeout", "Seconds without a word; without it 240.", 0.1, 600),
        "total": _number("Total", "Seconds for a whole answer; without it 420.", 0.1, 3_600),
    },
    "ui-field-behaviour": {
        "hidden-fields": ["schema", "login", "port"],
        "relabeling": {"password": "Key", "host": "Base URL of a gateway"},
        "placeholders": {"host": "none: the vendors themselves"},
    },
}

_APPLICATION = {
    "connection-type": "almanac_application",
    "hook-class-name": "hooks.application.ApplicationHook",
    "hook-name": "Application (Almanac)",
    "conn-fields": {
        "method": _field("Method", "Of a call; without it GET.", enum=["GET", "POST"]),
        "timeout": _number("Timeout", "Seconds for an answer; without it 330.", 0.1, 3_600),
    },
    "ui-field-behaviour": {
        "hidden-fields": ["schema", "login", "port"],
        "relabeling": {"password": "Bearer secret", "host": "Base URL"},
        "placeholders": {"host": "https://app.example"},
    },
}

_GAZETTE = {
    "connection-type": "almanac_gazette",
    "hook-class-name": "hooks.gazettes.GazetteHook",
    "hook-name": "Gazette (Almanac)",
    "conn-fields": {
        "kind": _field(
            "Kind", "open_data: the BOE's own. service: a parser that answers.", enum=["open_data", "service"]
        ),
        "hosts": _field("Hosts", "That may be asked, redirects included; without it the host itself."),
        "private_addresses": _field(
            "Private addresses", "true: these hosts may stand in a private network.", type=["boolean", "null"]
        ),
    },
    "ui-field-behaviour": {
        "hidden-fields": ["schema", "port", "login"],
        "relabeling": {"host": "Base URL", "password": "Token of a parser service"},
        "placeholders": {"host": "https://www.boe.es/datosabiertos/api/boe"},
    },
}

_SMS = {
    "connection-type": "almanac_sms",
    "hook-class-name": "hooks.sms.SmsHook",
    "hook-name": "SMS (Almanac)",
    "conn-fields": {
        "provider": _field("Provider", "twilio, or outbox: files in a folder.", enum=["twilio", "outbox"]),
        "from": _field("From", "A number, a sender's name, or a messaging service: MG and 32 characters."),
        "account_sid": _field("Account SID", "Where login and password are an API key; else the login."),
        "base_url": _field("Base URL", "Of the API, if it is not https://api.twilio.com."),
        "folder": _field("Folder", "Of the outbox; without it `outbox` in Airflow's home."),
        "per_second": _number("Per second", "Messages a second at most; without it 50.", 0, 10_000),
        "in_flight": _number("In flight", "Requests at a time; without it 20.", 1, 200),
        "timeout": _number("Timeout", "Seconds for one answer; without it 30.", 0.1, 600),
        "longest_wait": _number("Longest wait", "Seconds a rate limit is waited for; without it 30.", 0, 300),
    },
    "ui-field-behaviour": {
        "hidden-fields": ["schema"],
        "relabeling": {"login": "Account SID or API key", "password": "Token or secret"},
        "placeholders": {},
    },
}

_PUSH = {
    "connection-type": "almanac_push",
    "hook-class-name": "hooks.push.PushHook",
    "hook-name": "Web push (Almanac)",
    "conn-fields": {
        "provider": _field(
            "Provider",
            "webpush: the browsers' services. outbox: files in a folder.",
            enum=["webpush", "outbox"],
        ),
        "subject": _field("Subject", "Whom a push service may write to: mailto: or https:."),
        "ttl": _number(
            "TTL", "Seconds a message is kept for a device that is off; without it a day.", 0, 2_419_200
        ),
        "hosts": _field("Hosts", "Push services that may be asked, instead of the browsers' known ones."),
        "private_addresses": _field(
            "Private addresses", "true: these hosts may stand in a private network.", type=["boolean", "null"]
        ),
        "folder": _field("Folder", "Of the outbox; without it `outbox` in Airflow's home."),
        "per_second": _number("Per second", "Messages a second at most; without it 50.", 0, 10_000),
        "in_flight": _number("In flight", "Messages at a time; without it 20.", 1, 100),
        "timeout": _number("Timeout", "Seconds for one answer; without it 30.", 0.1, 600),
    },
    "ui-field-behaviour": {
        "hidden-fields": ["schema", "port", "login"],
        "relabeling": {"password": "Private VAPID key"},
        "placeholders": {},
    },
}

_KEY = {
    "connection-type": "almanac_key",
    "hook-class-name": "hooks.link_keys.KeyHook",
    "hook-name": "Key of links (Almanac)",
    "ui-field-behaviour": {
        "hidden-fields": ["schema", "port", "login", "host", "extra"],
        "relabeling": {"password": "Key, 32 bytes at least"},
        "placeholders": {},
    },
}
