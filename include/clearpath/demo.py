"""Demo data: a believable month of ClearPath around a moment, in which every rule of its jobs has a row.

`seed` is small and told row by row; `generate` makes the same stories in any number.
"""

from __future__ import annotations

import hashlib
import random
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, NamedTuple

from dateutil.relativedelta import relativedelta
from sqlalchemy import Connection, Table
from sqlalchemy.dialects.postgresql import insert

from include.as_of import local_date, local_midnight
from include.clearpath import ZONE
from include.clearpath.email_sequence import RESULTS_PROMPT, due_times
from include.clearpath.tables import (
    CERTIFICATES,
    CNRPP_ALERTS,
    CONTRACTORS,
    EMAIL_ATTEMPTS,
    EMAIL_BATCHES,
    EMAIL_LOG,
    JOBS_STATE,
    LAB_SET_ASIDE,
    RESULTS,
    TEST_SESSIONS,
    USERS,
)
from include.mail import Message
from include.statements import statement
from include.stored_message import pack

_PACKAGE = "include.clearpath"
_SPACE = uuid.UUID("6f1c6f0e-6a5b-5d0a-9a35-0c1ea4b7d0aa")
_SEED = 148

_TEST_DAYS = 91
_GRACE_DAYS = 90
_CERTIFICATE_YEARS = 2

HOSTILE_NAME = '<a href="https://evil.test">Reset</a> & Co'
"""A name that is markup: it must arrive as text wherever it is shown."""

_NAMES = (
    "Maude Tremblay",
    "Ryan McLeod",
    "Íñigo Muñoz Peña",
    "Olena Kovalchuk",
    "Priya Raman",
    "Søren Ødegård",
    "Nguyễn Thị Mai",
    "Zoë O'Brien-D'Arcy",
    "Dwayne Cardinal",
    "Chloé Bélanger",
    "Harpreet Gill",
    "Tom Baker",
    "Amélie Gagné",
    "Kwame Mensah",
    "Lucía Ñáñez",
    "Jun Watanabe",
)
_STREETS = (
    "Jasper Avenue",
    "Whyte Avenue",
    "Rue Saint-Jean",
    "Portage Avenue",
    "Main Street",
    "17 Avenue SW",
)
_TOWNS = ("Edmonton, AB", "Calgary, AB", "Québec, QC", "Winnipeg, MB", "Regina, SK", "Fredericton, NB")

# Ages in days of sessions in which nothing is out of the ordinary.
_ORDINARY_AGES = range(3, 160, 4)
_STATUS_FROM_AGE = (
    (105, "complete"),
    (98, "results_pending"),
    (91, "mailed"),
    (80, "retrieval_due"),
    (0, "active"),
)
_ENDED = ("complete", "cancelled", "expired")


class _Session(NamedTuple):
    id: uuid.UUID
    user: uuid.UUID
    status: str
    activated_at: datetime | None
    completion: date | None


def seed(connection: Connection, now: datetime) -> None:
    """Put the month around `now` (aware) into a database; what is there already stays as it is.

    No certificate has a PDF yet: the first run of the rendering makes them all.
    """
    for table, rows in _Month(now).tables():
        # Other rows may hold a key by now, say of a result that a job saved: they win.
        connection.execute(insert(table).on_conflict_do_nothing(), rows)


def generate(connection: Connection, now: datetime, sessions: int) -> None:
    """Put `sessions` numbered sessions with all that belongs to them into a database.

    About eight rows a session, over three years. The same number gives the same session, so a second call
    with more of them adds the rest.
    """
    binds = {"sessions": sessions, "now": now, "today": local_date(now, ZONE)}
    for table in ("users", "contractors", "sessions", "results", "certificates", "mail", "alerts"):
        connection.execute(statement(_PACKAGE, f"generate_{table}").clause, binds)


