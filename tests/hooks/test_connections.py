"""Connections: found in every process of Airflow, read as typed values, never shown with secrets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hooks.connections import Access, UnknownConnection, access
from include.errors import BadInput, Permanent
from tests.hooks.letters import SECRET, connection
from tests.hooks.processes import ROOT, told


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Look connections up in Airflow's own processes, with a metadata database of their own."""
    home = tmp_path_factory.mktemp("airflow")
    said = told(
        "-m",
        "tests.hooks.airflow_process",
        marked="found: ",
        AIRFLOW_HOME=str(home),
        AIRFLOW__CORE__DAGS_FOLDER=str(ROOT / "tests" / "hooks" / "look_up_dag"),
        AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=f"sqlite:///{home}/airflow.db",
    )
    return json.loads(said)


STORED = [SECRET, "http://127.0.0.1:9/relay/v1", "resend"]


def test_in_a_task(found: dict[str, Any]) -> None:
    """R3: a worker asks the API server; what was stored arrives exactly, and what is missing is told."""
    assert found["task"] == {"stored": STORED, "nowhere": "UnknownConnection"}


def test_in_the_scheduler(found: dict[str, Any]) -> None:
    """A listener runs amid the scheduler's transaction, where Airflow's own look-up finds nothing."""
    assert found["scheduler"] == {
        "plain": "AirflowNotFoundException",
        "stored": STORED,
        "nowhere": "UnknownConnection",
    }


def test_in_a_scheduler_that_starts(found: dict[str, Any]) -> None:
    """Listeners run before the scheduler says that it is one; Airflow then looks into the environment."""
    assert found["starting"] == {"stored": STORED, "nowhere": "UnknownConnection"}


def test_the_test_button_in_the_api_server(found: dict[str, Any]) -> None:
    """The hook finds its connection there too; the answer names the address and no secret."""
    works, answer = found["button"]
    assert not works
    assert "127.0.0.1:9" in answer
    assert SECRET not in answer


def test_a_database_that_fails_is_an_outage(found: dict[str, Any]) -> None:
    """A restart of Airflow's database must not read as "no such connection", which fails a task for good."""
    assert found["outage"] == {"stored": "Outage"}


def test_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """R3: AIRFLOW_CONN_X as a URI with every awkward sign, outside of any process of Airflow."""
    monkeypatch.setenv(
        "AIRFLOW_CONN_LAB", "http://ann:p%2Fs%40s%3A%25%231@https%3A%2F%2Flab.test%2Fapi%2Fv1:8443/?a=b%26c"
    )
    said = access("lab")
    assert (said.login, said.password, said.host) == ("ann", SECRET, "https://lab.test/api/v1")
    assert said.base_url() == "https://lab.test:8443/api/v1"
    assert said.extra == {"a": "b&c"}


def test_none_of_that_name() -> None:
    """The error says what to do about it."""
    with pytest.raises(UnknownConnection, match="AIRFLOW_CONN_NOWHERE") as caught:
        access("nowhere")
    assert isinstance(caught.value, Permanent)


@pytest.mark.parametrize("extra", ["[1]", '"text"', '{"api_key": "s3cret"', "null "])
def test_an_extra_that_is_no_object(monkeypatch: pytest.MonkeyPatch, extra: str) -> None:
    """A broken extra would otherwise read as an empty one, and defaults would stand in for settings."""
    monkeypatch.setenv("AIRFLOW_CONN_LAB", json.dumps({"conn_type": "http", "extra": extra}))
    with pytest.raises(BadInput, match="connection lab: extra") as caught:
        access("lab")
    assert "s3cret" not in str(caught.value)


def test_no_secret_in_its_repr() -> None:
    """R3: a connection that lands in a traceback or a log shows neither password nor extra."""
    shown = repr(connection("host.test", SECRET, api_key="s3cret"))
    assert SECRET not in shown
    assert "s3cret" not in shown
    assert "a_mail" in shown


def test_what_a_log_gets_is_one_line() -> None:
    """R3: a service's answer must not write lines of its own into the log, nor what a database can't hold."""
    said = connection("host.test", SECRET)
    assert said.for_log(f"first\r\n  second\x00\x1b[31m {SECRET}\u2028") == "first second[31m ***"
    assert len(said.for_log("x" * 10_000)) == 500


def test_secrets_are_taken_out_of_a_text() -> None:
    """R3: as written, quoted as in a URL, and those nested in the extra; other values stay readable."""
    said = connection("host.test", SECRET, folder="/srv", oauth={"client_secret": "s3cret"})
    text = f"{SECRET} p%2Fs%40s%3A%25%231 s3cret /srv host.test"
    assert said.without_secrets(text) == "*** *** *** /srv host.test"


@pytest.mark.parametrize(
    ("parts", "url"),
    [
        ({"host": "https://x.test/a/b"}, "https://x.test/a/b"),
        ({"host": "https://x.test/a/b/"}, "https://x.test/a/b"),
        ({"host": "x.test"}, "https://x.test"),
        ({"host": "x.test", "schema": "http", "port": 81}, "http://x.test:81"),
        ({"host": "x.test", "schema": "v1"}, "https://x.test/v1"),
        ({"host": "https://x.test/a", "port": 81}, "https://x.test:81/a"),
        ({"host": "https://x.test:80/a", "port": 81}, "https://x.test:80/a"),
        ({"host": "other.test", "extra": {"base_url": "http://x.test/é"}}, "http://x.test/é"),
        ({"host": None}, "https://default.test"),
    ],
)
def test_base_url(parts: dict[str, Any], url: str) -> None:
    """R3: a base URL keeps its path in every form in which people write a connection."""
    assert _access(**parts).base_url("https://default.test") == url


@pytest.mark.parametrize(
    "host",
    [
        "ftp://x.test", "https://", "https://x.test/?a=b", "https://ann:s3cret@x.test", "https://x.test:port",
        "https://x.test/?key=s3cret", "https://ann:s3cret@x.test:port", "ftp://x.test/#s3cret",
    ],
)  # fmt: skip
def test_no_base_url(host: str) -> None:
    """A login in the URL would land in logs; other forms would send requests to the wrong place."""
    with pytest.raises(BadInput, match="base URL") as caught:
        _access(host=host).base_url()
    assert "s3cret" not in str(caught.value)


def test_values_of_the_extra() -> None:
    """Airflow's form gives numbers as numbers or text, and empty fields as empty text."""
    said = connection(a="1.5", b=2, c="", d="true", e=False)
    assert [said.number(name, 7, 0, 9) for name in ("a", "b", "c", "none")] == [1.5, 2, 7, 7]
    assert [said.flag(name, default=True) for name in ("c", "d", "e")] == [True, True, False]
    assert said.text("c", "default") == "default"


@pytest.mark.parametrize("value", ["soon", "nan", True, [1], 10, -1])
def test_numbers_out_of_bounds(value: Any) -> None:
    """A timeout of a thousand years or of nothing is a slip of the finger."""
    with pytest.raises(BadInput, match="extra 'n'"):
        connection(n=value).number("n", 7, 0, 9)


def _access(host: str | None = None, **parts: Any) -> Access:
    return Access(
        "a", "http", host, parts.get("port"), parts.get("schema"), None, None, parts.get("extra", {})
    )
