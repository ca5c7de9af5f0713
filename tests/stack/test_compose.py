"""docker-compose.yaml, Dockerfile and CI, as far as a machine without an engine can tell whether they work."""

from __future__ import annotations

import fnmatch
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from stack.home import PROJECT
from stack.settings_file import load

VARIABLE = re.compile(r"\$\{(\w+)(?:(:?[-?])([^}]*))?\}")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    """Return the compose file as it is written."""
    return yaml.safe_load((PROJECT / "docker-compose.yaml").read_text(encoding="utf-8"))


def interpolated(value: Any, given: dict[str, str]) -> Any:
    """Fill in variables as Compose does; `$$` is a plain dollar. Fails for a required one that is not given."""
    if isinstance(value, dict):
        return {key: interpolated(inner, given) for key, inner in value.items()}
    if isinstance(value, list):
        return [interpolated(inner, given) for inner in value]
    if not isinstance(value, str):
        return value

    def one(match: re.Match[str]) -> str:
        name, operator, default = match.groups()
        found = given.get(name)
        if operator == ":?":
            assert found, f"{name} is required"
        if operator == ":-":
            return found or default
        if operator == "-":
            return default if found is None else found
        assert found is not None, f"{name} has neither a value nor a default"
        return found

    return VARIABLE.sub(one, value.replace("$$", "\0")).replace("\0", "$")


def dot_env(*, commented: bool) -> dict[str, str]:
    """Return the names of .env.example; the optional ones are commented out there."""
    pattern = r"^#(\w+)=(.*)$" if commented else r"^(\w+)=(.*)$"
    return dict(re.findall(pattern, (PROJECT / ".env.example").read_text(encoding="utf-8"), re.MULTILINE))


@pytest.fixture(scope="module")
def services(compose: dict[str, Any]) -> dict[str, Any]:
    """Return the services with every variable filled in from .env.example alone."""
    given = {name: f"s3cret-{name.lower()}" for name in dot_env(commented=False)}
    return interpolated(compose["services"], given)


def schema_check(schema: str, path: str) -> None:
    """Hold that a file keeps a schema that comes with check-jsonschema."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(PROJECT / path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ("vendor.compose-spec", "docker-compose.yaml"),
        ("vendor.github-workflows", ".github/workflows/ci.yml"),
    ],
)
def test_the_file_keeps_its_schema(schema: str, path: str) -> None:
    """A key that is misspelled is ignored by some engines and refused by others."""
    schema_check(schema, path)


def test_every_part_of_the_platform_is_there(services: dict[str, Any]) -> None:
    """The same platform on CeleryExecutor: Postgres, Redis, a mail catcher, the console in the API server."""
    assert set(services) == {
        "postgres", "redis", "mail", "prepare", "api-server", "scheduler", "dag-processor", "triggerer", "worker",
    }  # fmt: skip
    assert services["worker"]["environment"]["AIRFLOW__CORE__EXECUTOR"] == "CeleryExecutor"


def test_images_are_pinned(services: dict[str, Any]) -> None:
    """A tag that moves makes tomorrow's platform another one."""
    images = [service["image"] for service in services.values() if "build" not in service]
    source = (PROJECT / "Dockerfile").read_text(encoding="utf-8")
    images += re.findall(r"^FROM (\S+)", source, re.MULTILINE)
    for image in images:
        assert re.search(r":v?\d+\.\d+\.\d+(-\w+)*$|:\d+\.\d+-\w+$", image), image


def test_env_example_names_every_variable_and_no_other(compose: dict[str, Any]) -> None:
    """A person fills in that file: what is missing there is found out only when a container stops."""
    used = VARIABLE.findall(yaml.safe_dump(compose, width=10_000))
    required = {name for name, operator, _ in used if operator == ":?"}
    optional = {name for name, operator, _ in used if operator in {":-", "-"}}
    plain = {name for name, operator, _ in used if not operator}
    assert plain <= required
    assert set(dot_env(commented=False)) == required
    assert set(dot_env(commented=True)) == optional
    assert not any(dot_env(commented=False).values())


