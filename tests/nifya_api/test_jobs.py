"""What administrators may do with jobs, what each role may, and what is refused with which words."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from airflow.models.log import Log
from airflow.utils.session import create_session
from fastapi.testclient import TestClient
from sqlalchemy import URL, insert, select

from include.nifya import job_runs, tables
from include.odd_dates import OddDate
from tests.console.conftest import OWN, token
from tests.nifya.conftest import DAILY, DIGEST, FOR_IT, PROCESS, SUBSCRIPTION
from tests.nifya.test_job_runs import BROKEN, WELL
from tests.nifya_api.conftest import JOBS, Api, json_of, mounted_at

MADRID = ZoneInfo("Europe/Madrid")
HOUR = timedelta(hours=1)
CRON = {"type": "cron", "expression": "0 9 * * *", "timezone": "Europe/Madrid"}
NEW = {"type": PROCESS, "data": FOR_IT | {"userId": "ana"}, "schedule": CRON}


def claimed(api: Api) -> uuid.UUID:
    """Return a job that a worker is at."""
    job = api.jobs.add(schedule=DAILY)
    with api.jobs.database.transaction() as tx:
        job_runs.QUEUE.claim(tx, "a worker", 10)
    return job


def test_create_read_change_delete(api: Api, client: TestClient) -> None:
    """The whole life of a job that nobody runs, as the specification's endpoints have it."""
    answer = client.post(JOBS, json=NEW | {"created_by": "ana"})
    made = json_of(answer, 201)
    assert answer.headers["location"] == api.at(made["id"])
    assert (made["type"], made["data"], made["schedule"]) == (PROCESS, NEW["data"], CRON)
    assert (made["status"], made["attempts"], made["created_by"]) == ("pending", 0, "ana")
    local = datetime.fromisoformat(made["next_run_at"]).astimezone(MADRID)
    assert (local.hour, local.minute, local > datetime.now(UTC)) == (9, 0, True)

    assert json_of(client.get(api.at(made["id"])), 200) == made

    changed = json_of(
        client.put(api.at(made["id"]), json={"schedule": CRON | {"expression": "30 7 * * *"}}), 200
    )
    local = datetime.fromisoformat(changed["next_run_at"]).astimezone(MADRID)
    assert (changed["data"], local.hour, local.minute) == (NEW["data"], 7, 30)

    assert client.delete(api.at(made["id"])).status_code == 204
    assert client.get(api.at(made["id"])).status_code == 404
    assert client.delete(api.at(made["id"])).status_code == 404


