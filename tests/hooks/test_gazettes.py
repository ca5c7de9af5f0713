"""The gazettes' hook, against a server on loopback that publishes as the BOE does and fails as servers do."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest

from hooks.connections import access
from hooks.gazettes import LARGEST_ANSWER, GazetteHook, OpenData, gazette, gazettes
from include.errors import AlmanacError, BadInput, Outage, Refused
from stack.fakes.gazette_server import SEARCH, SUMMARY, TOKEN, GazetteServer
from stack.fakes.http_fake import Sent

MONDAY, TUESDAY, WEDNESDAY = date(2026, 11, 23), date(2026, 11, 24), date(2026, 11, 25)
GRANT = {
    "title": "Resolución por la que se convocan subvenciones de energía solar",
    "identifier": "BOE-B-2026-1",
}
POSTS = {"title": "Orden por la que se convocan oposiciones", "identifier": "BOE-A-2026-2"}


@pytest.fixture
def server() -> Iterator[GazetteServer]:
    """Run gazettes with one entry on Monday, two on Wednesday, and no edition on Tuesday."""
    with GazetteServer() as running:
        running.editions = {"20261123": [GRANT], "20261125": [POSTS, {**GRANT, "identifier": "BOE-B-2026-3"}]}
        yield running


@pytest.fixture
def connect(server: GazetteServer, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that makes the parser of the connection nifya_boe, whose extra can be changed."""

    def connected(host: str | None = None, **changed: Any) -> OpenData:
        extra = {"private_addresses": True} | changed
        parts = {
            "conn_type": "almanac_gazette", "host": host or f"{server.url}/datosabiertos/api/boe", "extra": extra,
        }  # fmt: skip
        monkeypatch.setenv("AIRFLOW_CONN_NIFYA_BOE", json.dumps(parts))
        found = gazette("nifya_boe")
        assert isinstance(found, OpenData)
        return found

    return connected


def service(monkeypatch: pytest.MonkeyPatch, url: str, password: str = TOKEN) -> Any:
    """Return the parser of the connection nifya_doga, which is a service."""
    parts = {
        "conn_type": "almanac_gazette", "host": url, "password": password,
        "extra": {"kind": "service", "private_addresses": True},
    }  # fmt: skip
    monkeypatch.setenv("AIRFLOW_CONN_NIFYA_DOGA", json.dumps(parts))
    return gazette("nifya_doga")


def test_what_the_prompts_ask_for_comes_from_every_day(connect: Any, server: GazetteServer) -> None:
    """S3: 404 is a day without an edition; an entry that stands alone, as Monday's does, is read like a list's."""
    found = connect().new_content(["Subvención energía"], MONDAY, WEDNESDAY)
    assert [one.url.rpartition("=")[2] for one in found] == ["BOE-B-2026-1", "BOE-B-2026-3"]
    assert found[0].metadata["date"] == "2026-11-23"
    assert found[0].metadata["prompts"] == ["Subvención energía"]
    assert sorted(server.asked) == [f"{SUMMARY}202611{n}" for n in (23, 24, 25)]


def test_many_subscriptions_cost_one_request_a_day(connect: Any, server: GazetteServer) -> None:
    """A thousand subscriptions must not ask the gazette a thousand times for the same day."""
    boe = connect()
    for prompt in ("oposiciones", "subvenciones", "nada de esto"):
        boe.new_content([prompt], MONDAY, WEDNESDAY)
    assert len(server.asked) == 3


BOMB = gzip.compress(b'{"data":"' + b" " * (LARGEST_ANSWER + 1) + b'"}')


