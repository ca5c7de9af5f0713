"""The lab hook, against a small lab on loopback that speaks its API."""

from __future__ import annotations

import gzip
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote
from zoneinfo import ZoneInfo

import pytest

from hooks.connections import access
from hooks.lab import LARGEST_PAGE, HttpLab, lab
from include.clearpath.lab import Lab, LabPage
from include.clearpath.lab_records import SetAside, read
from include.errors import AlmanacError, BadInput, Outage, Refused
from stack.fakes.http_fake import Sent
from stack.fakes.lab_server import LabServer

TOKEN = "p/s@s:%#1"
NINE = datetime(2027, 3, 1, 9, tzinfo=UTC)


def record(record_id: str, created_at: datetime = NINE) -> dict[str, Any]:
    """Return a result as the lab sends it."""
    return {
        "id": record_id,
        "order_id": f"CP-{record_id}",
        "kit_serial_number": f"K{record_id}",
        "value": 148,
        "unit": "Bq/m3",
        "measured_at": "2027-02-20T12:00:00Z",
        "created_at": created_at.isoformat(),
    }


@pytest.fixture
def server() -> Iterator[LabServer]:
    """Run a lab of two results a page."""
    with LabServer(token=TOKEN, base_path="/partner/v1", page_size=2) as running:
        yield running


