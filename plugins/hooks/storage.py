"""Files in a local folder or an S3 bucket; the connection says which.

Type `almanac_storage` is a bucket if the extra names one, else a folder; `fs` is a folder, `aws` a bucket.
A folder: the extra `folder` (default: `storage` in Airflow's home). For links, the password is the signing
key, and the host or the extra `base_url` is the address that the token is put behind.
A bucket: login and password are the keys (none: the machine's own role); extra `bucket`, `prefix`,
`region_name`, `endpoint_url` for a compatible service, `public_endpoint_url` if its links have another host.
"""

from __future__ import annotations

import errno
import hashlib
import mimetypes
import os
import re
import secrets
import unicodedata
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow.sdk import BaseHook

from hooks.connections import Access, access
from include.errors import AlmanacError, BadInput, Outage, Refused
from include.storage import StoredFile, check_name

if TYPE_CHECKING:
    from itsdangerous import URLSafeSerializer

PURPOSE = "download"
"""What a link is for; a token signed for anything else opens no file."""

_SHORTEST_KEY = 16
_LONGEST_TOKEN = 8_192
_LONGEST_S3_LINK = timedelta(days=7)
_LONGEST_DISPLAY_NAME = 150
_CONTENT_TYPE = re.compile(
    r"[A-Za-z0-9.+-]{1,60}/[A-Za-z0-9.+-]{1,60}(; ?[A-Za-z0-9-]{1,20}=[A-Za-z0-9.-]{1,40})?"
)
_UNKNOWN_TYPE = "application/octet-stream"
# What a name may cause; every other error of the system is the store's trouble, not the file's.
_NAME_FAULTS = (
    errno.EEXIST,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ENAMETOOLONG,
    errno.ELOOP,
    errno.EILSEQ,
    errno.EINVAL,
)


class NoSuchFile(Refused):
    """The store has no file of that name."""


def storage(conn_id: str) -> FolderStorage | S3Storage:
    """Return the store behind an Airflow connection, without touching it."""
    found = access(conn_id)
    if found.conn_type in ("aws", "s3") or (
        found.conn_type == StorageHook.conn_type and found.text("bucket")
    ):
        return S3Storage(found)
    if found.conn_type in (StorageHook.conn_type, "fs", "file", "generic", ""):
        return FolderStorage(found)
    raise found.bad("type", f"must be {StorageHook.conn_type}, fs or aws, not {found.conn_type!r}")


class StorageHook(BaseHook):
    """What Airflow's connection form and its Test button know of a store."""

    conn_name_attr = "storage_conn_id"
    default_conn_name = "almanac_storage"
    conn_type = "almanac_storage"
    hook_name = "Storage (Almanac)"

    def __init__(self, storage_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.storage_conn_id = storage_conn_id

    def get_conn(self) -> FolderStorage | S3Storage:
        """Return the store; see `storage`."""
        return storage(self.storage_conn_id)

    def test_connection(self) -> tuple[bool, str]:
        """Write and remove a file, and say whether that works."""
        try:
            return self.get_conn().test_connection()
        except AlmanacError as error:
            return False, str(error)


def content_disposition(display_name: str) -> str:
    """Return the header that saves a download under a name: an ASCII form, and the whole one of RFC 5987."""
    name = _display_name(display_name)
    stem, dot, ending = name.rpartition(".")
    plain = f"{_ascii(stem) or 'file'}.{_ascii(ending) or 'bin'}" if dot else _ascii(name) or "file"
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='!#$&+-.^_`|~')}"