def test_no_secret_is_written_down(compose: dict[str, Any]) -> None:
    """Every secret comes from the environment, and without a default: a default is known to everybody."""
    for service, content in compose["services"].items():
        for name, value in (content.get("environment") or {}).items():
            if re.search("PASSWORD$|SECRET|TOKEN|KEY$|AUTH$", name):
                assert re.fullmatch(r"\$\{\w+(:\?[^}]*|:-)\}", str(value)), (service, name)


def test_ports_are_open_on_loopback_alone(services: dict[str, Any]) -> None:
    """A plain `8080:8080` would be open to every network, past the machine's firewall."""
    open_ports = [port for service in services.values() for port in service.get("ports", [])]
    assert len(open_ports) == 2
    assert all(port.startswith("127.0.0.1:") for port in open_ports)


def test_every_file_and_volume_exists(compose: dict[str, Any]) -> None:
    """A path that does not exist is made as an empty folder by the engine, and the script in it never runs."""
    for service in compose["services"].values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("."):
                assert (PROJECT / source).is_file(), source
            else:
                assert source in compose["volumes"], source
        for other, condition in (service.get("depends_on") or {}).items():
            target = compose["services"][other]
            if condition["condition"] == "service_healthy":
                assert "healthcheck" in target, other


def test_every_command_exists(services: dict[str, Any], tmp_path: Path) -> None:
    """Each command line is given to the very parser that the container would give it to."""
    airflow = []
    for service in services.values():
        commands = [service.get("command"), (service.get("healthcheck") or {}).get("test", [None])[1:]]
        for command in filter(None, commands):
            if command[0] == "airflow":
                airflow.append(command[1:])
            elif command[:2] == ["python", "-m"]:
                assert importlib.util.find_spec(command[2]) is not None, command
            elif command[:2] == ["python", "-c"]:
                compile(command[2], "healthcheck", "exec")
            elif command[:2] == ["sh", "-c"]:
                subprocess.run(["/bin/sh", "-n", "-c", command[2]], check=True)
            else:
                assert command[0] in {"pg_isready", "redis-cli"}, command
    cmd = re.search(r"^CMD \[(.+)\]$", (PROJECT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    assert cmd is not None
    airflow.append(yaml.safe_load(f"[{cmd[1]}]")[1:])
    assert len(airflow) >= 7
    code = (
        "import json, sys\n"
        "from airflow.cli.cli_parser import get_parser\n"
        "for command in json.loads(sys.argv[1]): get_parser().parse_args(command)\n"
    )
    environment = os.environ | {"AIRFLOW_HOME": str(tmp_path), "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor"}
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(airflow)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_settings_are_filled_by_the_containers_environment(services: dict[str, Any]) -> None:
    """airflow_settings.yaml serves both stacks: what it asks for must be in the containers too."""
    environment = services["prepare"]["environment"]
    settings = load(PROJECT / "airflow_settings.yaml", environment)
    by_id = {connection.conn_id: connection for connection in settings.connections}
    assert (by_id["clearpath_db"].host, by_id["clearpath_db"].port) == ("postgres", 5432)
    email = by_id["clearpath_email"]
    assert (email.extra["provider"], email.host, email.port) == ("smtp", "mail", 1025)


def test_the_catchers_default_gives_way_to_a_real_provider(compose: dict[str, Any]) -> None:
    """With Resend chosen and the server's fields left empty, nothing of the catcher may remain."""
    given = dict.fromkeys(dot_env(commented=False), "x" * 20)
    empty = {f"CLEARPATH_EMAIL_{name}": "" for name in ("HOST", "PORT", "SECURITY")}
    given |= empty | {"CLEARPATH_EMAIL_PROVIDER": "resend", "CLEARPATH_EMAIL_PASSWORD": "re_key"}
    environment = interpolated(compose["services"]["prepare"]["environment"], given)
    settings = load(PROJECT / "airflow_settings.yaml", environment)
    email = next(c for c in settings.connections if c.conn_id == "clearpath_email")
    assert (email.host or None, email.port, email.password) == (None, None, "re_key")
    assert email.extra["provider"] == "resend"


def test_the_role_is_made_as_in_the_embedded_stack() -> None:
    """The script runs once, over an empty volume, where nobody watches: its shell must at least be sound."""
    script = PROJECT / "stack" / "compose" / "role.sh"
    subprocess.run(["/bin/sh", "-n", str(script)], check=True)
    said = script.read_text(encoding="utf-8")
    assert "CREATE ROLE almanac LOGIN CREATEDB CREATEROLE" in said
    assert "CREATE DATABASE airflow OWNER almanac" in said


def ignored(path: str) -> bool:
    """Say whether .dockerignore keeps a path out of the image; the last pattern that fits decides."""
    out = False
    for line in (PROJECT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        pattern = line.strip().removeprefix("!")
        if not pattern or pattern.startswith("#"):
            continue
        parts = Path(path).parts
        above = ["/".join(parts[: n + 1]) for n in range(len(parts))]
        loose = pattern.removeprefix("**/")
        names = above if loose == pattern else [Path(each).name for each in above]
        if any(fnmatch.fnmatchcase(name, loose) for name in names):
            out = not line.startswith("!")
    return out


def copied(rest: str, root: Path) -> None:
    """Do a COPY step of the Dockerfile in a folder."""
    given, to = rest.split()
    assert not ignored(given), given
    target = root / to / Path(given).name if to.endswith("/") else root / to
    target.parent.mkdir(parents=True, exist_ok=True)
    if (PROJECT / given).is_dir():
        shutil.copytree(PROJECT / given, target, dirs_exist_ok=True)
    else:
        shutil.copy(PROJECT / given, target)


@pytest.mark.install
@pytest.mark.timeout(1200)
def test_the_images_steps_make_a_platform(tmp_path: Path) -> None:
    """COPY, RUN and CMD of the Dockerfile, done in a folder: what they leave must be able to start."""
    root = tmp_path / "opt"
    home = tmp_path / "var"
    root.mkdir()
    # What the image calls python3 is here whatever runs the tests.
    (tmp_path / "python").mkdir()
    (tmp_path / "python" / "python3").symlink_to(sys.executable)

    def here(text: str) -> str:
        return text.replace("/opt/almanac", str(root)).replace("/var/lib/almanac", str(home))

    source = re.sub(r"\\\n\s*", "", (PROJECT / "Dockerfile").read_text(encoding="utf-8"))
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "PYTHON"))
    }
    steps = [line.partition(" ")[::2] for line in source.splitlines() if line and not line.startswith("#")]
    command: list[str] = []
    for step, rest in steps:
        match step:
            case "ENV":
                for name, value in (pair.split("=", 1) for pair in shlex.split(rest)):
                    path = f"{root}/.venv/bin:{os.environ['PATH']}"
                    environment[name] = path if name == "PATH" else here(value)
            case "COPY":
                copied(rest, root)
            case "RUN":
                python = environment | {"PATH": f"{tmp_path / 'python'}:{environment['PATH']}"}
                subprocess.run(["/bin/sh", "-c", here(rest)], cwd=root, env=python, check=True)
            case "CMD":
                command = yaml.safe_load(rest)
            case _:
                assert step in {"FROM", "WORKDIR", "USER"}, step
    done = subprocess.run(
        [str(root / ".venv" / "bin" / command[0]), *command[1:], "--help"],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    check = "from stack.home import here; from include.as_of import check_zone_data; check_zone_data(); print(here())"
    said = subprocess.run(
        [str(root / ".venv" / "bin" / "python"), "-c", check],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert str(home) in said.stdout
    for folder in ("airflow", "logs", "outbox", "storage"):
        assert (home / folder).is_dir()


def test_ci_comes_down_to_make_check() -> None:
    """What runs there must be what a person runs here; a second list of checks would drift."""
    workflow = yaml.safe_load((PROJECT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    runs = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    assert runs == [".ci/run"]
    script = PROJECT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    lines = script.read_text(encoding="utf-8").splitlines()
    assert [line.strip() for line in lines if "make" in line and not line.startswith("#")] == [
        "exec timeout --kill-after=60 4800 make check",
        "exec make check",
    ]
    subprocess.run(["/bin/sh", "-n", str(script)], check=True)
