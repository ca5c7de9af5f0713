"""Stores: a folder, and a bucket of a small S3 on loopback."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from itsdangerous import URLSafeSerializer
from moto.server import ThreadedMotoServer

from hooks.storage import FolderStorage, NoSuchFile, S3Storage, content_disposition, storage
from include.effects import Effects
from include.errors import BadInput, Outage, Refused
from include.storage import RecordedStorage, Storage, StoredFile

KEY = "p/s@s:%#1 and more"
BASE = "https://almanac.test/almanac/clearpath/files"
PDF = b"%PDF-1.7 \x00\xff certificate"
STORED = StoredFile("certificates/7/a.pdf", len(PDF), hashlib.sha256(PDF).hexdigest(), "application/pdf")
DAY = timedelta(days=1)

Connect = Callable[..., Any]


@pytest.fixture(scope="module")
def s3_url() -> Iterator[str]:
    """Run an S3 of this module's own."""
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    make_bucket = urllib.request.Request(f"{url}/files", method="PUT")  # noqa: S310 - a loopback URL
    urllib.request.urlopen(make_bucket, timeout=10).close()  # noqa: S310 - as above
    yield url
    server.stop()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Connect:
    """Return a function that makes the folder's store; the connection's parts can be changed."""

    def connected(conn_id: str = "clearpath_files", **changed: Any) -> FolderStorage:
        extra = {"folder": str(tmp_path / "files")}
        parts = {"conn_type": "fs", "host": BASE, "password": KEY, "extra": extra}
        monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps(parts | changed))
        made = storage(conn_id)
        assert isinstance(made, FolderStorage)
        return made

    return connected


@pytest.fixture
def bucket(s3_url: str, monkeypatch: pytest.MonkeyPatch) -> Connect:
    """Return a function that makes the bucket's store; the connection's parts can be changed."""

    def connected(extra: dict[str, Any] | None = None, **changed: Any) -> S3Storage:
        parts = {
            "conn_type": "aws", "login": "key", "password": KEY,
            "extra": {"bucket": "files", "endpoint_url": s3_url, "prefix": "clearpath"} | (extra or {}),
        }  # fmt: skip
        monkeypatch.setenv("AIRFLOW_CONN_CLEARPATH_BUCKET", json.dumps(parts | changed))
        made = storage("clearpath_bucket")
        assert isinstance(made, S3Storage)
        return made

    return connected


def own_client(made: S3Storage) -> Any:
    """Return the store's S3 client, to see and do what the store itself does not."""
    return made._client  # noqa: SLF001 - as said


@pytest.fixture(params=["folder", "bucket"])
def store(request: pytest.FixtureRequest) -> Storage:
    """Return each kind of store in turn."""
    return request.getfixturevalue(request.param)()


def test_a_file_comes_back_as_it_was_put(store: Storage) -> None:
    """A job on a laptop and in production must see the same store: bytes, size, digest and type."""
    assert store.put(STORED.name, PDF, "application/pdf") == STORED
    assert store.get(STORED.name) == PDF
    assert store.stat(STORED.name) == STORED


def test_the_same_name_again_replaces_the_file(store: Storage) -> None:
    """A resumed run writes its file again; the new content's digest and type must go with it."""
    store.put("a.txt", b"old", "text/plain")
    new = store.put("a.txt", b"{}", "application/json")
    assert store.get("a.txt") == b"{}"
    assert store.stat("a.txt") == new
    assert new.content_type == "application/json"


