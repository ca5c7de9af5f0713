"""Push messages: one Airflow connection says how they go.

The extra `provider` (or else the host) chooses: `webpush` sends to the browsers' own push services, `outbox` writes
each message into a folder as mail's outbox does.
"""

from __future__ import annotations

from airflow.sdk import BaseHook

from hooks.connections import access
from hooks.push_web import WebPush
from hooks.sms import chosen, outbox, without_choice
from include.ecocomply.channels import PushesToOutbox, PushMessages
from include.errors import AlmanacError

PROVIDERS = ("webpush", "outbox")
_OUTBOX_SENDER = "Push <push@outbox.invalid>"


def push_provider(conn_id: str, seconds: float | None = None) -> PushMessages:
    """Return the way to send push messages that a connection of the type `almanac_push` describes.

    Nothing is sent or connected yet; one sending begins nothing after `seconds`, if given. Raises as
    `hooks.email.email_provider` does.
    """
    found = PushHook(conn_id).get_conn(seconds)
    return found if isinstance(found, WebPush) else PushesToOutbox(found)


class PushHook(BaseHook):
    """What Airflow's connection form and its Test button know of a push connection."""

    conn_name_attr = "push_conn_id"
    default_conn_name = "almanac_push"
    conn_type = "almanac_push"
    hook_name = "Web push (Almanac)"

    def __init__(self, push_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.push_conn_id = push_conn_id

    def get_conn(self, seconds: float | None = None):  # noqa: ANN201 - WebPush, or the outbox
        """Return what the connection describes; see `push_provider`."""
        said = access(self.push_conn_id)
        if chosen(said, self.conn_type, PROVIDERS) == "webpush":
            return WebPush(without_choice(said), seconds)
        return outbox(said, _OUTBOX_SENDER)

    def test_connection(self) -> tuple[bool, str]:
        """Try the keys, or the folder, without sending anything; return whether they work, and a sentence on it."""
        try:
            return True, self.get_conn().test()
        except (AlmanacError, OSError) as error:
            return False, str(error)
