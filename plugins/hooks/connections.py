"""Airflow connections as the hooks read them: one way in for tasks, scheduler, API server and tests."""

from __future__ import annotations

import contextvars
import json
import os
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, quote_plus, urlsplit

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException, AirflowRuntimeError, ErrorType

from include.errors import BadInput, Outage, Permanent
from include.plain_text import shown_url

_SECRET_NAME = re.compile(r"secret|password|passwd|token|api_?key|access_?key|private", re.IGNORECASE)


# Airflow's own mark of a process: "server" may read the metadata database, "client" has a supervisor to ask.
_CONTEXT = "_AIRFLOW_PROCESS_CONTEXT"
_LONGEST_LINE = 500


class UnknownConnection(Permanent):
    """There is no Airflow connection of that id."""


@dataclass(frozen=True, slots=True)
class Access:
    """What one Airflow connection says; neither its password nor its extra shows in its repr."""

    conn_id: str
    conn_type: str
    host: str | None
    port: int | None
    schema: str | None
    login: str | None
    password: str | None = field(repr=False)
    extra: Mapping[str, Any] = field(repr=False)

    def base_url(self, default: str | None = None) -> str:
        """Return the service's http(s) URL without a trailing slash, its path kept.

        It is the extra `base_url`, else the host: a whole URL, or a bare name with the schema as its scheme
        (https if there is none). Raises BadInput if it is no http(s) URL or carries a login.
        """
        given = self.text("base_url") or self._host_url() or default
        if not given:
            raise self.bad("host", "is missing")
        try:
            parts = urlsplit(given)
            well_formed = parts.scheme in ("http", "https") and bool(parts.hostname)
            has_login = "@" in parts.netloc
            _ = parts.port
        except ValueError:
            well_formed, has_login = False, False
        if has_login:
            raise self.bad("base URL", "must not carry a login: use the connection's login and password")
        if not well_formed or parts.query or parts.fragment:
            raise self.bad("base URL", f"is not a plain http(s) URL: {shown_url(given)!r}")
        return given.rstrip("/")

    def _host_url(self) -> str | None:
        if not self.host:
            return None
        schema = self.schema or ""
        scheme, path = (schema, "") if schema in ("http", "https", "") else ("", schema)
        url = self.host if "://" in self.host else f"{scheme or 'https'}://{self.host}"
        if self.port and "://" in url:
            head, _, tail = url.partition("://")
            authority, slash, rest = tail.partition("/")
            if not re.search(r":\d+$", authority):
                url = f"{head}://{authority}:{self.port}{slash}{rest}"
        return f"{url.rstrip('/')}/{path}" if path else url

    def text(self, name: str, default: str | None = None) -> str | None:
        """Return a text of the extra; empty counts as absent. Raises BadInput if it is something else."""
        value = self.extra.get(name)
        if value is None or value == "":
            return default
        if not isinstance(value, str):
            raise self.bad(f"extra {name!r}", f"must be text, not {type(value).__name__}")
        return value

    def number(self, name: str, default: float, low: float, high: float) -> float:
        """Return a number of the extra, within `low` and `high`; digits as text are read too."""
        value = self.extra.get(name)
        if value is None or value == "":
            return default
        try:
            number = float("no number" if isinstance(value, bool) else value)
        except (TypeError, ValueError):
            shown = self.without_secrets(repr(value))
            raise self.bad(f"extra {name!r}", f"must be a number: {shown}") from None
        if not low <= number <= high:
            raise self.bad(f"extra {name!r}", f"must be between {low:g} and {high:g}: {number:g}")
        return number

    def flag(self, name: str, *, default: bool) -> bool:
        """Return a yes or no of the extra: a JSON boolean, or true/false as text."""
        value = self.extra.get(name)
        if value is None or value == "":
            return default
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        raise self.bad(f"extra {name!r}", f"must be true or false: {self.without_secrets(repr(value))}")

    def bad(self, what: str, why: str) -> BadInput:
        """Return the error that names this connection, the part of it and what is wrong there."""
        return BadInput(f"connection {self.conn_id}: {what} {why}")

    def for_log(self, text: str) -> str:
        """Return `text` as one line of bearable length, without secrets and control characters."""
        return "".join(filter(str.isprintable, self.without_secrets(" ".join(text.split()))))[:_LONGEST_LINE]

    def without_secrets(self, text: str) -> str:
        """Return `text` with every secret of this connection, as written or URL-quoted, replaced by ***."""
        secrets = [self.password, *_secret_values(self.extra)]
        forms = {
            form
            for secret in secrets
            if secret
            for form in (
                secret,
                ascii(secret)[1:-1],
                quote(secret, safe=""),
                quote(secret),
                quote_plus(secret),
            )
        }
        for form in sorted(forms, key=len, reverse=True):
            text = text.replace(form, "***")
        return text