@pytest.fixture
def connect(server: LabServer, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that makes the hook for the connection, whose parts can be changed."""

    def connected(*, read: float = 5, total: float = 5, **changed: Any) -> HttpLab:
        parts = {"conn_type": "http", "host": server.url, "password": TOKEN, **changed}
        monkeypatch.setenv("AIRFLOW_CONN_CLEARPATH_LAB", json.dumps(parts))
        return HttpLab(access("clearpath_lab"), connect=1, read=read, total=total)

    return connected


def poll(lab: Lab, since: datetime | None = None) -> list[str]:
    """Return the ids that a whole poll gives."""
    ids, cursor = [], None
    while True:
        page = lab.results_since(since, cursor)
        ids += [r["id"] for r in page.records]
        if not (cursor := page.next_cursor):
            return ids


def test_a_password_and_a_path_round_trip(connect: Any, server: LabServer) -> None:
    """R3: a token with URL characters and a base URL with a path must reach the lab exactly as given."""
    server.add(record("1"))
    assert poll(connect()) == ["1"]
    assert server.asked[0].headers["Authorization"] == f"Bearer {TOKEN}"
    assert server.asked[0].path == "/partner/v1/results"


def test_a_port_beside_the_host_keeps_the_path(connect: Any, server: LabServer) -> None:
    """R3: Airflow's form has a field for the port; put behind the path it would ask for another address."""
    server.add(record("1"))
    port = int(server.url.split(":")[2].split("/")[0])
    assert poll(connect(host="http://127.0.0.1/partner/v1", port=port)) == ["1"]


def test_the_connection_may_be_a_uri(server: LabServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """R3: connections are also given as URIs, with the password and the base URL quoted."""
    server.add(record("1"))
    host = quote(server.url, safe="")
    monkeypatch.setenv("AIRFLOW_CONN_CLEARPATH_LAB", f"http://:{quote(TOKEN, safe='')}@{host}")
    assert poll(lab("clearpath_lab")) == ["1"]
    assert server.asked[0].headers["Authorization"] == f"Bearer {TOKEN}"


def test_the_constructor_asks_nothing(connect: Any, server: LabServer) -> None:
    """A DAG's import or a preview that never polls must not call the lab."""
    connect()
    made: Lab = lab("clearpath_lab")
    assert made is not None
    assert server.asked == []


def test_since_goes_out_as_an_instant(connect: Any, server: LabServer) -> None:
    """S1: the window's beginning must mean the same instant to the lab, whatever our offset is."""
    server.add(record("early", NINE - timedelta(microseconds=1)), record("on", NINE))
    local = NINE.astimezone(ZoneInfo("America/Edmonton"))
    assert poll(connect(), local) == ["on"]
    assert server.asked[0].since == "2027-03-01T09:00:00Z"


def test_a_since_without_an_offset_is_refused(connect: Any) -> None:
    """T4: a naive time would be read in whatever zone the process has."""
    with pytest.raises(BadInput, match="has no offset"):
        connect().results_since(datetime(2027, 3, 1))  # noqa: DTZ001 - the case itself


def test_equal_times_across_a_page_break_all_come(connect: Any, server: LabServer) -> None:
    """S1: two results of one instant on both sides of a page break must both come, once."""
    server.add(*[record(n) for n in "12345"])
    assert poll(connect()) == ["1", "2", "3", "4", "5"]
    assert [asked.cursor is None for asked in server.asked] == [True, False, False]


def test_a_result_created_during_the_poll_comes(connect: Any, server: LabServer) -> None:
    """S1: a result created between two pages is in this poll, or in the next one's overlap."""
    server.add(record("1"), record("2"), record("3"))
    server.appear_after(1, record("4", NINE + timedelta(seconds=1)))
    assert poll(connect()) == ["1", "2", "3", "4"]


def test_a_late_result_comes_with_the_overlap(connect: Any, server: LabServer) -> None:
    """S1: a result that reaches the lab's list two hours late lies before the newest; an overlap finds it."""
    server.add(record("1", NINE))
    assert poll(connect()) == ["1"]
    server.add(record("late", NINE - timedelta(hours=2)))
    assert poll(connect(), NINE) == ["1"]
    assert poll(connect(), NINE - timedelta(hours=24)) == ["late", "1"]


def test_a_slow_clock_stamps_the_lab_s_time(connect: Any) -> None:
    """S1: the lab's clock decides created_at; the fake must be able to run five minutes slow."""
    with LabServer(token=TOKEN, clock=timedelta(minutes=-5)) as slow:
        slow.add({"id": "1"})
        page = connect(host=slow.url).results_since(datetime.now(UTC) - timedelta(minutes=6))
        assert poll(connect(host=slow.url), datetime.now(UTC) - timedelta(minutes=1)) == []
    lag = datetime.now(UTC) - datetime.fromisoformat(page.records[0]["created_at"])
    assert timedelta(minutes=5) <= lag < timedelta(minutes=6)


def test_a_failing_second_page_is_an_outage(connect: Any, server: LabServer) -> None:
    """S1: page 2 fails; the poll must end as an outage after page 1, and give all on the next one."""
    server.add(*[record(n) for n in "123"])
    server.fail(2, Sent(status=500))
    with pytest.raises(Outage, match="HTTP 500"):
        poll(connect())
    assert poll(connect()) == ["1", "2", "3"]


@pytest.mark.parametrize("status", [401, 403, 408, 429, 500, 502, 503, 504, 599])
def test_the_lab_s_own_trouble_is_an_outage(connect: Any, server: LabServer, status: int) -> None:
    """Ruling 7: these say nothing about a result; the job tries again, and the message holds the status."""
    server.fail(1, Sent(status=status, body=b'{"error": "come back"}'))
    with pytest.raises(Outage) as outage:
        connect().results_since(None)
    assert f"answered HTTP {status}" in str(outage.value)
    assert "come back" in str(outage.value)
    assert "clearpath_lab" in str(outage.value)


@pytest.mark.parametrize("status", [400, 404, 409, 410, 414, 422])
def test_any_other_refusal_is_permanent(connect: Any, server: LabServer, status: int) -> None:
    """Ruling 7: a request that the lab won't take is the same an hour later; retrying hides it."""
    server.fail(1, Sent(status=status, body=b"<h1>no</h1>"))
    with pytest.raises(Refused, match=f"answered HTTP {status} .*<h1>no</h1>"):
        connect().results_since(None)


def test_retry_after_in_seconds(connect: Any, server: LabServer) -> None:
    """E3 for the lab: what it asked for is kept, so that nobody asks earlier."""
    server.fail(1, Sent(status=429, headers={"Retry-After": "120"}))
    with pytest.raises(Outage) as outage:
        connect().results_since(None)
    assert outage.value.retry_at is not None
    assert abs(outage.value.retry_at - datetime.now(UTC) - timedelta(seconds=120)) < timedelta(seconds=5)


def test_retry_after_as_a_date(connect: Any, server: LabServer) -> None:
    """E3 for the lab: the header's other form."""
    then = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    server.fail(1, Sent(status=503, headers={"Retry-After": format_datetime(then, usegmt=True)}))
    with pytest.raises(Outage) as outage:
        connect().results_since(None)
    assert outage.value.retry_at == then


@pytest.mark.parametrize("header", ["soon", "", "-5", "1e9", "NaN", "Mon, 99 Foo 2027"])
def test_an_unreadable_retry_after_is_no_instant(connect: Any, server: LabServer, header: str) -> None:
    """A header that nobody can read must not break the answer that it came with."""
    server.fail(1, Sent(status=429, headers={"Retry-After": header}))
    with pytest.raises(Outage) as outage:
        connect().results_since(None)
    assert outage.value.retry_at is None


def test_a_retry_after_of_centuries_is_cut(connect: Any, server: LabServer) -> None:
    """A lab that says "never again" by mistake must not stop the polling for good."""
    server.fail(1, Sent(status=429, headers={"Retry-After": "9" * 18}))
    with pytest.raises(Outage) as outage:
        connect().results_since(None)
    assert outage.value.retry_at is not None
    assert outage.value.retry_at < datetime.now(UTC) + timedelta(days=8)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<html>Maintenance</html>", "without readable JSON: <html>Maintenance"),
        (b"", "without readable JSON: \\(no body\\)"),
        (b"\xff\xfe\x00", "without readable JSON"),
        (b'{"results": [', "without readable JSON"),
        (b"[" * 200_000, "without readable JSON"),
        (b'{"results": ' + b"1" * 5_000 + b"}", "without a list of results"),
        (b"[]", "without a list of results"),
        (b'{"results": {"id": 1}}', "without a list of results"),
        (b'{"error": "x"}', "without a list of results"),
        (b'{"results": [], "next_cursor": 7}', "unreadable next_cursor"),
        (b'{"results": [], "next_cursor": "\\ud800"}', "unreadable next_cursor"),
        (b'{"results": [], "next_cursor": "' + b"x" * 5_000 + b'"}', "unreadable next_cursor"),
    ],
    ids=[
        "html",
        "empty",
        "bytes",
        "half",
        "deep",
        "digits",
        "list",
        "object",
        "error",
        "number",
        "surrogate",
        "long",
    ],
)
def test_what_is_no_page_is_an_outage(connect: Any, server: LabServer, body: bytes, reason: str) -> None:
    """Spec 2.5: an unexpected format is logged with an excerpt; never "0 results, success"."""
    server.fail(1, Sent(body=body))
    with pytest.raises(Outage, match=reason) as outage:
        connect().results_since(None)
    assert "HTTP 200" in str(outage.value)
    assert len(str(outage.value)) < 500


