"""The key that signs EcoComply's public links, as an Airflow connection: its password, of 32 bytes at least."""

from __future__ import annotations

from airflow.sdk import BaseHook

from hooks.connections import access
from include.ecocomply.unsubscribe_links import UnsubscribeLinks
from include.errors import AlmanacError


def unsubscribe_links(conn_id: str) -> UnsubscribeLinks:
    """Return what makes and reads links under the key of a connection of the type `almanac_key`.

    Raises as `hooks.email.email_provider` does, and BadInput for a key that is too short.
    """
    return KeyHook(conn_id).get_conn()


class KeyHook(BaseHook):
    """What Airflow's connection form and its Test button know of a key."""

    conn_name_attr = "key_conn_id"
    default_conn_name = "almanac_key"
    conn_type = "almanac_key"
    hook_name = "Key of links (Almanac)"

    def __init__(self, key_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.key_conn_id = key_conn_id

    def get_conn(self) -> UnsubscribeLinks:
        """Return what the key signs; see `unsubscribe_links`."""
        said = access(self.key_conn_id)
        if said.conn_type and said.conn_type != self.conn_type:
            raise said.bad("type", f"must be {self.conn_type}: {said.conn_type}")
        return UnsubscribeLinks((said.password or "").encode())

    def test_connection(self) -> tuple[bool, str]:
        """Say whether the key is long enough."""
        try:
            self.get_conn()
        except AlmanacError as error:
            return False, str(error)
        return True, "links can be signed"