@pytest.mark.parametrize(
    ("body", "due"),
    [
        ({"type": DIGEST}, timedelta(0)),
        ({"type": DIGEST, "next_run_at": "2030-01-01T09:00:00+01:00"}, None),
        (
            {
                "type": DIGEST,
                "data": {"hourOfDay": "09"},
                "schedule": {"type": "interval", "intervalMs": 3_600_000},
            },
            HOUR,
        ),
        ({"type": DIGEST, "data": {"hourOfDay": 9}, "schedule": None}, timedelta(0)),
    ],
)
def test_when_a_new_job_is_due(client: TestClient, body: Any, due: timedelta | None) -> None:
    """Named, by its schedule, or at once; an interval is counted from now."""
    at = datetime.fromisoformat(json_of(client.post(JOBS, json=body), 201)["next_run_at"])
    expected = datetime(2030, 1, 1, 8, tzinfo=UTC) if due is None else datetime.now(UTC) + due
    assert abs(at - expected) < timedelta(seconds=20)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "is not JSON"),
        (b"{", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"null", "Expected `object`"),
        ([], "Expected `object`"),
        ({}, "required field `type`"),
        ({"type": "reticulate-splines"}, "Invalid value 'reticulate-splines'"),
        ({"type": 5}, "`type`"),
        ({"type": PROCESS}, "required field `data`"),
        ({"type": PROCESS, "data": {}}, "required field `subscriptionId`"),
        ({"type": PROCESS, "data": {"subscriptionId": "7"}}, "UUID"),
        ({"type": PROCESS, "data": {"subscriptionId": str(uuid.UUID(int=1))}}, "there is no subscription"),
        ({"type": PROCESS, "data": FOR_IT | {"userId": "eva"}}, "is not of the user 'eva'"),
        ({"type": PROCESS, "data": FOR_IT | {"userId": "a\x00"}}, "is not of the user"),
        ({"type": PROCESS, "data": FOR_IT, "prompts": ["x"]}, "unknown field `prompts`"),
        ({"type": DIGEST, "data": {"hourOfDay": 24}}, "hourOfDay"),
        ({"type": DIGEST, "data": {"hourOfDay": "nine"}}, "hourOfDay"),
        ({"type": DIGEST, "data": {"hourOfDay": "09\n"}}, "hourOfDay"),
        ({"type": DIGEST, "status": "completed"}, "unknown field `status`"),
        ({"type": DIGEST, "created_by": "nobody"}, "there is no user 'nobody'"),
        ({"type": DIGEST, "created_by": "x\x00"}, "created_by: there is no user 'x"),
        ({"type": DIGEST, "next_run_at": "tomorrow"}, "next_run_at"),
        ({"type": DIGEST, "next_run_at": "2030-01-01T09:00:00"}, "next_run_at"),
        ({"type": DIGEST, "next_run_at": "1999-12-31T00:00:00Z"}, "is before 2000"),
        ({"type": DIGEST, "next_run_at": "2999-01-01T00:00:00Z"}, "more than ten years ahead"),
        ({"type": DIGEST, "schedule": {"type": "monthly"}}, "Invalid value 'monthly'"),
        ({"type": DIGEST, "schedule": CRON | {"expression": "0 0 31 2 *"}}, "a date that never comes"),
        ({"type": DIGEST, "schedule": CRON | {"timezone": "Mars/Olympus"}}, "is not an IANA time zone"),
        ({"type": DIGEST, "schedule": {"type": "weekly", "hourOfDay": 9, "daysOfWeek": []}}, "length >= 1"),
        ({"type": DIGEST, "schedule": {"type": "interval", "intervalMs": 1000}}, ">= 60000"),
        ({"type": DIGEST, "schedule": "daily"}, "schedule"),
    ],
)
def test_a_body_that_can_not_be(refusing: TestClient, body: Any, words: str) -> None:
    """Ruling NIFYA: what is impossible is refused when it is saved, with words that name the part; nothing is kept."""
    sent: Any = {"content": body} if isinstance(body, bytes) else {"json": body}
    answer = refusing.post(JOBS, headers={"content-type": "application/json"}, **sent)
    assert words in json_of(answer, 422)["detail"]
    assert json_of(refusing.get(JOBS), 200) == {"jobs": [], "next": None}


def test_a_job_for_an_inactive_subscription(api: Api, client: TestClient) -> None:
    """It would end at its first run; whoever saves it must hear that now."""
    api.jobs.execute("UPDATE subscriptions SET active = false")
    assert "is inactive" in json_of(client.post(JOBS, json=NEW), 422)["detail"]


@pytest.mark.parametrize(
    ("kind", "content", "code"),
    [
        ("text/plain", b"{}", 415),
        ("application/x-www-form-urlencoded", b"type=send-digest-emails", 415),
        ("application/json", b'{"type": "' + b"x" * 200_000 + b'"}', 413),
        ("application/json; charset=utf-8", b'{"type": "send-digest-emails"}', 201),
    ],
)
def test_a_body_of_the_wrong_kind(client: TestClient, kind: str, content: bytes, code: int) -> None:
    """A form of another site can send text; a body without end must not fill the memory."""
    answer = client.post(JOBS, content=content, headers={"content-type": kind})
    assert answer.status_code == code, answer.text


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "changes nothing"),
        ({"id": 1}, "unknown field `id`"),
        ({"status": "completed"}, "unknown field `status`"),
        ({"type": None}, "`type`"),
        ({"type": DIGEST}, "unknown field `subscriptionId`"),
        ({"data": {}}, "required field `subscriptionId`"),
        ({"schedule": {"type": "daily"}}, "required field `hourOfDay`"),
        ({"schedule": CRON | {"expression": "0 0 30 2 *"}}, "a date that never comes"),
        ({"next_run_at": None}, "next_run_at"),
    ],
)
def test_a_change_that_can_not_be(api: Api, client: TestClient, body: Any, words: str) -> None:
    """A change is held to what a new job is held to, as it would be with the change."""
    job = api.jobs.add(schedule=DAILY)
    before = json_of(client.get(api.at(job)), 200)
    assert words in json_of(client.put(api.at(job), json=body), 422)["detail"]
    assert json_of(client.get(api.at(job)), 200) == before