def test_a_204_is_no_page(connect: Any, server: LabServer) -> None:
    """An empty success must not count as a page without results."""
    server.fail(1, Sent(status=204))
    with pytest.raises(Outage, match="HTTP 204"):
        connect().results_since(None)


def test_a_cursor_that_repeats_is_an_outage(connect: Any, server: LabServer) -> None:
    """A lab that gives a page's own cursor as the next one would keep the job asking for ever."""
    server.fail(1, Sent(body=b'{"results": [], "next_cursor": "again"}'))
    with pytest.raises(Outage, match="own cursor"):
        connect().results_since(None, "again")


def test_a_record_that_is_no_object_stays_as_it_came(connect: Any, server: LabServer) -> None:
    """S2: the job sets such a record aside; the hook must neither drop it nor fail the page."""
    server.fail(1, Sent(body=b'{"results": [7, null, {"value": NaN, "other": 1e999, "third": 4.10}]}'))
    assert connect().results_since(None) == LabPage(
        (7, None, {"value": "NaN", "other": "1e999", "third": 4.1}), None
    )


@pytest.mark.parametrize(
    ("odd", "read"),
    [
        (b"1" * 5_000, "1" * 5_000),
        (b"-" + b"1" * 101, "-" + "1" * 101),
        (b"1" * 100, int("1" * 100)),
        (b"1e999999", "1e999999"),
    ],
    ids=["huge", "negative", "large", "beyond"],
)
def test_a_number_that_python_does_not_read(connect: Any, server: LabServer, odd: bytes, read: Any) -> None:
    """One record's value must not make the whole page unreadable, today and at every later poll."""
    server.fail(1, Sent(body=b'{"results": [{"id": "a", "value": ' + odd + b'}, {"id": "b", "value": 7}]}'))
    page = connect().results_since(None)
    assert page.records == ({"id": "a", "value": read}, {"id": "b", "value": 7})


