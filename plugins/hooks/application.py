"""ArcVest's own application: its scheduled endpoints, called with a bearer secret and an idempotency key.

The connection's host is the application's base URL, its password the secret. The extra's `method` is GET, as the
platform that ran these endpoints before calls them, or POST; `timeout` is how long an answer may take, in seconds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowTaskTimeout

from hooks.connections import Access, access
from hooks.json_http import Answer, Limits, Unanswered, Unreached, request
from include.arcvest.application import SERVICE, NoAnswer
from include.errors import AlmanacError, Outage, Refused

_METHODS = ("GET", "POST")
# Said by a proxy or a platform that gave up waiting: what stands behind it may be at it still.
_GAVE_UP = (408, 502, 504, 524)
# Less than a task's limit of 600 s, so that a call that is late is told of as such.
_LONGEST_SECONDS = 540
_TRY_LATER = (401, 403, 409, 425, 429)

_PAGE = re.compile(rb"(?:\xef\xbb\xbf)?\s*<")


def application(conn_id: str) -> HttpApplication:
    """Return the application behind an Airflow connection, without calling it."""
    return HttpApplication(access(conn_id))


class ApplicationHook(BaseHook):
    """What Airflow's connection form and its Test button know of an application."""

    conn_name_attr = "application_conn_id"
    default_conn_name = "almanac_application"
    conn_type = "almanac_application"
    hook_name = "Application (Almanac)"

    def __init__(self, application_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.application_conn_id = application_conn_id

    def get_conn(self) -> HttpApplication:
        """Return the application; see `application`."""
        return application(self.application_conn_id)

    def test_connection(self) -> tuple[bool, str]:
        """Ask for the base URL's own page, which starts nothing, and say whether anybody answered."""
        try:
            return self.get_conn().test_connection()
        except AlmanacError as error:
            return False, str(error)


class HttpApplication:
    """The application behind one connection."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._method = access.text("method", "GET") or ""
        if self._method not in _METHODS:
            raise access.bad("extra 'method'", f"must be one of {', '.join(_METHODS)}: {self._method!r}")
        # A little more than the 300 s that the endpoints' own platform gives them.
        seconds = access.number("timeout", 330, 0.1, _LONGEST_SECONDS)
        self._limits = Limits(silence=seconds, total=seconds)

    def call(self, endpoint: str, key: str) -> Mapping[str, Any] | None:
        """Call an endpoint, as `include.arcvest.application.Application` promises."""
        headers = {**self._headers(), "Idempotency-Key": key, "Cache-Control": "no-store"}
        where = f"application {self._access.conn_id}: {self._method} {self._access.base_url()}/{endpoint}"
        url = f"{self._access.base_url()}/{endpoint}"
        try:
            answer = request(self._method, url, headers, {} if self._method == "POST" else None, self._limits)
        except Unreached as error:
            raise Outage(f"{where}: {error}", service=SERVICE) from None
        except Unanswered as error:
            raise NoAnswer(f"{where}: {error}", service=SERVICE) from None
        except AirflowTaskTimeout:
            raise NoAnswer(f"{where}: no answer by the end of the task's time", service=SERVICE) from None
        if not 200 <= answer.status < 300:  # noqa: PLR2004 - HTTP's own numbers
            raise self._problem(where, answer)
        if _PAGE.match(answer.body):
            # A page to sign in on, or a proxy's: nobody knows what stands behind it.
            raise NoAnswer(f"{where} answered a page: {answer.says(self._access)}", service=SERVICE)
        content = answer.json()
        if not isinstance(content, dict):
            return None
        if content.get("success") is False:
            raise Outage(f"{where} answered that it failed: {answer.says(self._access)}", service=SERVICE)
        return content

    def test_connection(self) -> tuple[bool, str]:
        """Ask for the base URL's own page, which starts nothing, and say whether anybody answered."""
        try:
            answer = request("GET", self._access.base_url(), self._headers(), limits=Limits())
        except (Unreached, Unanswered) as error:
            return False, f"application {self._access.conn_id}: {error}"
        says = answer.says(self._access)
        if answer.status in (401, 403) or answer.status >= 500:  # noqa: PLR2004 - HTTP's own numbers
            return False, f"The application answered {says}"
        return True, f"The application answered HTTP {answer.status}"

    def _headers(self) -> Mapping[str, str]:
        secret = self._access.password or ""
        if not re.fullmatch(r"[!-~]+", secret):
            raise self._access.bad(
                "password", "must be the application's secret, in visible ASCII characters"
            )
        return {"Authorization": f"Bearer {secret}"}

    def _problem(self, where: str, answer: Answer) -> AlmanacError:
        says = f"{where} answered {answer.says(self._access)}"
        if answer.status in _GAVE_UP:
            return NoAnswer(says, retry_at=answer.retry_at, service=SERVICE)
        if answer.status in (401, 403):
            says = f"{says} (is the password of connection {self._access.conn_id} the application's secret?)"
        if answer.status in _TRY_LATER or not 400 <= answer.status < 500:  # noqa: PLR2004 - HTTP's own numbers
            return Outage(says, retry_at=answer.retry_at, service=SERVICE)
        return Refused(says)