def lab_records(now: datetime) -> list[dict[str, Any]]:
    """Return what the lab has for the seeded sessions, as its API gives it, oldest first."""

    def record(number: int, value: Any, unit: str | None = "Bq/m3", **names: str) -> dict[str, Any]:
        made = now - timedelta(hours=40 - number)
        return {
            "id": f"LAB-{7000 + number}",
            "order_id": None,
            "kit_serial_number": None,
            "value": value,
            "unit": unit,
            "measured_at": (made - timedelta(hours=6)).isoformat(),
            "created_at": made.isoformat(),
        } | names

    records = [
        record(1, "148", order_id=_order("by order")),
        record(2, 93.5, kit_serial_number=_kit("by kit")),
        record(3, "4.0", "pCi/L", order_id=_order("in picocuries"), kit_serial_number=_kit("in picocuries")),
        record(4, "<0.3", "pCi/L", order_id=_order("below detection")),
        # Two records of one instant: a page may end between them.
        record(5, "212", order_id=_order("same instant, first")),
        record(5, "67", order_id=_order("same instant, second")) | {"id": "LAB-7005-B"},
        record(6, "130", order_id=_order("has a result")),
        record(7, "120", order_id=_order("ambiguous, one"), kit_serial_number=_kit("ambiguous, two")),
        record(8, "55", order_id="CPO-UNKNOWN"),
        record(9, "88", order_id=_order("too early")),
        record(10, "NaN", order_id=_order("not a number")),
        record(11, "101", None, order_id=_order("no unit")),
        record(12, "-4", order_id=_order("negative")),
        record(13, "77"),
        record(14, "12,5", order_id=_order("not a number")),
        record(15, "64", order_id=_order("not a number")) | {"created_at": "yesterday"},
    ]
    return sorted(records, key=lambda found: str(found["created_at"]))


def _id(kind: str, name: object) -> uuid.UUID:
    return uuid.uuid5(_SPACE, f"{kind}/{name}")


def _pick(of: Sequence[str], number: int) -> str:
    return of[number % len(of)]