@pytest.mark.parametrize("deep", [5_000, 200_000])
@pytest.mark.parametrize(("opens", "closes"), [(b"[", b"]"), (b'{"a\\"]":', b"}")], ids=["list", "object"])
def test_a_record_nested_beyond_all_depth(
    connect: Any, server: LabServer, deep: int, opens: bytes, closes: bytes
) -> None:
    """One record must not make the whole page unreadable: it comes cut short, and is set aside as too deep."""
    note = opens * deep + b"0" + closes * deep
    body = b'{"results": [{"id": "[{", "note": ' + note + b'}, {"id": "b"}], "next_cursor": "]"}'
    server.fail(1, Sent(body=body))
    page = connect().results_since(None)
    assert (page.records[0]["id"], page.records[1], page.next_cursor) == ("[{", {"id": "b"}, "]")
    aside = read(page.records[0])
    assert isinstance(aside, SetAside)
    assert (aside.key[:7], aside.reason) == ("[{", "it is nested more than 50 deep")


def test_a_cut_answer_is_an_outage(connect: Any, server: LabServer) -> None:
    """Half a page that still parses would lose the other half."""
    body = b'{"results": []}' + b" " * 100
    server.fail(1, Sent(body=body, cut=100))
    with pytest.raises(Outage, match=r"no whole answer: IncompleteRead"):
        connect().results_since(None)


def test_a_lab_that_does_not_answer_is_an_outage(connect: Any, server: LabServer) -> None:
    """A hung lab must free the task after the read timeout."""
    server.fail(1, Sent(delay=5))
    began = time.monotonic()
    with pytest.raises(Outage, match=r"no answer within 0\.3 s"):
        connect(read=0.3).results_since(None)
    assert time.monotonic() - began < 3


def test_a_lab_that_drips_is_an_outage(connect: Any, server: LabServer) -> None:
    """One byte within each read timeout must not hold the task for hours."""
    server.fail(1, Sent(body=b'{"results": []}' + b" " * 1_000, drip=0.02))
    began = time.monotonic()
    with pytest.raises(Outage, match=r"no whole page within 0\.5 s"):
        connect(total=0.5).results_since(None)
    assert time.monotonic() - began < 3


def test_a_huge_page_is_an_outage(connect: Any, server: LabServer) -> None:
    """A page must not fill the worker's memory."""
    server.fail(1, Sent(body=b" " * (LARGEST_PAGE + 1)))
    with pytest.raises(Outage, match="larger than 16,777,216 bytes"):
        connect().results_since(None)


def test_a_page_that_unpacks_huge_is_an_outage(connect: Any, server: LabServer) -> None:
    """F4's kind of fault: it is the unpacked bytes that are counted."""
    packed = gzip.compress(b" " * (20 * LARGEST_PAGE))
    server.fail(1, Sent(body=packed, headers={"Content-Encoding": "gzip"}))
    with pytest.raises(Outage, match="larger than 16,777,216 bytes"):
        connect().results_since(None)


def test_a_redirect_to_another_host_gets_no_token(connect: Any, server: LabServer) -> None:
    """S3: a redirect, to the metadata address or to anyone, must not be followed with our token in hand."""
    with LabServer(token=TOKEN) as other:
        server.fail(1, Sent(status=302, headers={"Location": f"{other.url}/results"}))
        with pytest.raises(Outage, match=r"HTTP 302 .*redirects are not followed"):
            connect().results_since(None)
        assert other.asked == []