def test_a_body_that_is_nested_without_end(api: Api, client: TestClient) -> None:
    """A hundred kilobytes of brackets must not end the process, nor be an error of ours."""
    content = b'{"data": {"a": ' + b"[" * 50_000
    answer = client.put(api.at(api.jobs.add()), content=content, headers={"content-type": "application/json"})
    assert "nested too deeply" in json_of(answer, 422)["detail"]


def test_a_change_of_part_leaves_the_rest(api: Api, client: TestClient) -> None:
    """What a body doesn't name stays; a job that waited for another try begins anew at the new time."""
    job = api.jobs.add(schedule=DAILY, attempts=2, error="boe: 503", retry_at=datetime.now(UTC) + HOUR)
    changed = json_of(client.put(api.at(job), json={"next_run_at": "2030-01-01T09:00:00Z"}), 200)
    assert (changed["schedule"], changed["data"]) == (DAILY, FOR_IT)
    assert (changed["attempts"], changed["error"], changed["retry_at"]) == (0, None, None)
    assert datetime.fromisoformat(changed["next_run_at"]) == datetime(2030, 1, 1, 9, tzinfo=UTC)
    assert json_of(client.put(api.at(job), json={"schedule": None}), 200)["schedule"] is None


def test_two_rows_of_a_series_at_one_time(api: Api, client: TestClient) -> None:
    """A change must not put a second run of a series where one is; the answer says so instead of a crash."""
    job = api.jobs.add(schedule=DAILY)
    api.jobs.perform(WELL)
    (second,) = api.jobs.after(job)
    api.jobs.add(series_id=job, ago=-HOUR)
    taken = next(row for row in api.jobs.after(job) if row.id != second.id).next_run_at.isoformat()
    answer = client.put(api.at(second.id), json={"next_run_at": taken})
    assert "its series has a job at" in json_of(answer, 409)["detail"]


@pytest.mark.parametrize(
    ("method", "more", "body"),
    [("PUT", "", {"schedule": None}), ("DELETE", "", None), ("POST", "/run", None)],
)
def test_a_job_that_is_being_worked_on(
    api: Api, client: TestClient, method: str, more: str, body: Any
) -> None:
    """Ruling NIFYA: 409 for changing a row in processing, and the row is as it was."""
    job = claimed(api)
    before = json_of(client.get(api.at(job)), 200)
    answer = client.request(method, api.at(job, more), json=body)
    assert "is processing and can't be" in json_of(answer, 409)["detail"]
    assert json_of(client.get(api.at(job)), 200) == before


def test_run_a_job_that_waits(api: Api, client: TestClient) -> None:
    """It runs now; twice asked is once run; its series keeps the planned time."""
    job = api.jobs.add(schedule={"type": "interval", "intervalMs": 3_600_000}, ago=-2 * HOUR)
    assert api.jobs.perform(WELL).counts["processed"] == 0
    asked = [json_of(client.post(api.at(job, "/run")), 202) for _ in range(2)]
    assert asked[0]["id"] == asked[1]["id"] != str(job)
    assert (asked[0]["data"], asked[0]["schedule"]) == (FOR_IT, None)
    assert api.jobs.perform(WELL).counts["processed"] == 1
    assert api.jobs.perform(WELL).counts["processed"] == 0
    assert (api.jobs.row(job).status, api.jobs.after(job)) == ("pending", [])


def test_run_a_job_that_is_late(api: Api, client: TestClient) -> None:
    """One whose time has come, or that waits for another try, is itself the one that runs."""
    job = api.jobs.add(schedule=DAILY, retry_at=datetime.now(UTC) + HOUR, attempts=1)
    for _ in range(2):
        assert json_of(client.post(api.at(job, "/run")), 202)["id"] == str(job)
    assert api.jobs.perform(WELL).counts["processed"] == 1
    assert api.jobs.row(job).status == "completed"