def _digits(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big") % 1_000_000


def _order(session: str) -> str:
    return f"CPO-{_digits(f'order {session}'):06}"


def _kit(session: str) -> str:
    return f"RK-{_digits(f'kit {session}'):06}"


class _Month:
    """The rows, table by table, in the order in which they refer to each other."""

    def __init__(self, now: datetime) -> None:
        self.now = now.astimezone(UTC)
        self.today = local_date(now, ZONE)
        self.random = random.Random(_SEED)  # noqa: S311 - variety, not secrecy
        self.users: dict[str, dict[str, Any]] = {}
        self.contractors: list[dict[str, Any]] = []
        self.sessions: list[dict[str, Any]] = []
        self.results: list[dict[str, Any]] = []
        self.certificates: list[dict[str, Any]] = []
        self.batches: list[dict[str, Any]] = []
        self.mails: list[dict[str, Any]] = []
        self.alerts: list[dict[str, Any]] = []
        self.attempts: list[dict[str, Any]] = []
        self.aside: list[dict[str, Any]] = []
        self._contractor_rows()
        self._ordinary_sessions()
        self._mail_that_is_due()
        self._mail_that_goes_nowhere()
        self._claims_of_killed_runs()
        self._sessions_past_their_date()
        self._certificates_at_their_limit()
        self._sessions_that_wait_for_the_lab()
        self._records_set_aside()
        self._tries_that_failed()

    def tables(self) -> Sequence[tuple[Table, Sequence[Mapping[str, Any]]]]:
        return (
            (USERS, list(self.users.values())),
            (CONTRACTORS, self.contractors),
            (TEST_SESSIONS, self.sessions),
            (RESULTS, self.results),
            (CERTIFICATES, self.certificates),
            (EMAIL_BATCHES, self.batches),
            (EMAIL_LOG, self.mails),
            (CNRPP_ALERTS, self.alerts),
            (EMAIL_ATTEMPTS, self.attempts),
            (LAB_SET_ASIDE, self.aside),
            (JOBS_STATE, self._jobs()),
        )

    # --- moments

    def _at(self, days: int, hour: int, minute: int = 0) -> datetime:
        """Return a local time, so many days from today."""
        day = self.today + timedelta(days=days)
        return datetime.combine(day, time(hour, minute), tzinfo=ZONE).astimezone(UTC)

    def _past(self, at: datetime) -> datetime:
        return min(at, self.now)

    # --- rows

    def _user(self, name: str | None) -> uuid.UUID:
        key = name or "nobody"
        made = _id("user", key)
        login = hashlib.sha256(key.encode()).hexdigest()[:8]
        self.users.setdefault(
            key,
            {
                "id": made,
                "full_name": name,
                "email": f"customer-{login}@example.test",
                "created_at": self._at(-900, 9),
            },
        )
        return made

    def _session(
        self,
        name: str,
        status: str,
        activated_at: datetime | None,
        completion: date | None = None,
        *,
        user: str | None = "",
        ended_at: datetime | None = None,
    ) -> _Session:
        """Add a session; without a date it completes 91 days after its activation."""
        number = len(self.sessions)
        if completion is None and activated_at is not None:
            completion = local_date(activated_at, ZONE) + timedelta(days=_TEST_DAYS)
        owner = self._user(_pick(_NAMES, number) if user == "" else user)
        created = (activated_at or self._at(-2, 11)) - timedelta(days=6)
        contractor = self.contractors[number % len(self.contractors)]["id"] if number % 3 == 0 else None
        self.sessions.append(
            {
                "id": _id("session", name),
                "user_id": owner,
                "contractor_id": contractor,
                "status": status,
                "clearpath_order_id": _order(name),
                "kit_serial_number": _kit(name),
                "address": ", ".join(
                    (f"{100 + 7 * number} {_pick(_STREETS, number)}", _pick(_TOWNS, number))
                ),
                "activated_at": activated_at,
                "expected_completion_date": completion,
                "expired_at": ended_at if status == "expired" else None,
                "completed_at": ended_at if status == "complete" else None,
                "created_at": created,
                "updated_at": ended_at or activated_at or created,
            }
        )
        return _Session(_id("session", name), owner, status, activated_at, completion)

    def _result(self, session: _Session, at: datetime, value: int | None = None) -> None:
        measured = value if value is not None else round(self.random.lognormvariate(4.3, 0.8))
        self.results.append(
            {
                "id": _id("result", session.id),
                "test_session_id": session.id,
                "value_bq_m3": measured,
                "reported_value": str(measured),
                "reported_unit": "Bq/m3",
                "source": "self_entry",
                "measured_at": at - timedelta(days=4),
                "created_at": at,
            }
        )

    def _certificate(self, session: _Session, issued_on: date, at: datetime, **values: Any) -> None:
        # As the jobs number them, so that a job that comes later finds the number taken by its own session.
        number = hashlib.md5(str(session.id).encode(), usedforsecurity=False).hexdigest()[:10].upper()
        self.certificates.append(
            {
                "id": _id("certificate", session.id),
                "test_session_id": session.id,
                "certificate_number": f"CP-{issued_on:%Y}-{number}",
                "status": "valid",
                "issued_on": issued_on,
                "valid_until": issued_on + relativedelta(years=_CERTIFICATE_YEARS),
                "expired_at": None,
                "pdf_needs_regeneration": False,
                "render_error": None,
                "render_failed_at": None,
                "created_at": at,
                "updated_at": at,
            }
            | values
        )

    def _mail(
        self,
        session: _Session | None,
        email_type: str,
        status: str,
        due: datetime,
        *,
        copy: int = 0,
        **values: Any,
    ) -> dict[str, Any]:
        """Add a mail; `copy` tells those of one session and type apart."""
        sent = status == "sent"
        at = self._past(due + timedelta(minutes=self.random.randrange(1, 15)))
        owner = values.pop("user_id", None) or (session.user if session else None)
        made = _id("mail", f"{session.id if session else owner}/{email_type}/{copy}")
        row = {
            "id": made,
            "user_id": owner,
            "test_session_id": session.id if session else None,
            "email_type": email_type,
            "status": status,
            "scheduled_at": due,
            "sent_at": at if sent else None,
            "provider_message_id": f"demo-{made.hex[:12]}" if sent else None,
            "retry_count": 0,
            "permanent": False,
            "outcome_unknown": False,
            "next_attempt_at": None,
            "status_reason": None,
            "last_error": None,
            "batch_id": None,
            "created_at": self._past(due - timedelta(days=30)),
            "updated_at": at,
        } | values
        self.mails.append(row)
        return row

    def _sequence(
        self, session: _Session, *, until: datetime | None = None, without: Sequence[str] = ()
    ) -> None:
        """Add a session's mails as its course left them: sent, still queued, or cancelled from `until` on."""
        if session.activated_at is None:
            return
        for email_type, due in due_times(session.activated_at, session.completion).items():
            if email_type in without:
                continue
            if until is not None and due > until:
                reason = f"session {session.status} on {local_date(until, ZONE)}"
                self._mail(session, email_type, "cancelled", due, status_reason=reason, updated_at=until)
            else:
                self._mail(
                    session, email_type, "sent" if due <= self.now - timedelta(hours=1) else "queued", due
                )

    # --- stories

    def _contractor_rows(self) -> None:
        month = local_midnight(self.today.replace(day=1), ZONE)
        this_month = max(month, self.now - timedelta(days=3))
        last_month = month - timedelta(days=9)
        for name, days, told, status in (
            ("Borea Radon Services", 60, None, "active"),
            ("Prairie Air Testing", 61, None, "active"),
            ("Chinook Mitigation", 30, None, "active"),
            ("Rocky View Radon", 20, this_month, "active"),
            ("Bow Valley Home Health", 25, last_month, "active"),
            ("Athabasca Testing", -1, None, "active"),
            ("Peñasco & Fils", 0, None, "active"),
            ("Red Deer Radon", -5, this_month, "active"),
            ("Lakeland Air", -200, last_month - timedelta(days=190), "inactive"),
            ("Foothills Radon", -3, None, "inactive"),
            ("Tundra Environmental", None, None, "active"),
            ("Parkland Measurements", 400, None, "active"),
            (HOSTILE_NAME, 12, None, "active"),
        ):
            made = _id("contractor", name)
            expiry = None if days is None else self.today + timedelta(days=days)
            self.contractors.append(
                {
                    "id": made,
                    "name": name,
                    "email": f"office-{made.hex[:6]}@example.test",
                    "cnrpp_id": f"CRT-{_digits(name):06}",
                    "status": status,
                    "cnrpp_expiry_date": expiry,
                    "last_cnrpp_alert_sent_at": told,
                    "created_at": self._at(-800, 10),
                    "updated_at": told or self._at(-800, 10),
                }
            )
            if told is not None:
                self._alert(made, local_date(told, ZONE), expiry, told, sent_at=told)
        # The mail failed yesterday, after the contractor had been taken out of service.
        foothills = self.contractors[9]
        yesterday = self._past(self._at(-1, 2))
        self._alert(
            foothills["id"],
            self.today,
            foothills["cnrpp_expiry_date"],
            yesterday,
            last_error="the provider did not answer",
        )

    def _alert(
        self, contractor: uuid.UUID, day: date, expiry: date | None, at: datetime, **values: Any
    ) -> None:
        self.alerts.append(
            {
                "id": _id("alert", contractor),
                "contractor_id": contractor,
                "alert_month": day.replace(day=1),
                "expiry_date": expiry,
                "run_as_of": at,
                "sent_at": None,
                "last_error": None,
                "created_at": at,
            }
            | values
        )

    def _ordinary_sessions(self) -> None:
        for age in _ORDINARY_AGES:
            status = next(word for least, word in _STATUS_FROM_AGE if age >= least)
            activated = self._at(-age, 8 + age % 11, 7 * age % 60)
            done = self._at(min(-1, 105 - age), 14) if status == "complete" else None
            session = self._session(f"ordinary {age}", status, activated, ended_at=done)
            self._sequence(session, until=done)
            if done is not None:
                self._result(session, done)
                self._certificate(session, local_date(done, ZONE), done)
        self._session("not activated yet", "pending", None)
        stopped = self._at(-9, 10)
        self._sequence(self._session("cancelled in time", "cancelled", self._at(-50, 12)), until=stopped)
        # What the application sends by itself is in the log as well.
        for name in _NAMES[:6]:
            self._mail(None, "welcome", "sent", self._at(-120, 9), user_id=self._user(name))

    def _due(self, name: str, email_type: str, status: str = "active", user: str | None = "") -> _Session:
        """Add a session whose mails before `email_type` are sent, and which that one is due for now."""
        days = {"day_30": 30, "day_60": 60, "day_80": 80, "day_88": 88, RESULTS_PROMPT: 91}[email_type]
        session = self._session(name, status, self.now - timedelta(days=days, minutes=10), user=user)
        self._sequence(session, without=(email_type,))
        return session

    def _mail_that_is_due(self) -> None:
        soon = self.now - timedelta(minutes=10)
        for email_type, status in (
            ("day_30", "active"),
            ("day_60", "active"),
            ("day_80", "retrieval_due"),
            ("day_88", "retrieval_due"),
        ):
            self._mail(self._due(f"{email_type} due", email_type, status), email_type, "queued", soon)
        prompt = self._session("prompt due", "mailed", self._at(-92, 10))
        self._sequence(prompt, without=(RESULTS_PROMPT,))
        self._mail(prompt, RESULTS_PROMPT, "queued", self._at(-1, 9))
        self._mail(self._due("hostile", "day_30", user=HOSTILE_NAME), "day_30", "queued", soon)
        self._mail(
            self._due("second try", "day_60"),
            "day_60",
            "failed",
            soon - timedelta(hours=1),
            retry_count=1,
            next_attempt_at=soon,
            last_error="The `to` field is invalid for now",
        )
        self._mail(
            self._due("last try", "day_30"),
            "day_30",
            "failed",
            soon - timedelta(hours=2),
            retry_count=2,
            next_attempt_at=soon,
            last_error="mailbox unavailable",
        )
        self._mail(
            self._due("not yet again", "day_30"),
            "day_30",
            "failed",
            soon,
            retry_count=1,
            next_attempt_at=self.now + timedelta(minutes=12),
            last_error="mailbox unavailable",
        )
        # Nobody can be greeted: the template fails.
        self._mail(self._due("nameless", "day_30", user=None), "day_30", "queued", soon)

    def _mail_that_goes_nowhere(self) -> None:
        soon = self.now - timedelta(minutes=10)
        sent = self._due("sent before", "day_30")
        self._mail(sent, "day_30", "sent", soon - timedelta(days=1))
        self._mail(sent, "day_30", "queued", soon, copy=1)
        twice = self._due("twice due", "day_60")
        self._mail(twice, "day_60", "queued", soon - timedelta(minutes=1))
        self._mail(twice, "day_60", "queued", soon, copy=1)
        self._mail(
            twice,
            "day_60",
            "duplicate",
            soon,
            copy=2,
            status_reason="another mail of this kind is on its way",
        )
        # Without a session two of a sequenced type are copies all the same.
        lone = self._user("Tom Baker")
        self._mail(None, "day_30", "sent", soon - timedelta(days=2), user_id=lone)
        self._mail(None, "day_30", "queued", soon, user_id=lone, copy=1)
        for status in _ENDED:
            ended = self._session(
                f"{status} with mail due",
                status,
                self.now - timedelta(days=60, minutes=10),
                ended_at=self._at(-2, 16),
            )
            self._sequence(ended, without=("day_60", "day_80", "day_88", RESULTS_PROMPT))
            self._mail(ended, "day_60", "queued", soon)
            if status == "complete":
                self._result(ended, self._at(-2, 16))
                self._certificate(ended, self.today - timedelta(days=2), self._at(-2, 16))
        self._mail(
            self._due("template broken", "day_60"),
            "day_60",
            "failed",
            self._at(-3, 9),
            permanent=True,
            last_error="ClearPath mail template 'day_60': address is missing",
        )
        self._mail(
            self._due("nobody can tell", "day_60"),
            "day_60",
            "failed",
            self._at(-4, 9),
            permanent=True,
            outcome_unknown=True,
            last_error="begun and never answered; its key has expired",
        )
        # More failures within a day than the queue takes for normal: it counts as stuck.
        for number in range(12):
            self._mail(
                self._due(f"bounced {number}", "day_30"),
                "day_30",
                "abandoned",
                self.now - timedelta(hours=3),
                retry_count=3,
                last_error="mailbox unavailable",
                updated_at=self.now - timedelta(hours=2, minutes=number),
            )

    def _claims_of_killed_runs(self) -> None:
        minutes, hours = timedelta(minutes=20), timedelta(hours=30)
        fresh, stale = _id("batch", "fresh"), _id("batch", "stale")
        for batch, ago, words, begun in (
            (fresh, minutes, "20 minutes", None),
            (stale, hours, "30 hours", self.now - hours),
        ):
            self._batch(batch, f"killed {words} before the demo", self.now - ago)
            for position in (1, 2) if batch == fresh else (1,):
                session = self._due(f"claimed {ago} {position}", "day_80", "retrieval_due")
                mail = self._mail(
                    session, "day_80", "queued", self.now - ago - timedelta(minutes=5), batch_id=batch
                )
                self._attempt(batch, mail, begun, position=position)

    def _tries_that_failed(self) -> None:
        """Add the claims behind every mail that was refused, and behind the one of which nobody knows."""
        for mail in [row for row in self.mails if row["retry_count"] or row["outcome_unknown"]]:
            count = mail["retry_count"] or 1
            for number in range(count):
                at = mail["updated_at"] - timedelta(minutes=15) * (count - 1 - number)
                batch = _id("batch", f"{mail['id']}/{number}")
                self._batch(batch, "scheduled, before the demo", at)
                outcome = "unknown" if mail["outcome_unknown"] else "rejected"
                said: dict[str, Any] = {"outcome": outcome, "reason": mail["last_error"], "answered_at": at}
                self._attempt(batch, mail, at, **said)

    def _batch(self, batch: uuid.UUID, run_id: str, at: datetime) -> None:
        self.batches.append({"id": batch, "provider": "clearpath_email", "run_id": run_id, "claimed_at": at})

    def _attempt(
        self,
        batch: uuid.UUID,
        mail: Mapping[str, Any],
        begun: datetime | None,
        *,
        position: int = 1,
        **said: Any,
    ) -> None:
        user = next(user for user in self.users.values() if user["id"] == mail["user_id"])
        message = Message(
            sender="ClearPath RD <no-reply@example.test>",
            to=user["email"],
            subject="Your radon test",
            text=f"Hello {user['full_name']},\n\nyour test goes on.\n",
        )
        answer = {"outcome": None, "reason": None, "answered_at": None} | said
        self.attempts.append(
            {
                "batch_id": batch,
                "position": position,
                "email_id": mail["id"],
                "message": pack(message),
                "begun_at": begun,
            }
            | answer
        )

    def _sessions_past_their_date(self) -> None:
        for status in ("active", "retrieval_due", "mailed", "results_pending"):
            for name, days in (("over", _GRACE_DAYS + 1), ("boundary", _GRACE_DAYS)):
                completion = self.today - timedelta(days=days)
                activated = self._at(-days - _TEST_DAYS, 10)
                session = self._session(f"{name} {status}", status, activated, completion)
                self._sequence(session, without=(RESULTS_PROMPT,))
                # Put off by hand, twice: one waits, one waits for another try.
                self._mail(session, RESULTS_PROMPT, "queued", self._at(2, 9))
                if name == "over":
                    self._mail(
                        session,
                        RESULTS_PROMPT,
                        "failed",
                        self._at(1, 9),
                        copy=1,
                        retry_count=1,
                        last_error="mailbox unavailable",
                    )
        measured = self._session("over, has a result", "results_pending", self._at(-200, 10))
        self._sequence(measured)
        self._result(measured, self._at(-12, 10))
        gone = self._at(-8, 2)
        self._sequence(
            self._session("expired last week", "expired", self._at(-189, 10), ended_at=gone), until=gone
        )

    def _certificates_at_their_limit(self) -> None:
        # Expired and marked so, expired last night, on the last day, and still good.
        for days, over in ((-20, True), (-1, False), (-1, False), (0, False), (1, False), (30, False)):
            valid_until = self.today + timedelta(days=days)
            issued_on = valid_until - relativedelta(years=_CERTIFICATE_YEARS)
            at = datetime.combine(issued_on, time(11), tzinfo=ZONE).astimezone(UTC)
            name = f"certificate {days} {len(self.certificates)}"
            session = self._session(name, "complete", at - timedelta(days=100), ended_at=at)
            self._sequence(session, until=at)
            self._result(session, at)
            self._certificate(
                session,
                issued_on,
                at,
                valid_until=valid_until,
                status="expired" if over else "valid",
                expired_at=self._at(-19, 2) if over else None,
                pdf_needs_regeneration=over,
            )
        self.certificates[-1] |= {
            "render_error": "the font has no glyph for a character of the address",
            "render_failed_at": self._past(self._at(-1, 6)),
        }

    def _sessions_that_wait_for_the_lab(self) -> None:
        for number, name in enumerate(
            (
                "by order",
                "by kit",
                "in picocuries",
                "below detection",
                "same instant, first",
                "same instant, second",
                "ambiguous, one",
                "ambiguous, two",
                "not a number",
                "no unit",
                "negative",
                "entered since",
            )
        ):
            status = ("mailed", "results_pending")[number % 2]
            self._sequence(self._session(name, status, self._at(-93 - number, 13)))
        self._sequence(self._session("too early", "active", self._at(-40, 13)))
        done = self._at(-6, 10)
        has = self._session("has a result", "complete", self._at(-101, 13), ended_at=done)
        self._sequence(has, until=done)
        self._result(has, done, 131)
        self._certificate(has, local_date(done, ZONE), done)

    def _records_set_aside(self) -> None:
        for key, order, resolved in (
            ("LAB-6998", "CPO-TYPED-WRONG", self._at(-3, 6)),
            ("LAB-6999", _order("entered since"), None),
            ("LAB-7000", "CPO-NOBODYS", None),
        ):
            created = self._at(-5, 3).isoformat()
            record = {
                "id": key,
                "order_id": order,
                "kit_serial_number": None,
                "value": "143",
                "unit": "Bq/m3",
                "measured_at": created,
                "created_at": created,
            }
            self.aside.append(
                {
                    "id": _id("set aside", key),
                    "lab_record_key": key,
                    "reason_code": "unmatched",
                    "reason": "no session has this order or kit",
                    "excerpt": str(record)[:500],
                    "record": record,
                    "first_seen_at": self._at(-5, 6),
                    "last_tried_at": self._at(-3, 6),
                    "tries": 3,
                    "resolved_at": resolved,
                }
            )

    def _jobs(self) -> list[dict[str, Any]]:
        night = self._past(self._at(-1, 2))
        return [
            {
                "id": _id("job", name),
                "job_name": name,
                "last_run_at": ran,
                "last_poll_timestamp": polled,
            }
            for name, ran, polled in (
                ("emailQueue", self.now - timedelta(minutes=20), None),
                ("sessionExpiry", night, None),
                ("certificateExpiry", night, None),
                ("cnrpp", night, None),
                ("labPoll", self._past(self._at(-1, 6)), self.now - timedelta(days=3)),
            )
        ]
