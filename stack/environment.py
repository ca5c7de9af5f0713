"""The environment of one embedded stack: its secrets, its ports, and how Airflow is set up.

It is kept in the file `env` of the stack's home, as lines that a shell can read; a restart finds its secrets
and ports there.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import shlex
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from stack.errors import StackError
from stack.home import Home, write_private
from stack.postgres import ROLE, free_port, is_free
from stack.settings_file import load

LOOPBACK = "127.0.0.1"

LOGINS = {"admin": "admin", "operator": "user", "viewer": "viewer"}
"""Who may log in, with the role of Airflow's simple auth manager."""

_PASSWORDS = {login: f"ALMANAC_{login.upper()}_PASSWORD" for login in LOGINS}
_MAY = {"admin": "everything", "operator": "runs DAGs", "viewer": "reads"}

CONSOLE = "/plugin/almanac-runs"
"""Where Airflow shows the console's first page."""

_URI = "_DB_URI"

# What a person may set before the start; the rest is generated once and kept.
_PORTS = ("ALMANAC_PORT", "POSTGRES_PORT", "LAB_PORT", "MODELS_PORT", "ARCVEST_APP_PORT", "FEEDS_PORT", "IMAP_PORT",
    "GAZETTES_PORT",
)  # fmt: skip
_FERNET_KEY = "AIRFLOW__CORE__FERNET_KEY"
_CHOICES = {"LAB_INTEGRATION_MODEL": "manual", "ARCVEST_WORKER_SECONDS": "240"}
_HEADING = "# Of one Almanac stack; its owner's alone. Read it with: set -a; . .almanac/env; set +a\n"
_HEADING_OF_A_WHOLE = "# Without an end in its last line it is cut off.\n"
_END = "# end\n"
_HIGHEST_PORT = 65535
_MEND = "put a copy of it back, or move the stack's folder away to start anew"