class FolderStorage:
    """A folder. What a file's bytes are of is kept beside, in `.types/<name>/<sha256>`.

    Every write is a new file that takes the old one's place, and is on the disk when `put` returns. The type
    goes first: a reader sees the old bytes with their type, or the new ones with theirs.
    """

    def __init__(self, access: Access) -> None:
        given = access.text("folder") or access.text("path")
        if given and "\x00" in given:
            raise access.bad("folder", "holds a null character")
        home = Path(os.environ.get("AIRFLOW_HOME", "~/airflow"))
        self.folder = (Path(given) if given else home / "storage").expanduser().absolute()
        self._access = access

    def put(self, name: str, content: bytes, content_type: str) -> StoredFile:
        stored = _described(name, content, content_type)
        path = self._path(name)
        with self._errors(name):
            _write(self._type_path(name, stored.sha256), content_type.encode())
            _write(path, content)
        return stored

    def get(self, name: str) -> bytes:
        path = self._path(name)
        with self._errors(name):
            if path.is_file():
                return path.read_bytes()
        raise NoSuchFile(f"storage {self._access.conn_id}: there is no file {name!r}")

    def stat(self, name: str) -> StoredFile | None:
        found = self._found(name)
        return found[0] if found else None

    def signed_url(self, name: str, expires_in: timedelta, display_name: str) -> str:
        check_name(name)
        _check_lifetime(expires_in)
        expires = int((datetime.now(UTC) + expires_in).timestamp())
        token = self._signer.dumps([name, expires, _display_name(display_name)])
        return f"{self._access.base_url()}/{token if isinstance(token, str) else token.decode()}"

    def open_signed(self, token: str, now: datetime) -> tuple[StoredFile, bytes, str]:
        """Return the file, its bytes and the name to save it under, for the token that ends a signed URL.

        Raises Refused for a token that is forged, was made for another purpose or store, or has expired at
        `now`, and for a file that is gone.
        """
        from itsdangerous import BadData  # noqa: PLC0415 - not at parse time

        where = f"storage {self._access.conn_id}"
        try:
            # Longer than any that was made here: not worth the work.
            name, expires, display_name = self._signer.loads(token[:_LONGEST_TOKEN])
        except (BadData, ValueError, TypeError):
            raise Refused(f"{where}: this link is not valid") from None
        if now.timestamp() >= expires:
            expired = datetime.fromtimestamp(expires, UTC)
            raise Refused(f"{where}: this link expired at {expired:%Y-%m-%d %H:%M} UTC")
        found = self._found(name)
        if found is None:
            raise NoSuchFile(f"{where}: there is no file {name!r}")
        return *found, display_name

    def test_connection(self) -> tuple[bool, str]:
        """Write and remove a file, and say whether that works."""
        probe = self.folder / f".probe-{secrets.token_hex(8)}"
        try:
            with self._errors(probe.name):
                _write(probe, b"probe")
                probe.unlink()
        except AlmanacError as error:
            return False, str(error)
        return True, f"Files are kept in {self.folder}"

    def _found(self, name: str) -> tuple[StoredFile, bytes] | None:
        path = self._path(name)
        with self._errors(name):
            if not path.is_file():
                return None
            content = path.read_bytes()
            type_path = self._type_path(name, hashlib.sha256(content).hexdigest())
            if type_path.is_file():
                content_type = type_path.read_text(encoding="utf-8")
            else:
                # Put there by hand.
                content_type = mimetypes.guess_type(name)[0] or _UNKNOWN_TYPE
        return _described(name, content, content_type), content

    def _path(self, name: str) -> Path:
        check_name(name)
        path = self.folder / name
        with self._errors(name):
            if not path.resolve().is_relative_to(self.folder.resolve()):
                raise BadInput(f"file name {name!r} leads out of the store through a link")
        return path

    def _type_path(self, name: str, sha256: str) -> Path:
        return self.folder / ".types" / name / sha256

    @cached_property
    def _signer(self) -> URLSafeSerializer:
        from itsdangerous import URLSafeSerializer  # noqa: PLC0415 - not at parse time

        key = self._access.password or ""
        if len(key) < _SHORTEST_KEY:
            raise self._access.bad("password", f"must be a signing key of {_SHORTEST_KEY} characters or more")
        return URLSafeSerializer(
            key,
            salt=f"almanac:{self._access.conn_id}:{PURPOSE}",
            signer_kwargs={"key_derivation": "hmac", "digest_method": hashlib.sha256},
        )

    @contextmanager
    def _errors(self, name: str) -> Generator[None]:
        try:
            yield
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else type(error).__name__
            if error.errno in _NAME_FAULTS and self.folder.is_dir():
                raise BadInput(f"file name {name!r} can't be used: {reason}") from None
            raise Outage(f"storage {self._access.conn_id}: {name!r} in {self.folder}: {reason}") from None
        except RuntimeError as error:
            # How pathlib calls a loop of links.
            raise BadInput(f"file name {name!r} can't be used: {error}") from None