def test_run_a_job_that_failed(api: Api, client: TestClient) -> None:
    """It begins anew with all its tries, and the audit trail names who asked."""
    job = api.jobs.add()
    api.jobs.perform(BROKEN)
    answer = json_of(client.post(api.at(job, "/run")), 202)
    assert (answer["id"], answer["status"], answer["attempts"]) == (str(job), "pending", 0)
    with api.jobs.database.engine.connect() as connection:
        trail = tables.QUEUE_AUDIT
        actors = (
            connection.execute(select(trail.c.actor).where(trail.c.from_status == "failed")).scalars().all()
        )
    assert actors == ["otto"]


def test_run_a_job_that_completed(api: Api, client: TestClient) -> None:
    """What was done stays as it was done: a new job does it again, once, outside the series."""
    job = api.jobs.add(schedule=DAILY)
    api.jobs.perform(WELL)
    again = json_of(client.post(api.at(job, "/run")), 202)
    assert again["id"] != str(job)
    assert (again["data"], again["schedule"], again["status"]) == (FOR_IT, None, "pending")
    assert api.jobs.perform(WELL).counts["completed"] == 1
    assert len(api.jobs.after(job)) == 1


def test_the_list_is_narrowed(api: Api, client: TestClient) -> None:
    """Every filter alone and two together; what no job fits is an empty page."""
    first = api.jobs.add(schedule=DAILY, created_by="ana", ago=3 * HOUR)
    api.jobs.perform(WELL)
    (second,) = api.jobs.after(first)
    digest = api.jobs.add(DIGEST, ago=-48 * HOUR)

    def ids(**filters: Any) -> set[str]:
        return {job["id"] for job in json_of(client.get(JOBS, params=filters), 200)["jobs"]}

    everything = {str(first), str(second.id), str(digest)}
    assert ids() == everything
    assert ids(status="completed") == {str(first)}
    assert ids(status="processing") == set()
    assert ids(type=DIGEST) == {str(digest)}
    assert ids(subscription_id=str(SUBSCRIPTION)) == {str(first), str(second.id)}
    assert ids(subscription_id=str(SUBSCRIPTION).upper(), status="pending") == {str(second.id)}
    assert ids(series_id=str(first)) == {str(first), str(second.id)}
    assert ids(created_by="ana") == {str(first), str(second.id)}
    now = datetime.now(UTC)
    assert ids(due_before=now.isoformat()) == {str(first)}
    assert ids(due_from=(now + 40 * HOUR).isoformat()) == {str(digest)}


@pytest.mark.parametrize("when", ["12026-01-01 00:00Z", "0044-03-15 10:00Z BC", "infinity"])
def test_pages_go_on_behind_an_odd_date(api: Api, client: TestClient, when: str) -> None:
    """The list's own way on is taken, whatever instant it names."""
    jobs = {str(api.jobs.add(next_run_at=OddDate(when))) for _ in range(3)}
    seen: set[str] = set()
    after: dict[str, str] = {}
    while True:
        page = json_of(client.get(JOBS, params={"limit": 1} | after), 200)
        seen |= {job["id"] for job in page["jobs"]}
        if page["next"] is None:
            break
        after = {"after": page["next"]}
    assert jobs <= seen