def read(home: Home) -> dict[str, str]:
    """Return what the env file holds; empty if there is none. Raises StackError if it is damaged."""
    file = home.environment
    try:
        content = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise StackError(f"{file}: can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise StackError(f"{file}: is damaged: it is no text; {_MEND}") from None
    # What is lost would be made anew, and with it every password and every signed link that is out.
    if _HEADING_OF_A_WHOLE in content and not content.endswith(_END):
        raise StackError(f"{file}: is damaged: it is cut off; {_MEND}")
    found = {}
    for number, line in enumerate(content.splitlines(), 1):
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            try:
                found[name] = "".join(shlex.split(value))
            except ValueError as error:
                raise StackError(f"{file}: line {number} is damaged: {error}; {_MEND}") from None
    return found


def write(home: Home, environment: Mapping[str, str]) -> None:
    """Keep an environment in the env file."""
    lines = [f"{name}={shlex.quote(value)}\n" for name, value in sorted(environment.items())]
    write_private(home.environment, "".join([_HEADING, _HEADING_OF_A_WHOLE, *lines, _END]))


def write_logins(home: Home, environment: Mapping[str, str]) -> None:
    """Give Airflow's simple auth manager the passwords of the environment.

    Raises StackError if one is missing.
    """
    missing = [name for name in _PASSWORDS.values() if not environment.get(name)]
    if missing:
        raise StackError(f"logins: {', '.join(missing)} missing in the environment")
    passwords = {login: environment[name] for login, name in _PASSWORDS.items()}
    write_private(home.passwords, json.dumps(passwords) + "\n")


def settle(home: Home, asked: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for the next start: secrets and ports of the last one where there was one.

    `asked` is what a person set (ALMANAC_PORT, POSTGRES_PORT, LAB_PORT, LAB_INTEGRATION_MODEL). Raises
    StackError for a port that is asked for and in use, or asked for twice; a port that is merely remembered
    gives way. Raises StackError too if there is a database without the secrets that belong to it.
    """
    kept = read(home)
    if _FERNET_KEY not in kept and (home.postgres / "PG_VERSION").exists():
        what = "holds no key" if home.environment.exists() else "is gone"
        raise StackError(
            f"{home.environment}: {what}, and without it nobody can read the connections that are stored in "
            f"{home.postgres}; {_MEND}"
        )
    environment = _ports(asked, kept)
    for name, default in _CHOICES.items():
        environment[name] = asked.get(name) or default
    for name in _PASSWORDS.values():
        environment[name] = kept.get(name) or secrets.token_urlsafe(12)
    for name in (
        "POSTGRES_PASSWORD", "LAB_TOKEN", "STORAGE_SIGNING_KEY", "MODELS_KEY", "ARCVEST_APP_SECRET", "IMAP_PASSWORD",
        "NIFYA_DOGA_TOKEN",
    ):  # fmt: skip
        environment[name] = kept.get(name) or secrets.token_urlsafe(24)
    for name in ("AIRFLOW__API__SECRET_KEY", "AIRFLOW__API_AUTH__JWT_SECRET", "ECOCOMPLY_LINKS_KEY"):
        environment[name] = kept.get(name) or secrets.token_urlsafe(48)
    environment[_FERNET_KEY] = kept.get(_FERNET_KEY) or base64.urlsafe_b64encode(os.urandom(32)).decode()
    environment |= _derived(home, environment)
    return environment | _settings_uris(home, {**asked, **environment})


def reach(environment: Mapping[str, str], file: Path) -> list[tuple[str, str]]:
    """Return what a person needs to reach a stack, as lines of a name and a value.

    Keys that only the stack's own processes use are not among it: they stay in the env file, `file`. Raises
    StackError if something is missing.
    """
    if missing := sorted({"ALMANAC_URL", *_PASSWORDS.values()} - environment.keys()):
        raise StackError(f"{file}: is gone or damaged: there is no {', '.join(missing)}; {_MEND}")
    url = environment["ALMANAC_URL"]
    logins = [
        f"{login} / {environment[f'ALMANAC_{login.upper()}_PASSWORD']}  ({may})"
        for login, may in _MAY.items()
    ]
    return [
        ("Console", f"{url}{CONSOLE}"),
        ("Airflow", url),
        *zip(["Logins", *[""] * (len(logins) - 1)], logins, strict=True),
        *((f"{name.upper()}{_URI}", uri) for name, uri in database_uris(environment).items()),
        ("Mail", environment["ALMANAC_OUTBOX"]),
        ("Files", environment["ALMANAC_STORAGE"]),
        ("Logs", environment["ALMANAC_LOGS"]),
        ("Scripts", f"set -a; . {shlex.quote(str(file))}; set +a   (these and all else, by name)"),
    ]


def database_uris(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the URI of every database of a stack by its name, in their order."""
    found = {name: value for name, value in environment.items() if name.endswith(_URI)}
    return {name.removesuffix(_URI).lower(): found[name] for name in sorted(found)}


def database_uri(environment: Mapping[str, str], database: str, scheme: str = "postgresql") -> str:
    """Return the URI of a database of the stack, with the password in it."""
    password = quote(environment["POSTGRES_PASSWORD"], safe="")
    return f"{scheme}://{ROLE}:{password}@{LOOPBACK}:{environment['POSTGRES_PORT']}/{database}"


def for_processes(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the whole environment of the stack's processes."""
    # Another installation's settings must not leak in; connections and variables by environment may.
    whole = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW__")}
    # A proxy between the stack's own processes would only be in the way.
    for name in ("NO_PROXY", "no_proxy"):
        whole[name] = ",".join(filter(None, [whole.get(name), LOOPBACK, "localhost"]))
    return whole | dict(environment)


def _derived(home: Home, environment: Mapping[str, str]) -> dict[str, str]:
    url = f"http://{LOOPBACK}:{environment['ALMANAC_PORT']}"
    small = str(max(4, min(16, 2 * (os.cpu_count() or 2))))
    return {
        "ALMANAC_HOME": str(home.folder),
        "ALMANAC_URL": url,
        "ALMANAC_LOGIN": "admin",
        "ALMANAC_PASSWORD": environment["ALMANAC_ADMIN_PASSWORD"],
        "ALMANAC_OUTBOX": str(home.outbox),
        "ALMANAC_STORAGE": str(home.storage),
        "ALMANAC_LOGS": str(home.logs),
        "LAB_URL": f"http://{LOOPBACK}:{environment['LAB_PORT']}",
        "MODELS_URL": f"http://{LOOPBACK}:{environment['MODELS_PORT']}",
        "ARCVEST_APP_URL": f"http://{LOOPBACK}:{environment['ARCVEST_APP_PORT']}",
        "NIFYA_BOE_URL": f"http://{LOOPBACK}:{environment['GAZETTES_PORT']}/datosabiertos/api/boe",
        "NIFYA_DOGA_URL": f"http://{LOOPBACK}:{environment['GAZETTES_PORT']}/doga",
        "NIFYA_GAZETTES_PRIVATE": "true",
        "ARCVEST_FEED_HOSTS": f"{LOOPBACK}:{environment['FEEDS_PORT']}",
        "ARCVEST_FEEDS_PRIVATE": "true",
        "ARCVEST_NEWS_FEEDS": f"http://{LOOPBACK}:{environment['FEEDS_PORT']}/arcvest/news",
        "ARCVEST_BLOOMBERG_FEEDS": f"http://{LOOPBACK}:{environment['FEEDS_PORT']}/arcvest/bloomberg",
        "ARCVEST_MAIL_HOST": LOOPBACK,
        "ARCVEST_MAIL_PORT": environment["IMAP_PORT"],
        "ARCVEST_MAIL_LOGIN": "ideas",
        "ARCVEST_MAIL_PASSWORD": environment["IMAP_PASSWORD"],
        "ARCVEST_MAIL_SECURITY": "none",
        "POSTGRES_HOST": LOOPBACK,
        "POSTGRES_USER": ROLE,
        "AIRFLOW_DB_URI": database_uri(environment, "airflow"),
        "AIRFLOW_HOME": str(home.airflow),
        # Zone data comes from the pinned package; the machine's own may be years old.
        "PYTHONTZPATH": "",
        "PYTHONPATH": os.pathsep.join([str(home.project), str(home.project / "plugins")]),
        "PYTHONUNBUFFERED": "1",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__DAGS_FOLDER": str(home.project / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(home.project / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PARALLELISM": small,
        # Forkserver brought small machines to a standstill.
        "AIRFLOW__CORE__MP_START_METHOD": "fork",
        "AIRFLOW__CORE__TEST_CONNECTION": "Enabled",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{a}:{b}" for a, b in LOGINS.items()),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(home.passwords),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
        "AIRFLOW__API__HOST": LOOPBACK,
        "AIRFLOW__API__PORT": environment["ALMANAC_PORT"],
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": database_uri(environment, "airflow", "postgresql+psycopg"),
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(home.logs / "tasks"),
        "AIRFLOW__LOGGING__COLORED_CONSOLE_LOG": "False",
        "AIRFLOW__LOGGING__DAG_PROCESSOR_CHILD_PROCESS_LOG_DIRECTORY": str(home.logs / "dag-processor"),
        # From 2.0 s to 0.6 s for one trivial task.
        "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.1",
        # On one machine a task that is silent for a minute is lost, not far away.
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "60",
        # A scheduler looks for the tasks of one that was killed when it starts, too early to call the other dead,
        # and then each five minutes by default: until then nobody misses them.
        "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "30",
        # A DAG file that somebody has just written would take the default five minutes to show.
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "10",
        # A file that has changed is parsed at once; parsing all others twice a minute took a quarter of a core.
        # Seldomer still is no good: a run that ends while its file is parsed may leave its DAG marked as full,
        # until it is parsed again.
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "60",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
    } | {f"ALMANAC_{login.upper()}_LOGIN": login for login in LOGINS}


def _settings_uris(home: Home, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the URI of every Postgres connection that airflow_settings.yaml has, by its name."""
    uris = {}
    for name, connection in load(home.settings, environment).to_databases():
        login, password = (quote(text or "", safe="") for text in (connection.login, connection.password))
        where = f"{connection.host}:{connection.port}/{quote(name, safe='')}"
        uris[f"{connection.conn_id.upper()}_URI"] = f"postgresql://{login}:{password}@{where}"
    return uris


def _ports(asked: Mapping[str, str], kept: Mapping[str, str]) -> dict[str, str]:
    wanted = {name: _asked_port(name, asked[name]) for name in _PORTS if asked.get(name)}
    for name, port in wanted.items():
        others = [other for other in wanted if other != name and wanted[other] == port]
        if others:
            raise StackError(f"{name}: {port} is {others[0]} too; each needs a port of its own")
    ports = dict(wanted)
    for name in _PORTS:
        if name not in ports:
            port = _number(kept.get(name, ""))
            while port is None or port in ports.values() or not is_free(port):
                port = free_port()
            ports[name] = port
    return {name: str(ports[name]) for name in _PORTS}


def _asked_port(name: str, text: str) -> int:
    port = _number(text)
    if port is None:
        raise StackError(f"{name}: {text[:60]!r} is not a port")
    if not is_free(port):
        raise StackError(f"{name}: port {port} of {LOOPBACK} is in use; free it, or set another {name}")
    return port


def _number(text: str) -> int | None:
    """Return the port that a text is, or None if it is none."""
    digits = text.isascii() and text.isdigit() and len(text) <= len(str(_HIGHEST_PORT))
    return int(text) if digits and 0 < int(text) <= _HIGHEST_PORT else None