class S3Storage:
    """A bucket of S3 or a compatible service. The sha256 is kept in the object's metadata."""

    def __init__(self, access: Access, *, connect: float = 5, read: float = 30) -> None:
        self._access = access
        self._timeouts = {"connect_timeout": connect, "read_timeout": read}
        bucket = access.text("bucket")
        if not bucket:
            raise access.bad("extra 'bucket'", "is missing")
        self._bucket: str = bucket
        self._prefix = (access.text("prefix") or "").strip("/")
        if self._prefix:
            check_name(self._prefix)

    def put(self, name: str, content: bytes, content_type: str) -> StoredFile:
        stored = _described(name, content, content_type)
        with self._errors(name):
            self._client.put_object(
                **self._object(name),
                Body=content,
                ContentType=content_type,
                Metadata={"sha256": stored.sha256},
            )
        return stored

    def get(self, name: str) -> bytes:
        check_name(name)
        with self._errors(name):
            answer = self._client.get_object(**self._object(name))
            return answer["Body"].read()

    def stat(self, name: str) -> StoredFile | None:
        check_name(name)
        try:
            with self._errors(name):
                head = self._client.head_object(**self._object(name))
        except NoSuchFile:
            return None
        sha256 = head["Metadata"].get("sha256", "")
        if not re.fullmatch(r"[0-9a-f]{64}", sha256):
            # Put there by another program.
            sha256 = hashlib.sha256(self.get(name)).hexdigest()
        return StoredFile(name, head["ContentLength"], sha256, head.get("ContentType") or _UNKNOWN_TYPE)

    def signed_url(self, name: str, expires_in: timedelta, display_name: str) -> str:
        """Return a link, as `include.storage.Storage` promises; S3 lets none live longer than 7 days."""
        check_name(name)
        _check_lifetime(expires_in)
        if expires_in > _LONGEST_S3_LINK:
            raise BadInput(f"storage {self._access.conn_id}: a link can live 7 days, not {expires_in}")
        with self._errors(name):
            return self._public_client.generate_presigned_url(
                "get_object",
                Params={
                    **self._object(name),
                    "ResponseContentDisposition": content_disposition(display_name),
                },
                ExpiresIn=int(expires_in.total_seconds()),
            )

    def open_signed(self, token: str, now: datetime) -> tuple[StoredFile, bytes, str]:  # noqa: ARG002 - see below
        """Refuse: this store's links lead to S3 itself."""
        raise Refused(f"storage {self._access.conn_id}: its links are opened at S3, not here")

    def test_connection(self) -> tuple[bool, str]:
        """Ask for the bucket, and say whether the keys open it."""
        try:
            with self._errors(""):
                self._client.head_bucket(Bucket=self._bucket)
        except AlmanacError as error:
            return False, str(error)
        return True, f"The bucket {self._bucket} is there"

    def _object(self, name: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": f"{self._prefix}/{name}" if self._prefix else name}

    @cached_property
    def _client(self) -> Any:
        return self._connected(self._access.text("endpoint_url"))

    @cached_property
    def _public_client(self) -> Any:
        public = self._access.text("public_endpoint_url")
        return self._connected(public) if public else self._client

    def _connected(self, endpoint: str | None) -> Any:
        from boto3.session import Session  # noqa: PLC0415 - slow; not at parse time
        from botocore.config import Config  # noqa: PLC0415 - as above

        session = Session(
            aws_access_key_id=self._access.login,
            aws_secret_access_key=self._access.password,
            aws_session_token=self._access.text("aws_session_token"),
            region_name=self._access.text("region_name") or "us-east-1",
        )
        return session.client(
            "s3",
            endpoint_url=endpoint,
            config=Config(
                **self._timeouts,
                retries={"mode": "standard", "total_max_attempts": 3},
                signature_version="s3v4",
                s3={"addressing_style": "path" if endpoint else "auto"},
                # Compatible services don't all know the newer checksums.
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
            ),
        )

    @contextmanager
    def _errors(self, name: str) -> Generator[None]:
        from botocore.exceptions import (  # noqa: PLC0415 - slow; not at parse time
            BotoCoreError,
            ClientError,
            ParamValidationError,
        )
        from urllib3.exceptions import HTTPError  # noqa: PLC0415 - as above

        where = f"storage {self._access.conn_id}: {f'{self._bucket}/{name}'!r}"
        try:
            yield
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            says = f"{where}: S3 answered HTTP {status} {code}"
            # A bucket that is not there is our set-up's fault, like a wrong key: no file's.
            if code == "NoSuchBucket" or (not name and status == 404):  # noqa: PLR2004 - HTTP's own number
                raise Outage(f"{says}: there is no such bucket") from None
            if status in (401, 403, 408, 429) or not 400 <= status < 500:  # noqa: PLR2004 - as above
                raise Outage(says) from None
            raise (NoSuchFile if status == 404 else Refused)(says) from None  # noqa: PLR2004 - as above
        except (ParamValidationError, ValueError) as error:
            raise BadInput(f"{where}: {self._access.without_secrets(str(error))[:200]}") from None
        except (BotoCoreError, HTTPError, OSError) as error:
            raise Outage(f"{where}: no answer from S3: {type(error).__name__}") from None


def _described(name: str, content: bytes, content_type: str) -> StoredFile:
    check_name(name)
    if not _CONTENT_TYPE.fullmatch(content_type):
        raise BadInput(f"file {name!r}: {content_type[:60]!r} is no content type")
    return StoredFile(name, len(content), hashlib.sha256(content).hexdigest(), content_type)


def _check_lifetime(expires_in: timedelta) -> None:
    if expires_in < timedelta(seconds=1):
        raise BadInput(f"a link that lives {expires_in} would never open")


def _display_name(given: str) -> str:
    """Return a name that a person can save a file under: no path, no control or direction characters."""
    name = unicodedata.normalize("NFC", given.replace("\\", "/").rpartition("/")[2])
    name = " ".join("".join(c if _is_shown(c) else " " for c in name).split())
    stem, dot, ending = name.strip(". ").rpartition(".")
    if len(stem) > _LONGEST_DISPLAY_NAME:
        stem = stem[:_LONGEST_DISPLAY_NAME].rstrip()
    return f"{stem}{dot}{ending[:_LONGEST_DISPLAY_NAME]}" or "file"


def _is_shown(character: str) -> bool:
    # The two joiners belong to the spelling of Persian and Indian names.
    return unicodedata.category(character)[0] not in "CZ" or character in "\u200c\u200d"


def _ascii(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9 ._()+-]", "_", plain).strip(" ._")


def _write(path: Path, content: bytes) -> None:
    """Write a whole file under a passing name, put it in place, and see both onto the disk."""
    above = path.parent
    while not above.is_dir():
        above = above.parent
    path.parent.mkdir(parents=True, exist_ok=True)
    passing = path.parent / f".put-{secrets.token_hex(8)}"
    try:
        with os.fdopen(os.open(passing, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o660), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        passing.replace(path)
    except BaseException:
        with suppress(OSError):
            passing.unlink(missing_ok=True)
        raise
    # A folder that was made just now is an entry of the one above it.
    for folder in (path.parent, *path.parent.parents):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        if folder == above:
            break