def test_no_lab_at_all_is_an_outage(connect: Any) -> None:
    """A lab that is down is the commonest outage; the message must say so in words."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        host = f"http://127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(Outage, match="no whole answer: ConnectionRefusedError"):
            connect(host=host).results_since(None)


def test_a_lab_that_speaks_no_http_is_an_outage(connect: Any) -> None:
    """Another program on the lab's port must not end as an unknown error."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def greet() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.recv(1_000)
                peer.sendall(b"220 mail.example ESMTP\r\n")

        thread = threading.Thread(target=greet, daemon=True)
        thread.start()
        with pytest.raises(Outage, match="no whole answer"):
            connect(host=f"http://127.0.0.1:{listener.getsockname()[1]}").results_since(None)
        thread.join()


@pytest.mark.parametrize("status", [200, 400, 401, 500])
def test_the_token_is_in_no_message(connect: Any, server: LabServer, status: int) -> None:
    """R3: an answer that echoes the request must not carry the token into the log."""
    echo = b"Authorization: Bearer p/s@s:%#1 or p%2Fs%40s%3A%25%231 " + b"x" * 500
    server.fail(1, Sent(status=status, body=echo))
    with pytest.raises(AlmanacError) as raised:
        connect().results_since(None)
    assert "***" in str(raised.value)
    for secret in (TOKEN, "p%2Fs"):
        assert secret not in str(raised.value)


@pytest.mark.parametrize("password", [None, "to ken", "token\n", "tökén", "a\r\nHost: evil.test"])
def test_a_token_that_no_header_holds_is_refused(connect: Any, server: LabServer, password: Any) -> None:
    """R3: the error names the connection; requests' own would print the token."""
    with pytest.raises(BadInput, match="connection clearpath_lab: password") as refused:
        connect(password=password).results_since(None)
    assert password is None or password not in str(refused.value)
    assert server.asked == []


def test_a_netrc_or_login_does_not_replace_the_token(
    connect: Any, server: LabServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """R3: requests takes a login from .netrc, and Airflow's hook one from the connection; neither is ours."""
    netrc = tmp_path / "netrc"
    netrc.write_text("default login someone password else\n")
    monkeypatch.setenv("NETRC", str(netrc))
    connect(login="someone").results_since(None)
    assert server.asked[0].headers["Authorization"] == f"Bearer {TOKEN}"


def test_an_extra_sends_no_header(connect: Any, server: LabServer) -> None:
    """Airflow sends what it doesn't know of an extra as headers; a secret kept there must not go out."""
    connect(extra={"Authorization": "Basic x", "note": "hello"}).results_since(None)
    assert server.asked[0].headers["Authorization"] == f"Bearer {TOKEN}"
    assert "note" not in server.asked[0].headers


def test_test_connection(connect: Any, server: LabServer) -> None:
    """The button in the UI must tell a good connection from a bad one."""
    assert connect().test_connection() == (True, "The lab answered with a page of 0 results")
    good, why = connect(password="other").test_connection()
    assert not good
    assert "HTTP 401" in why
    server.fail(1, Sent(status=500))
    assert not connect().test_connection()[0]


def test_the_fake_serves_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo runs the fake as a program; it must say where it listens and read its file anew."""
    data = tmp_path / "results.json"
    command = [
        sys.executable, "-m", "stack.fakes.lab_server", "--port", "0", "--data", str(data),
        "--base-path", "/partner/v1", "--token", TOKEN, "--page-size", "1",
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().removeprefix("lab at ").strip()
            parts = {"conn_type": "http", "host": url, "password": TOKEN}
            monkeypatch.setenv("AIRFLOW_CONN_CLEARPATH_LAB", json.dumps(parts))
            assert poll(lab("clearpath_lab")) == []
            data.write_text(json.dumps([record("1")]), encoding="utf-8")
            assert poll(lab("clearpath_lab")) == ["1"]
            data.write_text(json.dumps({"results": [record("2"), record("1"), "odd"]}), encoding="utf-8")
            page = lab("clearpath_lab").results_since(NINE)
            assert (page.records[0]["id"], page.next_cursor is None) == ("1", False)
        finally:
            process.terminate()
