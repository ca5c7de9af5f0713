"""A lab partner on loopback: the API that `hooks.lab` speaks, with the faults that real ones have.

`GET {base}/results?since=…&cursor=…` with `Authorization: Bearer …` answers
`{"results": [record, …], "next_cursor": "…" or null}`, ordered by (created_at, id). A record is
`{"id", "order_id", "kit_serial_number", "value", "unit", "measured_at", "created_at"}`; anything else is
served as it is.
"""

from __future__ import annotations

import base64
import json
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.message import Message
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from stack.fakes.http_fake import HttpFake, Request, Sent, as_json, command_line

BEGINNING = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it came."""

    path: str
    since: str | None
    cursor: str | None
    headers: Message


class LabServer(HttpFake):
    """The lab.

    `records` is a list, or the path of a JSON file that is read anew for every page (not there: no results).
    `clock` is how far the lab's clock is from ours (negative: slow); it stamps records added without
    created_at.
    """

    def __init__(
        self,
        records: Sequence[Any] | Path = (),
        *,
        token: str = "lab-token",  # noqa: S107 - a fake's default
        page_size: int = 100,
        base_path: str = "",
        port: int = 0,
        clock: timedelta = timedelta(0),
    ) -> None:
        super().__init__(base_path=base_path, port=port)
        self.token = token
        self.page_size = page_size
        self.clock = clock
        self.asked: list[Asked] = []
        self._lock = threading.Lock()
        self._file = records if isinstance(records, Path) else None
        self._records: list[Any] = []
        self._faults: dict[int, list[Sent]] = {}
        self._lasting: dict[int, Sent] = {}
        self._appearing: dict[int, list[Any]] = {}
        self._page = 0
        if not isinstance(records, Path):
            self.add(*records)

    def add(self, *records: Any) -> None:
        """Let results exist; one whose created_at lies in the past has arrived late."""
        stamp = (datetime.now(UTC) + self.clock).isoformat()
        with self._lock:
            for record in records:
                stamped = isinstance(record, dict) and "created_at" not in record
                self._records.append({**record, "created_at": stamp} if stamped else record)

    def appear_after(self, page: int, *records: Any) -> None:
        """Let results come into being once the poll's page of that number (from 1) has been answered."""
        self._appearing.setdefault(page, []).extend(records)

    def fail(self, page: int, fault: Sent, *, times: int | None = 1) -> None:
        """Put a fault in place of the page of that number (from 1) so many times; None is for good."""
        if times is None:
            self._lasting[page] = fault
        else:
            self._faults.setdefault(page, []).extend([fault] * times)

    def mend(self) -> None:
        """Take all faults back."""
        self._faults.clear()
        self._lasting.clear()

    def answer(self, request: Request) -> Sent:
        if request.method != "GET":
            return Sent(HTTPStatus.NOT_IMPLEMENTED)
        url = urlsplit(request.path)
        query = parse_qs(url.query)
        asked = Asked(
            path=url.path,
            since=query.get("since", [None])[0],
            cursor=query.get("cursor", [None])[0],
            headers=request.headers,
        )
        with self._lock:
            self.asked.append(asked)
            self._page = self._page + 1 if asked.cursor else 1
            page = self._page
            waiting = self._faults.get(page)
            fault = waiting.pop(0) if waiting else self._lasting.get(page)
        if asked.path != f"{self.base_path}/results":
            return _problem(404, "no such path")
        if asked.headers.get("Authorization") != f"Bearer {self.token}":
            return _problem(401, "bad token")
        if fault:
            return fault
        try:
            since = _instant(asked.since) if asked.since else BEGINNING
            after = _cursor(asked.cursor) if asked.cursor else (BEGINNING, "")
        except ValueError as error:
            return _problem(400, str(error))
        found = as_json(self._select(since, after))
        self.add(*self._appearing.pop(page, ()))
        return found

    def _select(self, since: datetime, after: tuple[datetime, str]) -> dict[str, Any]:
        if self._file and self._file.exists():
            data = json.loads(self._file.read_text(encoding="utf-8"))
            records = data["results"] if isinstance(data, dict) else data
        else:
            records = []
        with self._lock:
            records = [*records, *self._records]
        found = sorted((r for r in records if _key(r)[0] >= since and _key(r) > after), key=_key)
        page = found[: self.page_size]
        more = len(found) > self.page_size
        return {"results": page, "next_cursor": _as_cursor(_key(page[-1])) if more else None}


def _key(record: Any) -> tuple[datetime, str]:
    """Return what a record is ordered by; one without a readable time comes last, whatever `since` is."""
    text = json.dumps(record, sort_keys=True, default=str)
    if not isinstance(record, dict):
        return datetime.max.replace(tzinfo=UTC), text
    try:
        created = _instant(str(record.get("created_at")))
    except ValueError:
        created = datetime.max.replace(tzinfo=UTC)
    return created, str(record.get("id") or text)


def _instant(text: str) -> datetime:
    when = datetime.fromisoformat(text)
    if when.tzinfo is None:
        raise ValueError(f"{text!r} has no offset")
    return when


def _as_cursor(key: tuple[datetime, str]) -> str:
    return base64.urlsafe_b64encode(json.dumps([key[0].isoformat(), key[1]]).encode()).decode()


def _cursor(text: str) -> tuple[datetime, str]:
    try:
        created, record_id = json.loads(base64.urlsafe_b64decode(text))
        return _instant(created), str(record_id)
    except (ValueError, TypeError) as error:
        raise ValueError("bad cursor") from error


def _problem(status: int, message: str) -> Sent:
    return as_json({"error": message}, status)


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve a JSON file of results, and say on the first line of standard output where."""
    parser = command_line("lab_server", main.__doc__)
    parser.add_argument("--data", type=Path, help="JSON file: a list of results; read anew for every page")
    parser.add_argument("--base-path", default="", help="path before /results, such as /partner/v1")
    parser.add_argument("--page-size", type=int, default=100)
    parser.add_argument("--clock", type=float, default=0, metavar="SECONDS", help="-300 is five minutes slow")
    parser.add_argument(
        "--fail", action="append", default=[], metavar="PAGE:STATUS", help="always answer a page so"
    )
    parser.add_argument(
        "--token", default=os.environ.get("LAB_TOKEN", "lab-token"), help="default: the variable LAB_TOKEN"
    )
    given = parser.parse_args(arguments)
    lab = LabServer(
        given.data or (),
        token=given.token,
        page_size=given.page_size,
        base_path=given.base_path,
        port=given.port,
        clock=timedelta(seconds=given.clock),
    )
    for fail in given.fail:
        page, _, status = fail.partition(":")
        lab.fail(int(page), Sent(int(status)), times=None)
    lab.serve("lab")


if __name__ == "__main__":
    main()
