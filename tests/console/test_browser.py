"""The console in a real browser, inside of Airflow, on the whole stack."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, BrowserContext, Frame, Page, expect, sync_playwright
from sqlalchemy import Engine, insert, text

from include.arcvest.jobs import JOBS
from include.clearpath.tables import (
    CERTIFICATES,
    EMAIL_ATTEMPTS,
    EMAIL_BATCHES,
    EMAIL_LOG,
    LAB_SET_ASIDE,
    RESULTS,
    TEST_SESSIONS,
    USERS,
)
from include.ecocomply.access import act_as_service
from include.ecocomply.background_jobs import JOBS as ECOCOMPLY_JOBS
from include.ecocomply.tables import METADATA as ECOCOMPLY_TABLES
from include.mail import Message
from include.platform.tables import ALERT
from include.queues.engine import Failure, Queue
from include.run import EngineDatabase
from include.stored_message import pack
from tests.console import queue_sample
from tests.console.sample import HOSTILE, HOSTILE_HTML, RENDERING, number, put
from tests.live import LiveStack

PAGES = {
    "almanac-runs": "/almanac/runs",
    "almanac-queues": "/almanac/queues",
    "almanac-alerts": "/almanac/alerts",
    "clearpath-mail": "/almanac/clearpath/mail",
    "clearpath-certificates": "/almanac/clearpath/certificates",
    "clearpath-lab": "/almanac/clearpath/lab",
    "ecocomply-jobs": "/almanac/ecocomply/jobs",
    "ecocomply-dead-letters": "/almanac/ecocomply/dead-letters",
    "ecocomply-notifications": "/almanac/ecocomply/notifications",
    "ecocomply-compliance": "/almanac/ecocomply/compliance",
    "ecocomply-risk": "/almanac/ecocomply/risk",
    "ecocomply-companies": "/almanac/ecocomply/companies",
}
MAIL = f"/almanac/clearpath/mail/{number('browser mail')}"
QUEUE = "/almanac/queues/arcvest.job_queue"
JOB = f"{QUEUE}/row?key={number('browser job')}"
LETTERS = [number(f"browser letter {n}") for n in range(3)]
LETTER = f"/almanac/ecocomply/dead-letters/{LETTERS[0]}"
NOTIFICATION = f"/almanac/ecocomply/notifications/{number('browser notification')}"
SITE_RISK = f"/almanac/ecocomply/risk/{number('browser site')}"
COMPANY = f"/almanac/ecocomply/companies/{number('browser company')}"
ECOCOMPLY = (LETTER, NOTIFICATION, SITE_RISK, COMPANY)
FULL_DISK = [number(f"browser full disk {n}") for n in range(12)]
DESK = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 800}
ENOUGH = 4.5
"""The least contrast of text that WCAG 2.2 asks for at level AA."""

# For every text that is seen: its contrast with what is painted behind it, and what it says.
CONTRASTS = """() => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const channels = (colour, under) => {
    canvas.fillStyle = under; canvas.fillRect(0, 0, 1, 1);
    canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data.slice(0, 3)];
  };
  const css = rgb => `rgb(${rgb.join(' ')})`;
  const luminance = rgb => rgb.map(c => c / 255)
    .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = element => {
    const above = element.parentElement ? behind(element.parentElement) : [255, 255, 255];
    return channels(getComputedStyle(element).backgroundColor, css(above));
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, range = document.createRange();
    range.selectNodeContents(node);
    if (!node.data.trim() || !range.getBoundingClientRect().width) continue;
    const under = behind(node.parentElement);
    const a = luminance(channels(getComputedStyle(node.parentElement).color, css(under)));
    const b = luminance(under);
    found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), node.data.trim()]);
  }
  return found;
}"""

# How the element with the focus shows it: the outline's width in pixels, 0 if there is none.
OUTLINE = """() => {
  const style = getComputedStyle(document.activeElement);
  return style.outlineStyle === 'none' ? 0 : parseFloat(style.outlineWidth);
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start the system's Chromium once."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium") or "chromium",
            args=["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield chromium
        chromium.close()


@dataclass(frozen=True)
class Seat:
    """Somebody at a browser; `reached` lists what left it for other hosts than the stack's."""

    stack: LiveStack
    context: BrowserContext
    reached: list[str]

    def page(self, path: str) -> Page:
        """Open a path of the server by itself."""
        page = self.context.new_page()
        page.goto(self.stack.url + path)
        return page

    def in_airflow(self, route: str, path: str = "") -> tuple[Page, Frame]:
        """Open a page of the console as a person does: in the frame beside Airflow's navigation."""
        page = self.page(f"/plugin/{route}{path}")
        element = page.wait_for_selector("iframe")
        assert element is not None
        frame = element.content_frame()
        assert frame is not None
        frame.wait_for_selector("h1")
        return page, frame


@pytest.fixture(scope="module")
def stack(live_stack: LiveStack) -> LiveStack:
    """Put in what the demo data has not: hostile text in every place, and a preview."""
    _put_hostile(live_stack)
    live_stack.run(RENDERING, {"dry_run": True, "certificate_id": str(number("browser certificate"))})
    return live_stack


def _put_hostile(live: LiveStack) -> None:
    now = datetime.now(UTC)
    clearpath = live.database("clearpath")
    user, session, mail = number("browser user"), number("browser session"), number("browser mail")
    put(clearpath, USERS, {"id": user, "email": "hostile@example.test", "full_name": HOSTILE})
    put(clearpath, TEST_SESSIONS, {"id": session, "user_id": user, "status": "cancelled", "address": HOSTILE})
    batch = {
        "id": number("browser claim"),
        "provider": "clearpath_email",
        "run_id": "before",
        "closed_at": now,
    }
    put(clearpath, EMAIL_BATCHES, batch)
    whose = {"user_id": user, "test_session_id": session, "scheduled_at": now - timedelta(minutes=1)}
    put(
        clearpath,
        EMAIL_LOG,
        {**whose, "id": mail, "email_type": "day_30", "status": "sent", "sent_at": now},
        {
            **whose,
            "id": number("browser cancelled"),
            "email_type": "day_60",
            "status": "cancelled",
            "status_reason": "session cancelled on 2027-03-03",
        },
    )
    message = Message("ClearPath <a@clearpath.test>", "hostile@example.test", HOSTILE, HOSTILE, HOSTILE_HTML)
    put(
        clearpath,
        EMAIL_ATTEMPTS,
        {
            "batch_id": batch["id"],
            "position": 0,
            "email_id": mail,
            "message": pack(message),
            "outcome": "accepted",
        },
    )
    put(
        clearpath,
        LAB_SET_ASIDE,
        {"lab_record_key": HOSTILE, "reason_code": "no_unit", "reason": HOSTILE, "excerpt": HOSTILE},
    )
    put(
        clearpath,
        CERTIFICATES,
        {
            "id": number("browser certificate"),
            "test_session_id": session,
            "certificate_number": "CP-HOSTILE",
            "status": "valid",
            "past_at_adoption": True,
            "issued_on": now.date(),
            "valid_until": now.date() + timedelta(days=700),
        },
    )
    put(clearpath, RESULTS, {"test_session_id": session, "value_bq_m3": 148, "source": "lab"})
    _put_jobs(live.database("arcvest"), now)
    _put_ecocomply(live.database("ecocomply"), now)
    put(
        live.database("almanac"),
        ALERT,
        {"cause": "browser", "kind": "run", "subject": HOSTILE, "body": HOSTILE, "no_address": True},
    )


def _put_jobs(arcvest: Engine, now: datetime) -> None:
    data = {"note": HOSTILE, "lines": ["a long word " + "x" * 200, {"nested": True}]}
    queue_sample.add(arcvest, now, {"id": number("browser job"), "job_type": HOSTILE, "payload": data})
    queue_sample.add(arcvest, now, *[{"id": key, "job_type": "browser"} for key in FULL_DISK])
    reasons = {key: f"disk of node {n} is full" for n, key in enumerate(FULL_DISK)}
    reasons[number("browser job")] = HOSTILE
    queue_sample.end(arcvest, JOBS, reasons, kinds=["browser", HOSTILE])


def _put_ecocomply(ecocomply: Engine, now: datetime) -> None:
    """Put in a company of hostile names that has something on every page."""
    company, site, user = (number(f"browser {what}") for what in ("company", "site", "user of it"))
    of, batch = number("browser obligation"), number("browser eco claim")
    rows: list[tuple[str, dict[str, Any]]] = [
        ("companies", {"id": company, "name": HOSTILE}),
        ("sites", {"id": site, "company_id": company, "name": HOSTILE}),
        ("users", {"id": user, "company_id": company, "email": "eco@example.test", "full_name": HOSTILE}),
        ("obligations", {"id": of, "company_id": company, "site_id": site, "summary": HOSTILE}),
        (
            "compliance_clocks_universal",
            {
                "company_id": company, "site_id": site, "entity_type": "OBLIGATION", "entity_id": of,
                "clock_type": HOSTILE, "target_date": now.date(), "days_remaining": 0, "criticality": "RED",
            },
        ),
        *(
            (
                "risk_scores",
                {
                    "company_id": company, "site_id": site, "score_date": now.date() - timedelta(days=n),
                    "risk_score": 99 - n, "risk_band": "CRITICAL", "overdue_score": 99, "evidence_gap_score": 99,
                    "escalation_score": 99, "historical_score": 99, "factors": {"note": HOSTILE}, "calculated_at": now,
                },
            )
            for n in range(5)
        ),
        (
            "notifications",
            {
                "id": number("browser notification"), "user_id": user, "company_id": company, "subject": HOSTILE,
                "notification_type": HOSTILE, "channel": "EMAIL", "body_text": HOSTILE, "status": "SENT",
                "sent_at": now, "created_at": now,
            },
        ),
        ("email_batches", {"id": batch, "provider": "ecocomply_email", "run_id": "before"}),
        (
            "email_attempts",
            {
                "batch_id": batch, "position": 1, "company_id": company, "outcome": "accepted",
                "notification_id": number("browser notification"),
                "message": pack(Message("a@eco.test", "eco@example.test", HOSTILE, HOSTILE, HOSTILE_HTML)),
            },
        ),
        *(
            ("background_jobs", {"id": number(f"browser eco job {n}"), "job_type": "BROWSER", "company_id": company})
            for n in range(len(LETTERS))
        ),
    ]  # fmt: skip
    with EngineDatabase(ecocomply).transaction() as tx:
        act_as_service(tx)
        for table, row in rows:
            tx.execute(insert(ECOCOMPLY_TABLES.tables[table]).values(**row))
        queue = Queue(ECOCOMPLY_JOBS)
        claims = queue.claim(tx, "browser", 1_000, kinds=["BROWSER"])
        queue.fail(tx, [Failure(claim, "the lake of node 7 is dry", permanent=True) for claim in claims])
        for n, letter in enumerate(LETTERS):
            given = {"id": letter, "job_id": number(f"browser eco job {n}"), "company_id": company}
            more = {"error_message": HOSTILE, "error_context": {"note": HOSTILE}, "created_at": now}
            tx.execute(insert(ECOCOMPLY_TABLES.tables["dead_letter_queue"]).values(**given, **more))
    with ecocomply.begin() as connection:
        connection.execute(text("REFRESH MATERIALIZED VIEW compliance_clock_dashboard"))


@pytest.fixture(scope="module")
def seat(stack: LiveStack, browser: Browser) -> Callable[..., Any]:
    """Return a function that seats a login at a browser of its own; None is nobody."""
    states: dict[str, Any] = {}

    @contextmanager
    def seated(login: str | None, **options: Any) -> Generator[Seat]:
        settings: dict[str, Any] = {"viewport": DESK, "color_scheme": "light"} | options
        if login is not None and login not in states:
            states[login] = _log_in(stack, browser, login)
        context = browser.new_context(storage_state=states.get(login or ""), **settings)
        reached: list[str] = []

        def outside(route: Any) -> None:
            reached.append(route.request.url)
            route.abort()

        context.route(lambda url: not url.startswith(stack.url), outside)
        try:
            yield Seat(stack, context, reached)
        finally:
            context.close()

    return seated


def _log_in(stack: LiveStack, browser: Browser, login: str) -> Any:
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{stack.url}/")
    page.fill("input[name=username]", login)
    page.fill("input[name=password]", stack.password(login))
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Dags")
    state = context.storage_state()
    context.close()
    return state


def test_every_page_is_in_airflows_navigation(seat: Callable[..., Any]) -> None:
    """A page that nobody finds is not there: each is reached by clicks alone, and shows in the frame."""
    with seat("viewer") as at:
        page = at.page("/")
        page.get_by_role("link", name="Almanac").click()
        page.wait_for_url("**/plugin/almanac-runs**")
        expect(page.frame_locator("iframe").get_by_role("heading", name="Runs", exact=True)).to_be_visible()
        for category, name, heading in (
            ("Almanac", "Queues", "Queues"),
            ("Almanac", "Alerts", "Alerts and outages"),
            ("ClearPath", "Mail log", "Mail log"),
            ("ClearPath", "Certificates", "Certificates"),
            ("ClearPath", "Set-aside lab records", "Set-aside lab records"),
            ("EcoComply", "Jobs", "Jobs"),
            ("EcoComply", "Dead letters", "Dead letters"),
            ("EcoComply", "Notifications", "Notifications"),
            ("EcoComply", "Compliance", "Compliance"),
            ("EcoComply", "Risk", "Risk"),
            ("EcoComply", "Companies", "Companies"),
        ):
            page.get_by_role("button", name="Plugins").or_(
                page.get_by_text("Plugins", exact=True)
            ).first.click()
            page.get_by_role("menuitem", name=category).hover()
            page.get_by_role("menuitem", name=name).click()
            expect(page.frame_locator("iframe").get_by_role("heading", name=heading, level=1)).to_be_visible()


def test_pages_show_what_the_databases_hold(seat: Callable[..., Any], stack: LiveStack) -> None:
    """The pages are worth what their values are worth: each is compared with its row."""
    with stack.database("clearpath").connect() as connection:
        sent = connection.execute(
            text(
                "SELECT m.id, u.email FROM email_log AS m JOIN users AS u ON u.id = m.user_id "
                "WHERE m.status = 'sent' AND m.sent_at IS NOT NULL LIMIT 1"
            )
        ).one()
        printed = connection.execute(
            text(
                "SELECT certificate_number FROM certificates WHERE certificate_number <> 'CP-HOSTILE' LIMIT 1"
            )
        ).scalar_one()
        record = connection.execute(
            text("SELECT lab_record_key FROM lab_set_aside WHERE resolved_at IS NULL LIMIT 1")
        ).scalar_one()
    with seat("viewer") as at:
        _, frame = at.in_airflow("clearpath-mail")
        frame.get_by_label("Address, name or id").fill(str(sent.id))
        frame.get_by_role("button", name="Search").click()
        frame.wait_for_url(f"**q={sent.id}**")
        expect(frame.get_by_role("row").filter(has_text=sent.email)).to_contain_text("sent on")
        _, frame = at.in_airflow("clearpath-certificates", f"/almanac/clearpath/certificates?q={printed}")
        expect(frame.get_by_role("row").filter(has_text=printed)).to_contain_text("issued")
        _, frame = at.in_airflow("clearpath-lab")
        expect(frame.get_by_role("rowheader", name=record).first).to_be_visible()


def test_a_runs_preview_is_read_from_the_list(seat: Callable[..., Any]) -> None:
    """From the latest run to what it would change, without knowing an address."""
    with seat("viewer") as at:
        page, frame = at.in_airflow("almanac-runs", f"/almanac/runs/{RENDERING}")
        loads: list[str] = []
        page.on("framenavigated", lambda of: loads.append(of.url) if of == frame else None)
        frame.get_by_role("row").filter(has_text="preview").get_by_role("link").first.click()
        expect(frame.get_by_role("heading", name="What a real run would change")).to_be_visible()
        # Airflow's address follows the frame's, and leaves the frame alone.
        page.wait_for_url(f"**/plugin/almanac-runs/almanac/runs/{RENDERING}/**")
        page.wait_for_load_state("networkidle")
        assert len(loads) == 1, loads
        frame.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        change = frame.get_by_role("region", name="certificates").get_by_role("row", name="pdf_path")
        expect(change.first).to_contain_text(str(number("browser certificate")))
        expect(frame.get_by_role("region", name="Files")).to_contain_text("application/pdf")


def test_a_link_to_airflows_run_takes_the_whole_page_there(seat: Callable[..., Any]) -> None:
    """Airflow's sandbox keeps the frame from its parent: without help Airflow would open inside Airflow."""
    with seat("viewer") as at:
        page, frame = at.in_airflow("almanac-runs")
        frame.get_by_role("link", name=f"Airflow's page of this run of {RENDERING}").click()
        page.wait_for_url(f"**/dags/{RENDERING}/runs/**")
        expect(page.locator("iframe")).to_have_count(0)


def test_every_text_can_be_read(seat: Callable[..., Any], stack: LiveStack) -> None:
    """Computed, not judged by eye: at least 4.5 to 1, and nothing wider than the window, at desk and phone."""
    with stack.database("almanac").connect() as connection:
        run = connection.execute(text("SELECT dag_id, run_id FROM run_summary WHERE preview LIMIT 1")).one()
    paths = [
        *PAGES.values(),
        MAIL,
        QUEUE,
        JOB,
        f"{QUEUE}/all/retry?words=disk",
        *ECOCOMPLY,
        "/almanac/ecocomply/dead-letters/all/retry",
        f"/almanac/runs/{run.dag_id}/{quote(run.run_id, safe='')}",
        "/almanac/nowhere",
    ]
    with seat("operator") as at:
        for path in paths:
            page = at.page(path)
            page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
            for scheme, size in product(("light", "dark"), (DESK, PHONE)):
                page.emulate_media(color_scheme=scheme)
                page.set_viewport_size(size)
                where = (path, scheme, size)
                measured = page.evaluate(CONTRASTS)
                assert len(measured) > 10
                assert [(round(ratio, 2), said) for ratio, said in measured if ratio < ENOUGH] == [], where
                wide = page.evaluate(
                    "document.documentElement.scrollWidth - document.documentElement.clientWidth"
                )
                assert wide <= 0, where
            page.close()


def test_the_theme_is_airflows(seat: Callable[..., Any]) -> None:
    """Who chose dark in Airflow on a light system must not be blinded by the frame."""
    with seat("viewer", color_scheme="light") as at:
        at.page("/").evaluate("localStorage.setItem('theme', 'dark')")
        _, frame = at.in_airflow("almanac-runs")
        assert frame.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(23, 25, 30)"
        page, frame = at.in_airflow("almanac-runs")
        page.evaluate("document.documentElement.classList.replace('dark', 'light')")
        expect(frame.locator("html")).to_have_attribute("data-theme", "light")


def test_the_mail_log_works_without_a_mouse(seat: Callable[..., Any]) -> None:
    """Search, open a mail and open its parts by keyboard alone, and always see where the focus is."""
    with seat("viewer") as at:
        page = at.page(PAGES["clearpath-mail"])
        keyboard = page.keyboard
        keyboard.press("Tab")
        skip = page.get_by_role("link", name="Skip to the content")
        expect(skip).to_be_focused()
        expect(skip).to_be_in_viewport()
        order = []
        for _ in range(40):
            assert page.evaluate(OUTLINE) >= 2, page.evaluate("document.activeElement.outerHTML")
            order.append(page.evaluate("document.activeElement.name || document.activeElement.innerText"))
            keyboard.press("Tab")
            if page.evaluate("document.activeElement.matches('tbody a')"):
                break
        assert order[:7] == [
            "Skip to the content",
            "Runs",
            "Queues",
            "Alerts",
            "Mail log",
            "Certificates",
            "Set-aside lab records",
        ]
        assert [one for one in order if one in ("q", "status", "type", "Search", "Reset")] == [
            "q", "status", "type", "Search", "Reset"
        ]  # fmt: skip
        page.get_by_label("Address, name or id").focus()
        keyboard.type("hostile@example.test")
        keyboard.press("Enter")
        page.wait_for_url("**q=hostile**")
        page.get_by_role("link", name="day_30").focus()
        keyboard.press("Enter")
        page.wait_for_url(f"**{MAIL}")
        page.locator("summary").focus()
        assert page.evaluate(OUTLINE) >= 2
        keyboard.press("Enter")
        expect(page.locator("iframe")).to_be_hidden()
        keyboard.press("Enter")
        expect(page.locator("iframe")).to_be_visible()


def test_skipping_goes_to_the_content(seat: Callable[..., Any]) -> None:
    """Who reads with a keyboard must not walk through the navigation on every page."""
    with seat("viewer") as at:
        page = at.page(PAGES["almanac-runs"])
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        assert page.evaluate("document.querySelector('main').contains(document.activeElement)")


@pytest.mark.parametrize("path", [*PAGES.values(), MAIL, QUEUE, JOB, *ECOCOMPLY])
def test_hostile_text_shows_as_it_was_written(seat: Callable[..., Any], path: str) -> None:
    """Case E4, in a browser: the name is on the page as text, and there is no such link."""
    with seat("viewer") as at:
        page = at.page(path)
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        if path not in (PAGES["almanac-runs"], PAGES["ecocomply-jobs"]):
            assert HOSTILE in page.evaluate("document.body.innerText")
        assert page.locator('a[href*="evil.test"]').count() == 0
        assert at.reached == []


def test_a_stored_message_can_do_nothing(seat: Callable[..., Any]) -> None:
    """Scripts, pictures, links and forms of a mail are dead in its frame; its styles live."""
    with seat("operator") as at:
        page, outer = at.in_airflow("clearpath-mail", MAIL)
        heard = outer.evaluate_handle(
            "() => { const all = []; addEventListener('message', said => all.push(said.data)); return all }"
        )
        element = outer.wait_for_selector("iframe.mail")
        assert element is not None
        element.scroll_into_view_if_needed()
        assert element.get_attribute("sandbox") == ""
        frame = element.content_frame()
        assert frame is not None
        heading = frame.wait_for_selector("h1")
        assert heading is not None
        # Playwright looks in through the debugger; the page itself may not.
        assert heading.evaluate("one => getComputedStyle(one).color") == "rgb(36, 80, 143)"
        assert outer.evaluate("document.querySelector('iframe.mail').contentDocument") is None
        assert frame.evaluate("document.title") != "scripted"
        assert frame.evaluate("origin") == "null"
        frame.click("#out")
        page.wait_for_timeout(300)
        assert outer.evaluate("location.pathname") == MAIL
        assert heard.json_value() == []
        assert at.reached == []


def test_the_message_opened_by_itself_has_no_origin_either(seat: Callable[..., Any]) -> None:
    """Somebody may open the frame in a tab of its own: the policy, not the frame, must hold."""
    with seat("operator") as at:
        page = at.page(f"{MAIL}/message/{number('browser claim')}/0")
        assert page.evaluate("origin") == "null"
        assert page.title() != "scripted"
        page.get_by_role("button", name="Send").click()
        page.wait_for_timeout(300)
        assert at.reached == []


def test_a_viewer_can_not_regenerate(seat: Callable[..., Any], stack: LiveStack) -> None:
    """Neither by a button nor by hand, with all that the browser sends along."""
    before = len(stack.api().runs(RENDERING))
    with seat("viewer") as at:
        page, frame = at.in_airflow("clearpath-certificates")
        expect(frame.get_by_role("link", name="Download").first).to_be_visible()
        assert frame.get_by_role("button", name="Regenerate").count() == 0
        status = page.evaluate(
            "path => fetch(path, {method: 'POST'}).then(answer => answer.status)",
            f"/almanac/clearpath/certificates/{number('browser certificate')}/regenerate",
        )
        assert status == 403
    assert len(stack.api().runs(RENDERING)) == before


def test_an_operator_regenerates_and_downloads(
    seat: Callable[..., Any], stack: LiveStack, tmp_path: Path
) -> None:
    """The whole way in the frame: the button, the run, the file."""
    with stack.database("clearpath").connect() as connection:
        chosen = connection.execute(
            text(
                "SELECT c.id, c.certificate_number FROM certificates AS c "
                "JOIN results AS r ON r.test_session_id = c.test_session_id "
                "WHERE c.certificate_number IS NOT NULL AND c.issued_on IS NOT NULL "
                "AND c.valid_until IS NOT NULL ORDER BY c.issued_on DESC LIMIT 1"
            )
        ).one()
    known = {run["dag_run_id"] for run in stack.api().runs(RENDERING)}
    with seat("operator") as at:
        _, frame = at.in_airflow("clearpath-certificates", f"/almanac/clearpath/certificates?q={chosen.id}")
        frame.get_by_role("button", name=f"Regenerate {chosen.certificate_number}").click()
        expect(frame.get_by_role("status")).to_contain_text("A new PDF is asked for")
        (run,) = [run for run in stack.api().runs(RENDERING) if run["dag_run_id"] not in known]
        assert run["conf"] == {"certificate_id": str(chosen.id)}
        assert run["triggering_user_name"] == "operator"
        stack.api("operator").unpause(RENDERING)
        assert stack.api().finished(RENDERING, run["dag_run_id"])["state"] == "success"
        page = frame.page
        with page.expect_download() as started:
            frame.get_by_role("link", name=f"Download {chosen.certificate_number}").click()
        started.value.save_as(tmp_path / "certificate.pdf")
        assert started.value.suggested_filename == f"{chosen.certificate_number}.pdf"
        assert (tmp_path / "certificate.pdf").read_bytes().startswith(b"%PDF-")


def test_an_outage_is_mended_from_its_cause_without_a_mouse(
    seat: Callable[..., Any], stack: LiveStack
) -> None:
    """The way of a person at night: the cause, its rows, all of them again, one of them called off after all."""
    jobs = stack.database("arcvest")

    def count(condition: str) -> int:
        with jobs.connect() as connection:
            found = connection.execute(
                text(f"SELECT count(*) FROM job_queue WHERE job_type = 'browser' AND {condition}")
            )
            return int(found.scalar_one())

    assert count("status = 'failed'") == len(FULL_DISK)
    with seat("operator") as at:
        _, frame = at.in_airflow("almanac-queues")
        page = frame.page

        def press(role: Any, name: Any) -> None:
            target = frame.get_by_role(role, name=name)
            target.focus()
            assert frame.evaluate(OUTLINE) >= 2
            page.keyboard.press("Enter")

        press("link", "disk of node # is full")
        expect(frame.get_by_text("12 rows match.")).to_be_visible()
        press("link", "Retry all 12…")
        expect(frame.get_by_role("heading", name="Retry 12 rows?")).to_be_visible()
        assert count("status = 'failed'") == len(FULL_DISK)
        press("button", "Retry 12 rows")
        expect(frame.get_by_role("status")).to_contain_text("12 rows are due now, from their first attempt.")
        assert count("status = 'pending' AND attempts = 0") == len(FULL_DISK)
        press("link", str(FULL_DISK[3]))
        press("button", "Cancel")
        expect(frame.get_by_role("status")).to_contain_text("The row is cancelled.")
        life = frame.get_by_role("region", name="Its life")
        expect(life.get_by_role("row").last).to_contain_text("operator")
    assert count("status = 'cancelled'") == 1
    with jobs.connect() as connection:
        actors = connection.execute(
            text(
                "SELECT actor, count(*) FROM queue_audit "
                "WHERE row_key = ANY(:keys) AND actor = 'operator' GROUP BY 1"
            ),
            {"keys": [str(key) for key in FULL_DISK]},
        ).all()
    assert [tuple(row) for row in actors] == [("operator", len(FULL_DISK) + 1)]


def test_dead_letters_are_ticked_and_decided_on_without_a_mouse(
    seat: Callable[..., Any], stack: LiveStack
) -> None:
    """Two boxes, the page that asks, the throttle, and what became of both: by keyboard alone."""
    with seat("operator") as at:
        _, frame = at.in_airflow("ecocomply-dead-letters", "/almanac/ecocomply/dead-letters?type=BROWSER")
        page = frame.page
        for letter in LETTERS[:2]:
            box = frame.get_by_role("checkbox", name=str(letter))
            box.focus()
            assert frame.evaluate(OUTLINE) >= 2
            page.keyboard.press("Space")
        frame.get_by_role("button", name="Retry those ticked…").focus()
        page.keyboard.press("Enter")
        expect(frame.get_by_role("heading", name="Retry the jobs of 2 letters?")).to_be_visible()
        frame.get_by_label("How many may begin a minute").fill("1")
        frame.get_by_role("button", name="Retry 2 letters").focus()
        page.keyboard.press("Enter")
        expect(frame.get_by_role("status")).to_contain_text("2 jobs wait for another try")
        frame.get_by_role("link", name=str(LETTERS[0])).click()
        expect(frame.get_by_text("as RETRIED by operator")).to_be_visible()
    with EngineDatabase(stack.database("ecocomply")).transaction() as tx:
        act_as_service(tx)
        rows = tx.rows(
            text(
                "SELECT d.resolution, d.resolved_by_airflow_user AS who FROM dead_letter_queue AS d "
                "WHERE d.id = ANY(:ids) ORDER BY d.resolution NULLS LAST"
            ),
            ids=LETTERS,
        )
    assert [tuple(row) for row in rows] == [("RETRIED", "operator"), ("RETRIED", "operator"), (None, None)]


def test_a_score_is_a_picture_and_a_table(seat: Callable[..., Any]) -> None:
    """The picture has a name and a sentence for who can't see it, and its table opens by keyboard."""
    with seat("viewer") as at:
        page = at.page(SITE_RISK)
        picture = page.get_by_role("img", name="Scores from")
        expect(picture).to_be_visible()
        expect(picture.locator("polyline")).to_have_count(1)
        page.get_by_text("The same as a table").focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("region", name="Scores day by day").get_by_role("row")).to_have_count(6)


def test_a_viewer_changes_no_queue(seat: Callable[..., Any], stack: LiveStack) -> None:
    """Neither by a button nor by hand, with all that the browser sends along."""
    with seat("viewer") as at:
        page, frame = at.in_airflow("almanac-queues", f"{JOB}")
        expect(frame.get_by_role("heading", name="Its life")).to_be_visible()
        assert frame.get_by_role("button").count() == 0
        for path in (f"{QUEUE}/row/retry?key={number('browser job')}", f"{QUEUE}/all/retry"):
            status = page.evaluate(
                "path => fetch(path, {method: 'POST', body: new URLSearchParams({number: '9'})})"
                ".then(answer => answer.status)",
                path,
            )
            assert status == 403
    with stack.database("arcvest").connect() as connection:
        status = connection.execute(
            text("SELECT status FROM job_queue WHERE id = :id"), {"id": number("browser job")}
        ).scalar_one()
    assert status == "failed"


def test_nobody_gets_nothing(seat: Callable[..., Any]) -> None:
    """Without a login the pages are 401, in the browser too, and the way in is a link."""
    with seat(None) as at:
        page = at.context.new_page()
        for path in (*PAGES.values(), MAIL, QUEUE, JOB, *ECOCOMPLY, f"{QUEUE}/all/retry"):
            answer = page.goto(at.stack.url + path)
            assert answer is not None
            assert answer.status == 401
            assert HOSTILE not in page.content()
        page.get_by_role("link", name="Sign in").click()
        expect(page.locator("input[name=username]")).to_be_visible()


def test_pages_are_quick(seat: Callable[..., Any]) -> None:
    """The server's part of a page, with a bound that is wide for a busy machine."""
    with seat("viewer") as at:
        for path in PAGES.values():
            page = at.page(path)
            page.reload()
            timing = page.evaluate("performance.getEntriesByType('navigation')[0].toJSON()")
            assert timing["responseEnd"] - timing["requestStart"] < 1_500, path
            loaded = page.evaluate("performance.getEntriesByType('resource').map(one => one.name)")
            assert [one for one in loaded if not one.startswith(f"{at.stack.url}/almanac/static/")] == []
            page.close()