def test_a_file_that_is_not_there(store: Storage) -> None:
    """A missing file is the item's fault, and no outage that is tried again all night."""
    assert store.stat("none/at/all.pdf") is None
    with pytest.raises(Refused, match=r"none/at/all\.pdf"):
        store.get("none/at/all.pdf")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../../x", "begins with a dot"),
        ("a/../../x", "begins with a dot"),
        ("a/..", "begins with a dot"),
        ("./x", "begins with a dot"),
        (".types/a.pdf/x", "begins with a dot"),
        ("/etc/passwd", "begins with a slash"),
        ("//x", "begins with a slash"),
        ("a//x", "has an empty part"),
        ("a/", "has an empty part"),
        ("a\\..\\x", "holds a backslash"),
        ("..\\x", "holds a backslash"),
        ("a\x00.pdf", "holds a control character"),
        ("a\nb", "holds a control character"),
        ("a\u202efdp.exe", "holds a control character"),
        ("a\ud800", "holds a control character"),
        ("", "is no text"),
        ("a" * 201, "is too long"),
        ("/".join(["a" * 100] * 10), "is too long"),
    ],
)
def test_a_name_that_leaves_the_store_is_refused(store: Storage, name: str, reason: str) -> None:
    """F4: a file name from outside, `../../x`, must stay inside, in every operation."""
    for attempt in (
        lambda: store.put(name, b"x", "text/plain"),
        lambda: store.get(name),
        lambda: store.stat(name),
        lambda: store.signed_url(name, DAY, "x"),
        lambda: RecordedStorage(store, Effects(), {}).put(name, b"x", "text/plain"),
    ):
        with pytest.raises(BadInput, match=reason) as refused:
            attempt()
        assert len(str(refused.value)) < 200


@pytest.mark.parametrize("name", ["Ñandú ñ/日本.pdf", "a b/c+d&e=f%20.pdf", "a..b", "x" * 200])
def test_an_honest_name_passes(store: Storage, name: str) -> None:
    """Names with spaces, accents or signs of URLs are common, and must round-trip."""
    store.put(name, b"x", "text/plain")
    assert store.get(name) == b"x"
    assert store.stat(name) is not None


@pytest.mark.parametrize("content_type", ["", "pdf", "text/html\r\nX: y", "a/b/c", "text/" + "x" * 100])
def test_a_content_type_that_is_none_is_refused(store: Storage, content_type: str) -> None:
    """A type goes into a header of a later download; a line break there would be another header."""
    with pytest.raises(BadInput, match="no content type"):
        store.put("a", b"x", content_type)


def test_a_link_out_of_the_folder_is_refused(folder: Connect, tmp_path: Path) -> None:
    """F4: a symbolic link in the folder must not open the machine's other files."""
    made = folder()
    made.put("inside/a.txt", b"x", "text/plain")
    (tmp_path / "secret.txt").write_text("secret")
    (made.folder / "out").symlink_to(tmp_path)
    (made.folder / "out.txt").symlink_to(tmp_path / "secret.txt")
    (made.folder / "gone.txt").symlink_to(tmp_path / "nothing")
    (made.folder / "near").symlink_to(made.folder / "inside")
    for name in ("out/secret.txt", "out.txt", "gone.txt", "out/new.txt"):
        with pytest.raises(BadInput, match="leads out of the store"):
            made.get(name)
        with pytest.raises(BadInput, match="leads out of the store"):
            made.put(name, b"x", "text/plain")
    assert made.get("near/a.txt") == b"x"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["files", "secret.txt"]


def test_a_loop_of_links_is_refused(folder: Connect) -> None:
    """A folder that links to itself must end as an error with the name, not as a crash."""
    made = folder()
    made.folder.mkdir()
    (made.folder / "loop").symlink_to(made.folder / "loop")
    with pytest.raises(BadInput, match=r"loop/a\.txt"):
        made.get("loop/a.txt")