def test_pages_hold_every_job_once(api: Api, client: TestClient) -> None:
    """Paged by place: rows with one time in common are neither lost nor shown twice between two pages."""
    when = datetime.now(UTC) + HOUR
    with api.jobs.database.engine.begin() as connection:
        connection.execute(
            insert(tables.SCHEDULED_JOBS),
            [{"type": DIGEST, "next_run_at": when - timedelta(days=n // 10)} for n in range(25)],
        )
    seen: list[str] = []
    after = None
    while True:
        page = json_of(client.get(JOBS, params={"limit": 7} | ({"after": after} if after else {})), 200)
        seen += [job["id"] for job in page["jobs"]]
        after = page["next"]
        if after is None:
            break
    assert len(seen) == len(set(seen)) == 25


@pytest.mark.parametrize(
    "query",
    [
        "status=done", "limit=0", "limit=201", "limit=x", "after=nonsense", "after=MjAyNw==", "series_id=7",
        "due_from=today", "due_from=0.0", "due_from=2027-01-01T00:00:00", "page=2", "type=%00",
    ],
)  # fmt: skip
def test_a_filter_that_can_not_be(refusing: TestClient, query: str) -> None:
    """A filter with a slip in it must not answer as if it fitted nothing, or everything."""
    assert json_of(refusing.get(f"{JOBS}?{query}"), 422)["detail"]


def test_what_an_application_wrote_is_shown_as_it_is(api: Api, client: TestClient) -> None:
    """Rows that no handler knows stand in adopted tables; the list must not break on them."""
    job = api.jobs.add("reticulate-splines", data=[1, "a"], schedule={"every": "day"})
    assert json_of(client.get(api.at(job)), 200)["data"] == [1, "a"]
    assert len(json_of(client.get(JOBS), 200)["jobs"]) == 1
    assert "is not one of" in json_of(client.put(api.at(job), json={"schedule": None}), 422)["detail"]


ROUTES = [
    ("GET", ""), ("POST", ""), ("GET", f"/{uuid.UUID(int=7)}"), ("PUT", f"/{uuid.UUID(int=7)}"),
    ("DELETE", f"/{uuid.UUID(int=7)}"), ("POST", f"/{uuid.UUID(int=7)}/run"),
]  # fmt: skip


def test_nobody_gets_in_without_a_login(api: Api) -> None:
    """A route without a guard is public; the description of the API is behind one too."""
    anonymous = api.as_user(None)
    for method, more in ROUTES:
        assert anonymous.request(method, JOBS + more).status_code == 401
        headers = {"authorization": "Bearer nonsense"}
        assert anonymous.request(method, JOBS + more, headers=headers).status_code == 403
    assert anonymous.get("/nifya/api/admin/openapi.json").status_code == 401
    for path in ("/nifya/openapi.json", "/nifya/docs", "/nifya/redoc"):
        assert anonymous.get(path).status_code == 404


def test_a_viewer_reads_and_changes_nothing(api: Api) -> None:
    """Ruling NIFYA: roles by Airflow; who may read the DAG's runs reads, who may trigger it writes."""
    job = api.jobs.add(schedule=DAILY)
    viewer = api.as_user("vera", "VIEWER")
    assert viewer.get(JOBS).status_code == 200
    assert viewer.get(api.at(job)).status_code == 200
    before = viewer.get(api.at(job)).json()
    for method, path, body in (
        ("POST", JOBS, NEW), ("PUT", api.at(job), {"schedule": None}), ("DELETE", api.at(job), None),
        ("POST", api.at(job, "/run"), None),
    ):  # fmt: skip
        assert viewer.request(method, path, json=body).status_code == 403
    assert viewer.get(api.at(job)).json() == before


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, 403),
        ({"origin": "https://evil.test"}, 403),
        ({"origin": OWN, "sec-fetch-site": "cross-site"}, 403),
        ({"origin": OWN, "sec-fetch-site": "same-origin"}, 202),
    ],
)
def test_another_site_changes_nothing_with_a_users_cookie(
    api: Api, headers: dict[str, str], code: int
) -> None:
    """A browser adds Airflow's cookie to whatever a page asks for; a request without a body needs no preflight."""
    job = api.jobs.add(schedule=DAILY, ago=-HOUR)
    browser = api.as_user(None)
    browser.cookies.set("_token", token("otto", "USER"))
    assert browser.post(api.at(job, "/run"), headers=headers).status_code == code


def test_changes_stand_in_airflows_audit_log(api: Api, client: TestClient) -> None:
    """Who changed what is asked after the fact; what was refused changed nothing and is not there."""
    made = json_of(client.post(JOBS, json=NEW), 201)
    client.put(api.at(made["id"]), json={})
    client.post(api.at(made["id"], "/run"))
    with create_session() as session:
        noted = session.scalars(select(Log).where(Log.extra.contains(made["id"])).order_by(Log.id)).all()
        assert [(one.event, one.owner) for one in noted] == [
            ("nifya_create_job", "otto"),
            ("nifya_run_job", "otto"),
        ]


def test_a_database_that_is_out_of_reach(airflow: None) -> None:
    """An outage is a 503 that says so, never a 500 with a stack or an address."""
    gone = URL.create("postgresql+psycopg", "ada", "secret", "127.0.0.1", 1, "nifya")
    with mounted_at(gone) as app:
        client = TestClient(app, base_url=OWN)
        client.headers["authorization"] = f"Bearer {token('otto', 'USER')}"
        for answer in (client.get(JOBS), client.post(JOBS, json={"type": DIGEST})):
            assert json_of(answer, 503) == {"detail": "The database can't be reached now; try again."}