@pytest.mark.parametrize(
    ("served", "error", "says"),
    [
        (Sent(status=500), Outage, "HTTP 500"),
        (Sent(status=503, headers={"Retry-After": "60"}), Outage, "HTTP 503"),
        (Sent(status=403), Outage, "HTTP 403"),
        (Sent(status=429), Outage, "HTTP 429"),
        (Sent(status=400), Refused, "HTTP 400"),
        (Sent(body=BOMB, headers={"Content-Encoding": "gzip"}), Refused, "larger than"),
        (Sent(body=b"<html>", content_type="text/html"), Outage, "without readable JSON"),
        (Sent(body=b"[" * 100_000), Outage, "without readable JSON"),
        (Sent(body=b"9" * 10_000), Outage, "without readable JSON"),
        (Sent(body=b"\xff\xfe\x00"), Outage, "without readable JSON"),
        (Sent(body=b"null"), Outage, "without a summary"),
        (Sent(body=b'{"data": {"sumario": {"diario": "none"}}}'), Outage, "without a summary"),
        (Sent(body=b"{}", delay=5), Outage, "in time"),
        (Sent(body=b"{" + b" " * 100, drip=0.1), Outage, "in time"),
    ],
)
def test_a_bad_answer(
    connect: Any, server: GazetteServer, served: Sent, error: type[AlmanacError], says: str
) -> None:
    """S3: 500 is an outage and tried again; an answer without end, or that is no summary, ends in bounds."""
    server.answers[f"{SUMMARY}20261124"] = served
    began = time.monotonic()
    connect()
    with pytest.raises(error, match=says):
        OpenData(access("nifya_boe"), one=1).new_content(["x"], MONDAY, WEDNESDAY)
    assert time.monotonic() - began < 4


@pytest.mark.parametrize(
    ("location", "says"),
    [
        ("http://169.254.169.254/latest/meta-data/", "redirected to 169.254.169.254 is not among the hosts"),
        ("http://localhost:1/", "not among the hosts"),
        ("file:///etc/passwd", "not an http"),
        ("https://www.boe.es.evil.test/", "not among the hosts"),
    ],
)
def test_a_redirect_leads_to_allowed_hosts_alone(
    connect: Any, server: GazetteServer, location: str, says: str
) -> None:
    """S3: a gazette must not make this machine ask the cloud's metadata service, or anything inside."""
    server.answers[f"{SUMMARY}20261123"] = Sent(status=302, headers={"Location": location})
    with pytest.raises(BadInput, match=says):
        connect().new_content(["x"], MONDAY, MONDAY)
    assert len(server.asked) == 1


def test_a_redirect_within_the_allowed_hosts_is_followed(connect: Any, server: GazetteServer) -> None:
    """S3: the BOE may move its API to another path."""
    server.answers[f"{SUMMARY}20261124"] = Sent(status=301, headers={"Location": f"{SUMMARY}20261123"})
    assert connect().new_content(["subvenciones"], TUESDAY, TUESDAY)


@pytest.mark.parametrize(
    "host", ["http://169.254.169.254/boe", "http://10.0.0.1/boe", "http://127.0.0.1:9/boe"]
)
def test_an_inner_address_is_refused_unless_it_is_configured(connect: Any, host: str) -> None:
    """S3: link-local and private addresses are asked only where the connection says that they are meant."""
    with pytest.raises(BadInput, match="no public address"):
        connect(host, private_addresses=False).new_content(["x"], MONDAY, MONDAY)


def test_without_a_host_the_boe_itself_is_asked_and_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """The default needs no setting, and allows the BOE's own hosts alone."""
    monkeypatch.setenv("AIRFLOW_CONN_NIFYA_BOE", json.dumps({"conn_type": "almanac_gazette"}))
    boe: Any = gazette("nifya_boe")
    assert boe._url(MONDAY) == "https://www.boe.es/datosabiertos/api/boe/sumario/20261123"  # noqa: SLF001 - not asked
    assert boe._allowed.names == {"www.boe.es", "boe.es"}  # noqa: SLF001 - as above