def test_a_file_is_never_seen_by_halves(folder: Connect) -> None:
    """A download beside a write gets the old file or the new one, whole, with its own type."""
    made = folder()
    contents = [(bytes([n]) * 300_000, f"text/x{n}") for n in range(4)]
    kinds = {hashlib.sha256(content).hexdigest(): kind for content, kind in contents}
    made.put("a", *contents[0])
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            for content, kind in contents:
                made.put("a", content, kind)

    writers = [threading.Thread(target=write) for _ in range(2)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(100):
            seen = made.stat("a")
            assert seen is not None
            assert kinds[seen.sha256] == seen.content_type
    finally:
        stop.set()
        for writer in writers:
            writer.join()


def test_a_write_that_is_killed_leaves_the_old_file(folder: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ruling 3: killed before the new file takes its place, the old one must still be there, alone."""
    made = folder()
    old = made.put("a.txt", b"old", "text/plain")

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        made.put("a.txt", b"new", "text/html")
    monkeypatch.undo()
    assert made.stat("a.txt") == old
    assert [path.name for path in made.folder.rglob(".put-*")] == []


def test_a_file_is_on_the_disk_when_put_returns(folder: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    """The row that names a file commits after it; a power cut between must not leave a row without a file."""
    made = folder()
    synced: list[int] = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_ino) or real(handle))
    made.put("new/deep/a.txt", b"x", "text/plain")
    for place in ("new/deep/a.txt", "new/deep", "new", ".", ".."):
        assert (made.folder / place).stat().st_ino in synced, place


def test_a_file_put_there_by_hand_is_served(folder: Connect) -> None:
    """A folder that is adopted has files already; their type follows from the name."""
    made = folder()
    made.folder.mkdir()
    (made.folder / "old.pdf").write_bytes(PDF)
    (made.folder / "old.xyz9").write_bytes(PDF)
    assert made.stat("old.pdf") == StoredFile("old.pdf", len(PDF), STORED.sha256, "application/pdf")
    assert made.stat("old.xyz9").content_type == "application/octet-stream"


def test_a_folder_where_a_file_should_be(folder: Connect) -> None:
    """A name that is taken by a folder is that name's fault; a folder that can't be written is ours."""
    made = folder()
    made.put("a/b.txt", b"x", "text/plain")
    with pytest.raises(BadInput, match="'a' can't be used"):
        made.put("a", b"x", "text/plain")
    assert made.stat("a") is None
    with pytest.raises(BadInput, match=r"'a/b\.txt/c' can't be used"):
        made.put("a/b.txt/c", b"x", "text/plain")
    blocked = folder(extra={"folder": str(made.folder / "a" / "b.txt")})
    assert blocked.test_connection()[0] is False
    with pytest.raises(Outage):
        blocked.put("a", b"x", "text/plain")


def test_a_full_disk_is_an_outage(folder: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ruling 7: the store's own trouble is tried again; it says nothing about the file."""
    made = folder()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Outage, match=r"storage clearpath_files: 'a\.txt' .*No space left"):
        made.put("a.txt", b"x", "text/plain")


def test_a_signed_link_opens_its_file(folder: Connect) -> None:
    """Ruling 19: whoever holds the link gets this file, under a readable name, without a login."""
    made = folder()
    made.put(STORED.name, PDF, "application/pdf")
    url = made.signed_url(STORED.name, DAY, "Certificate of Zoë.pdf")
    base, _, token = url.rpartition("/")
    assert base == BASE
    assert made.open_signed(token, datetime.now(UTC)) == (STORED, PDF, "Certificate of Zoë.pdf")
    assert folder().open_signed(token, datetime.now(UTC))[0] == STORED


def token_of(store: FolderStorage, name: str = STORED.name) -> str:
    """Return the token of a link that lives for a day."""
    return store.signed_url(name, DAY, "x.pdf").rpartition("/")[2]


def test_an_expired_link_is_refused(folder: Connect) -> None:
    """Ruling 19: a link has an end, to the second."""
    made = folder()
    made.put(STORED.name, PDF, "application/pdf")
    token, now = token_of(made), datetime.now(UTC)
    made.open_signed(token, now + DAY - timedelta(seconds=5))
    with pytest.raises(Refused, match="expired at 20"):
        made.open_signed(token, now + DAY + timedelta(seconds=1))


def test_a_forged_link_is_refused(folder: Connect) -> None:
    """Ruling 19: nobody makes or changes a link without the key."""
    made = folder()
    made.put(STORED.name, PDF, "application/pdf")
    token, now = token_of(made), datetime.now(UTC)
    other_key = token_of(folder(password="another key of some length"))
    payload, dot, mac = token.rpartition(".")
    forged = [
        other_key,
        f"{payload[:-2]}{'A' if payload[-2] != 'A' else 'B'}{payload[-1]}{dot}{mac}",
        f"{payload}{dot}{mac[:-4]}{'AAAA' if mac[-4:] != 'AAAA' else 'BBBB'}",
        payload, f"{payload}.", f".{mac}", "", ".", "x", "é", "\x00", "\ud800", "." * 9_000,
        f"{token}{'x' * 9_000}",
    ]  # fmt: skip
    for attempt in forged:
        with pytest.raises(Refused, match="not valid"):
            made.open_signed(attempt, now)


def test_a_link_for_another_purpose_or_store_is_refused(folder: Connect) -> None:
    """Ruling 19: one purpose; an unsubscribe token under the same key must not open a file."""
    made = folder()
    made.put(STORED.name, PDF, "application/pdf")
    signer = {"key_derivation": "hmac", "digest_method": hashlib.sha256}
    end = int(datetime.now(UTC).timestamp()) + 1_000
    right = URLSafeSerializer(KEY, salt="almanac:clearpath_files:download", signer_kwargs=signer)
    wrong = URLSafeSerializer(KEY, salt="almanac:clearpath_files:unsubscribe", signer_kwargs=signer)
    made.open_signed(str(right.dumps([STORED.name, end, "x"])), datetime.now(UTC))
    for token in (wrong.dumps([STORED.name, end, "x"]), token_of(folder("other_files"))):
        with pytest.raises(Refused, match="not valid"):
            made.open_signed(str(token), datetime.now(UTC))


def test_a_signed_name_is_checked_all_the_same(folder: Connect) -> None:
    """F4: the key could leak or be shared; even a well-signed `../x` stays inside."""
    signer = {"key_derivation": "hmac", "digest_method": hashlib.sha256}
    right = URLSafeSerializer(KEY, salt="almanac:clearpath_files:download", signer_kwargs=signer)
    token = str(right.dumps(["../secret.txt", 99_999_999_999, "x"]))
    with pytest.raises(BadInput, match="begins with a dot"):
        folder().open_signed(token, datetime.now(UTC))


def test_a_link_to_a_file_that_is_gone(folder: Connect) -> None:
    """The holder of a link must hear that the file is gone, not that the link is forged."""
    with pytest.raises(NoSuchFile, match="no file"):
        folder().open_signed(token_of(folder()), datetime.now(UTC))


@pytest.mark.parametrize("password", [None, "", "short"])
def test_no_link_without_a_key(folder: Connect, password: str | None) -> None:
    """R3: an empty or guessable key would let anyone make links; the error names the connection."""
    with pytest.raises(BadInput, match="connection clearpath_files: password") as refused:
        folder(password=password).signed_url("a", DAY, "a")
    assert not password or password not in str(refused.value).replace("password", "")


@pytest.mark.parametrize("lifetime", [timedelta(0), -DAY])
def test_a_link_without_a_life_is_refused(store: Storage, lifetime: timedelta) -> None:
    """A link that never opens would be found out by the customer."""
    with pytest.raises(BadInput, match="would never open"):
        store.signed_url("a", lifetime, "a")


@pytest.mark.parametrize(
    ("given", "plain", "whole"),
    [
        ("Certificate 7.pdf", "Certificate 7.pdf", "Certificate%207.pdf"),
        ("Zoë & Co.pdf", "Zoe _ Co.pdf", "Zo%C3%AB%20&%20Co.pdf"),
        ("证书.pdf", "file.pdf", "%E8%AF%81%E4%B9%A6.pdf"),
        ("../../etc/passwd", "passwd", "passwd"),
        ("..\\boot.ini", "boot.ini", "boot.ini"),
        ('a"; filename="b.exe', "a__ filename__b.exe", "a%22%3B%20filename%3D%22b.exe"),
        ("a\r\nSet-Cookie: x=1", "a Set-Cookie_ x_1", "a%20Set-Cookie%3A%20x%3D1"),
        ("exe\u202efdp.pdf", "exe fdp.pdf", "exe%20fdp.pdf"),
        ("a\ud800b", "a b", "a%20b"),
        ("", "file", "file"),
        ("...", "file", "file"),
        ("x" * 500 + ".pdf", "x" * 150 + ".pdf", "x" * 150 + ".pdf"),
    ],
)
def test_a_download_s_name_is_safe(given: str, plain: str, whole: str) -> None:
    """R3's kind of fault: names of people and sites reach a header; they stay readable, and inside it."""
    assert content_disposition(given) == f"attachment; filename=\"{plain}\"; filename*=UTF-8''{whole}"


def test_test_connection_of_a_folder(folder: Connect, tmp_path: Path) -> None:
    """The button in the UI must tell a folder that can be written from one that can't."""
    assert folder().test_connection() == (True, f"Files are kept in {tmp_path / 'files'}")
    assert [path.name for path in (tmp_path / "files").iterdir()] == []
    assert folder(extra={"folder": "/proc/nowhere"}).test_connection()[0] is False


def test_test_connection_of_a_bucket(bucket: Connect) -> None:
    """The button in the UI must tell a bucket from one that is not there, or not answered for."""
    assert bucket().test_connection() == (True, "The bucket files is there")
    good, why = bucket({"bucket": "no-such"}).test_connection()
    assert not good
    assert "there is no such bucket" in why
    good, why = bucket({"endpoint_url": "http://127.0.0.1:9"}).test_connection()
    assert not good
    assert "EndpointConnectionError" in why


def fetched(url: str) -> Any:
    """Return the answer to a GET without any login."""
    return urllib.request.urlopen(url, timeout=10)  # noqa: S310 - a loopback URL


def test_a_presigned_link_opens_its_object(bucket: Connect) -> None:
    """Ruling 19 for S3: the link gives the file under its readable name, for its time."""
    made = bucket()
    made.put(STORED.name, PDF, "application/pdf")
    url = made.signed_url(STORED.name, DAY, "Certificate of Zoë.pdf")
    assert "X-Amz-Expires=86400" in url
    with fetched(url) as answer:
        assert answer.read() == PDF
        assert answer.headers["Content-Type"] == "application/pdf"
        assert answer.headers["Content-Disposition"] == content_disposition("Certificate of Zoë.pdf")
    assert KEY not in url


def test_an_s3_link_lives_seven_days_at_most(bucket: Connect) -> None:
    """S3 answers a longer one with an error, but only to the customer."""
    with pytest.raises(BadInput, match="7 days"):
        bucket().signed_url("a", timedelta(days=7, seconds=1), "a")


def test_public_links_have_the_public_host(bucket: Connect) -> None:
    """In a container network the store's own address means nothing to a browser."""
    url = bucket({"public_endpoint_url": "https://files.test"}).signed_url("a.pdf", DAY, "a")
    assert url.startswith("https://files.test/files/clearpath/a.pdf?")


def test_an_object_of_another_program_has_a_digest(bucket: Connect) -> None:
    """A bucket that is adopted has objects without our metadata."""
    made = bucket()
    old = {"Bucket": "files", "Key": "clearpath/old.pdf", "Body": PDF, "ContentType": "application/pdf"}
    own_client(made).put_object(**old)
    assert made.stat("old.pdf") == StoredFile("old.pdf", len(PDF), STORED.sha256, "application/pdf")


def test_a_missing_bucket_is_an_outage(bucket: Connect) -> None:
    """Ruling 7: like a wrong key, it is our set-up's fault; the certificate must not be marked as failed."""
    with pytest.raises(Outage, match="there is no such bucket"):
        bucket({"bucket": "no-such"}).put("a", b"x", "text/plain")


def test_no_s3_at_all_is_an_outage(bucket: Connect) -> None:
    """Ruling 7: a connection that fails is tried again; the secret key is in no message."""
    with pytest.raises(Outage, match="no answer from S3: EndpointConnectionError") as outage:
        bucket({"endpoint_url": "http://127.0.0.1:9"}).get("a")
    assert KEY not in str(outage.value)


def test_a_bucket_must_be_named(bucket: Connect) -> None:
    """A connection without a bucket must say so before the first file, and name itself."""
    with pytest.raises(BadInput, match="connection clearpath_bucket: extra 'bucket' is missing"):
        bucket({"bucket": ""})


def test_a_type_nobody_knows_is_refused(folder: Connect) -> None:
    """A store chosen by a mistyped type must not become a folder on a worker's disk."""
    with pytest.raises(BadInput, match="must be almanac_storage, fs or aws"):
        folder(conn_type="gcs")


def test_a_password_round_trips_to_s3(bucket: Connect) -> None:
    """R3: a secret key with URL characters must sign as given."""
    assert own_client(bucket())._request_signer._credentials.secret_key == KEY  # noqa: SLF001 - no other way