def access(conn_id: str) -> Access:
    """Return what the Airflow connection `conn_id` says.

    Works in a task, in a callback, in the scheduler and the API server, and from `AIRFLOW_CONN_<ID>`
    anywhere. Raises UnknownConnection if there is none of that id, BadInput if its extra is not a JSON
    object, Outage if Airflow could not be asked.
    """
    if os.environ.get(_CONTEXT) == "server":
        # Airflow's look-up commits its thread's session, and the scheduler forbids that around its locks.
        context = contextvars.copy_context()
        with ThreadPoolExecutor(max_workers=1) as own_session:
            found = own_session.submit(lambda: context.run(_look_up, conn_id)).result()
    else:
        found = _look_up(conn_id)
    try:
        extra = json.loads(found.extra) if found.extra else {}
    except ValueError:
        extra = None
    if not isinstance(extra, dict):
        raise BadInput(f"connection {conn_id}: extra is not a JSON object")
    return Access(
        conn_id=conn_id,
        conn_type=found.conn_type or "",
        host=found.host or None,
        port=found.port or None,
        schema=found.schema or None,
        login=found.login or None,
        password=found.password or None,
        extra=extra,
    )


def _look_up(conn_id: str) -> Any:
    try:
        return BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        if stored := _stored_for_a_start(conn_id):
            return stored
        reason = _why_not_found(conn_id)
    except (AirflowRuntimeError, OSError) as error:
        reason = type(error).__name__
    if reason:
        raise Outage(f"Airflow: connection {conn_id} could not be looked up: {reason}")
    raise UnknownConnection(
        f"Airflow: there is no connection {conn_id}; "
        f"add it under Admin > Connections or set AIRFLOW_CONN_{conn_id.upper()}"
    )


def _stored_for_a_start(conn_id: str) -> Any:
    """Return the stored connection, or None, in a process that does not say yet what it is.

    The scheduler calls its listeners' `on_starting` before it marks itself a server; until then Airflow looks
    into the environment alone.
    """
    from airflow.sdk.execution_time import task_runner  # noqa: PLC0415 - heavy, and seldom needed

    if os.environ.get(_CONTEXT) or getattr(task_runner, "SUPERVISOR_COMMS", None):
        return None
    try:
        from airflow.secrets.metastore import MetastoreBackend  # noqa: PLC0415 - as above
        from airflow.utils.session import create_session  # noqa: PLC0415 - as above

        with create_session(scoped=False) as session:
            return MetastoreBackend().get_connection(conn_id, session=session)
    except Exception:  # noqa: BLE001 - a process without Airflow's database, such as a test's
        return None


def _why_not_found(conn_id: str) -> str | None:
    # Airflow says "not defined" for an outage too: only a second, direct question tells the two apart.
    from airflow.sdk.execution_time import supervisor, task_runner  # noqa: PLC0415 - heavy, and seldom needed
    from airflow.sdk.execution_time.comms import ErrorResponse, GetConnection  # noqa: PLC0415 - as above

    try:
        if comms := getattr(task_runner, "SUPERVISOR_COMMS", None):
            answer = comms.send(GetConnection(conn_id=conn_id))
            if isinstance(answer, ErrorResponse) and answer.error is not ErrorType.CONNECTION_NOT_FOUND:
                return answer.error.value
        else:
            for backend in supervisor.ensure_secrets_backend_loaded():
                backend.get_connection(conn_id=conn_id)
    except AirflowRuntimeError as error:
        return None if error.error.error is ErrorType.CONNECTION_NOT_FOUND else error.error.error.value
    except Exception as error:  # noqa: BLE001 - a backend may fail in any way; all of them are outages
        return type(error).__name__
    return None


def _secret_values(extra: Mapping[str, Any]) -> list[str]:
    found = []
    for name, value in extra.items():
        if isinstance(value, Mapping):
            found += _secret_values(value)
        elif isinstance(value, str) and _SECRET_NAME.search(name):
            found.append(value)
    return found