def test_what_was_read_before_an_outage_is_not_asked_for_again(connect: Any, server: GazetteServer) -> None:
    """A catch-up over many editions must get on at every try, or a slow gazette is never caught up with."""
    boe = connect()
    server.answers[f"{SUMMARY}20261125"] = Sent(503, delay=0.3)
    with pytest.raises(Outage):
        boe.new_content(["subvenciones"], MONDAY, WEDNESDAY)
    server.answers.clear()
    server.asked.clear()
    assert len(boe.new_content(["subvenciones"], MONDAY, WEDNESDAY)) == 2
    assert server.asked == [f"{SUMMARY}20261125"]


def test_too_many_days_are_refused(connect: Any) -> None:
    """A watermark in the distant past must not become ten thousand requests."""
    with pytest.raises(BadInput, match="are more than 400"):
        connect().new_content(["x"], date(2020, 1, 1), MONDAY)


def test_a_parser_service_is_asked_with_its_token(
    server: GazetteServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The DOGA's parser finds by itself; what it says is checked like any stranger's words."""
    good = {"title": "Axudas á enerxía", "summary": "Xunta", "url": "https://www.xunta.gal/1", "metadata": {}}
    server.content = [
        {**good, "metadata": {"date": "2026-11-24", "deep": {"no": 1}}},
        {**good, "metadata": {"date": "2026-11-22"}, "url": "https://www.xunta.gal/2"},
        {**good, "metadata": {"date": "2026-11-24"}, "url": "javascript:alert(1)"},
        {**good, "metadata": {"date": "2026-11-24"}, "title": "axudas\x00", "url": "https://www.xunta.gal/3"},
    ]
    found = service(monkeypatch, f"{server.url}/doga").new_content(["axudas"], MONDAY, WEDNESDAY)
    assert [(one.title, one.url) for one in found] == [
        ("Axudas á enerxía", "https://www.xunta.gal/1"),
        ("axudas", "https://www.xunta.gal/3"),
    ]
    assert found[0].metadata == {"date": "2026-11-24"}
    with pytest.raises(Outage, match="HTTP 401"):
        service(monkeypatch, f"{server.url}/doga", "wrong").new_content(["x"], MONDAY, MONDAY)
    server.answers[SEARCH] = Sent(status=307, headers={"Location": "http://evil.test/"})
    with pytest.raises(Outage, match="HTTP 307"):
        service(monkeypatch, f"{server.url}/doga").new_content(["x"], MONDAY, MONDAY)
    server.answers[SEARCH] = Sent(body=b'{"content": 7}')
    with pytest.raises(Outage, match="without a list of content"):
        service(monkeypatch, f"{server.url}/doga").new_content(["x"], MONDAY, MONDAY)


def test_parsers_are_chosen_by_name(
    connect: Any, server: GazetteServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One hook stands before all parsers; each has a connection of its own."""
    connect()
    service(monkeypatch, f"{server.url}/doga")
    both = gazettes()
    assert both.new_content("boe", ["subvenciones"], MONDAY, MONDAY)
    assert both.new_content("doga", ["subvenciones"], MONDAY, MONDAY) == []
    assert server.asked == [f"{SUMMARY}20261123", SEARCH]


def test_the_test_button(connect: Any, server: GazetteServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow's form has a Test button; it says what came, or what is wrong."""
    connect()
    ok, says = GazetteHook("nifya_boe").test_connection()
    assert ok, says
    assert "0 entries" in says
    odd = {"conn_type": "almanac_gazette", "extra": {"kind": "oracle"}}
    monkeypatch.setenv("AIRFLOW_CONN_NIFYA_BOE", json.dumps(odd))
    assert GazetteHook("nifya_boe").test_connection() == (
        False,
        "connection nifya_boe: extra 'kind' must be open_data or service: 'oracle'",
    )
    service(monkeypatch, f"{server.url}/doga")
    assert GazetteHook("nifya_doga").test_connection() == (True, "The parser answered with 0 entries")
    service(monkeypatch, f"{server.url}/doga", "wrong")
    assert not GazetteHook("nifya_doga").test_connection()[0]
