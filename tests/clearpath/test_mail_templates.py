"""ClearPath's mail: nothing that a customer wrote gets out of its place, and every mail can be read."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo

import pytest
from linkify_it import LinkifyIt
from playwright.sync_api import Browser, Page, sync_playwright

from include.clearpath.mail_templates import (
    LONGEST_VALUE,
    TEMPLATES,
    Alert,
    Rendered,
    SequencedValues,
    Unrenderable,
    cnrpp_alert,
    queue_stuck_alert,
    sequenced,
)
from include.clearpath.tables import SEQUENCED_TYPES
from include.errors import BadInput, Permanent

SNAPSHOTS = Path(__file__).with_name("snapshots")
STARTED = date(2026, 12, 13)
LENGTH = timedelta(days=91)
SENT_AFTER = {"day_30": 30, "day_60": 60, "day_80": 80, "day_88": 88, "results_prompt": 91}
APP_URL = "https://app.clearpathrd.com"
VALUES = SequencedValues(
    full_name="Ana Tremblay",
    address="12 Elm Street, Calgary AB T2P 1J9",
    kit_serial_number="CP-0042-1187",
    activated_on=STARTED,
    expected_completion_date=STARTED + LENGTH,
    today=STARTED,
    session_url=f"{APP_URL}/sessions/5f0c9a52-7d1e-4a55-9a0e-2f1f6f1c7b11",
    app_url=APP_URL,
    contact_email="help@clearpathrd.com",
)

# What a customer may have written, and what is shown of it.
HOSTILE = {
    "E4": ('<a href="https://evil.test">Reset</a> & Co', '<a href="https://evil.test">Reset</a> & Co'),
    "quotes": ("\"><img src=x onerror='alert(1)'>", "\"><img src=x onerror='alert(1)'>"),
    "closing": ("</td></table></div></body>--><![endif]-->", "</td></table></div></body>--><![endif]-->"),
    "opening": ("<!--<style><script>", "<!--<style><script>"),
    "escaped": ("&lt;b&gt; &#60;i&#62;", "&lt;b&gt; &#60;i&#62;"),
    "template": ("{{ session_url }} {% raw %} {# x #}", "{{ session_url }} {% raw %} {# x #}"),
    "layout": ("[[ mail.heading ]] [% raw %]", "[[ mail.heading ]] [% raw %]"),
    "header": ("Ana\r\nBcc: all@evil.com", "Ana Bcc: all@evil.com"),
    "spoofed": (
        "Ana\n\nOpen your test page:\nhttps://evil.test\n",
        "Ana Open your test page: https://evil.test",
    ),
    "breaks": ("a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\th", "a b c d e f g h"),
    "control": ("a\x00b\x1b[31mc\x7fd\x9be", "a b [31mc d e"),
    "bidi": ("\u202etset.live\u2066 \u200fx\ufeff\u200b", "tset.live x"),
    "unencodable": ("Ana \ud800\udfffB\ufffe", "Ana B"),
    "script": ("javascript:alert(1)", "javascript:alert(1)"),
    "url": ("https://evil.test/reset?a=1&b=2", "https://evil.test/reset?a=1&b=2"),
    "www": ("www.evil.com", "www.evil.com"),
    "bare": ("go to evil.com/reset now", "go to evil.com/reset now"),
    "address": ("bob@evil.com", "bob@evil.com"),
    "mailto": ("mailto:bob@evil.com", "mailto:bob@evil.com"),
    "number": ("http://2130706433/", "http://2130706433/"),
    "ip": ("go to 203.0.113.9/x", "go to 203.0.113.9/x"),
    "long": ("W" * 5000, "W" * (LONGEST_VALUE - 1) + "…"),
    "family": ("👨‍👩‍👧 Zoë Ñuñez-O'Hara", "👨‍👩‍👧 Zoë Ñuñez-O'Hara"),
}


def values(email_type: str, **changed: object) -> SequencedValues:
    """Return the reference values of a mail on the day on which it is due."""
    today = STARTED + timedelta(days=SENT_AFTER[email_type])
    return replace(VALUES, **{"today": today, **changed})


class Parsed(HTMLParser):
    """A mail's structure (tags, attributes and comments), its links, and its visible text, node by node."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.structure: list[object] = []
        self.links: list[str] = []
        self.texts: list[str] = []
        self._hidden: list[str] = []
        self._number = False
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.structure.append((tag, *attrs))
        named = dict(attrs)
        self.links += [
            value or "" for name, value in attrs if name in {"href", "src", "background", "action"}
        ]
        if tag in {"head", "style", "title"} or "display:none" in (named.get("style") or ""):
            self._hidden.append(tag)
        # The number of a step and the dot of a point are the list's marks, not its text.
        self._number = named.get("class") == "number" or named.get("aria-hidden") == "true"

    def handle_endtag(self, tag: str) -> None:
        self.structure.append(tag)
        if self._hidden and self._hidden[-1] == tag:
            self._hidden.pop()

    def handle_comment(self, data: str) -> None:
        self.structure.append(("comment", data))

    def handle_data(self, data: str) -> None:
        if data.strip() and not self._hidden and not self._number:
            self.texts.append(data.strip())


def spoken(mail: Rendered) -> list[str]:
    """Return the words of a mail's text part, without its list marks and the address of its button."""
    lines = mail.text.replace(f":\n{VALUES.session_url}", "").splitlines()
    lines = [re.sub(r"^(\d\. |- |-- $)", "", line) for line in lines]
    return " ".join(
        re.sub(r"^(Address|Detector|Started on|Take down on): ", r"\1 ", line) for line in lines
    ).split()


@pytest.mark.parametrize("email_type", SEQUENCED_TYPES)
@pytest.mark.parametrize("case", HOSTILE)
def test_what_customers_write_stays_in_its_place(email_type: str, case: str) -> None:
    """E4: a name that is markup, a template or a line of its own changes only the text in its place."""
    written, shown = HOSTILE[case]
    clean = sequenced(email_type, values(email_type))
    mail = sequenced(
        email_type, values(email_type, full_name=written, address=written, kit_serial_number=written)
    )
    page = Parsed(mail.html)
    text = " ".join(page.texts).replace("\u200a", "")

    assert page.structure == Parsed(clean.html).structure
    assert page.links == [VALUES.session_url]
    assert f"Hello {shown}," in text
    assert text.count(shown) >= 3
    assert f"({shown})" in mail.subject
    assert f"Hello {shown}," in mail.text
    assert f"Address: {shown}\n" in mail.text
    assert f"Detector: {shown}\n" in mail.text
    assert len(mail.text.splitlines()) == len(clean.text.splitlines())
    assert mail.subject.isprintable() or case == "family"
    assert len(mail.subject.splitlines()) == 1
    mail.subject.encode()
    assert len(mail.html.encode()) < 100_000


def test_our_own_addresses_are_escaped_too() -> None:
    """E4: a setting may hold a slip, and an address an ampersand; neither may end its tag or attribute."""
    url = f"{APP_URL}/sessions/1?a=1&copy=2'"
    mail = sequenced("day_30", values("day_30", session_url=url, contact_email="<b>help</b>@clearpathrd.com"))
    page = Parsed(mail.html)

    assert page.links == [url]
    assert page.structure.count("b") == 0
    assert "Questions? Write to <b>help</b>@clearpathrd.com." in " ".join(page.texts)
    assert "a=1&amp;copy=2&#39;" in mail.html
    assert f"\n{url}\n" in mail.text


@pytest.mark.parametrize("case", HOSTILE)
def test_a_name_does_not_become_a_link_by_itself(case: str) -> None:
    """E4: mail programs make links of what looks like one; in the HTML a customer's text must not look so."""
    written, _ = HOSTILE[case]
    mail = sequenced(
        "day_30",
        values("day_30", full_name=written, address=written, kit_serial_number=written, contact_email=None),
    )
    finder = LinkifyIt(options={"fuzzy_ip": True})
    found = {match.url for text in Parsed(mail.html).texts for match in finder.match(text) or ()}

    assert found == set()


def test_the_finder_of_links_finds_links() -> None:
    """The test above is worth something only if its finder sees the same names where nothing was done."""
    finder = LinkifyIt(options={"fuzzy_ip": True})
    seen = {case for case, (written, _) in HOSTILE.items() if finder.match(written)}

    assert {"E4", "url", "www", "bare", "address", "mailto", "header", "number", "ip"} <= seen


@pytest.mark.parametrize("email_type", SEQUENCED_TYPES)
def test_both_parts_say_the_same(email_type: str) -> None:
    """A reader of the text part must learn what a reader of the HTML learns, word for word."""
    mail = sequenced(email_type, values(email_type))
    page = Parsed(mail.html)

    assert " ".join(page.texts).split() == spoken(mail)
    assert mail.text.count("https://") == 1
    assert f":\n{VALUES.session_url}\n" in mail.text


@pytest.mark.parametrize("email_type", SEQUENCED_TYPES)
def test_a_mail_brings_nothing_from_outside(email_type: str) -> None:
    """A remote image or font tells others when a mail is read; the one address in it is the test's page."""
    mail = sequenced(email_type, values(email_type))
    addresses = set(re.findall(r"https?://[^\s\"'<>)]+", mail.html))

    assert Parsed(mail.html).links == [VALUES.session_url]
    # Names of XML, which nobody fetches.
    assert addresses - {"http://www.w3.org/1999/xhtml"} == {VALUES.session_url}
    assert "url(" not in mail.html
    assert "<img" not in mail.html
    assert "@import" not in mail.html


@pytest.mark.parametrize("email_type", SEQUENCED_TYPES)
def test_snapshots(email_type: str) -> None:
    """A change of a mail shows in the review as what customers get. A missing file is written anew."""
    mail = sequenced(email_type, values(email_type))

    same_as_snapshot(f"{email_type}.html", mail.html)
    same_as_snapshot(f"{email_type}.txt", f"Subject: {mail.subject}\n\n{mail.text}")


def same_as_snapshot(name: str, content: str) -> None:
    """Compare with the file of that name; write it, and fail once, if it is missing."""
    file = SNAPSHOTS / name
    if not file.exists():
        file.write_text(content, encoding="utf-8")
        pytest.fail(f"{name} was missing and is now written: read it, then run again")
    assert content == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("email_type", SEQUENCED_TYPES)
def test_the_same_values_give_the_same_bytes(email_type: str) -> None:
    """A claim stores the mail as rendered; a second rendering must not look like another mail."""
    assert sequenced(email_type, values(email_type)) == sequenced(email_type, values(email_type))


@pytest.mark.parametrize(
    ("day", "progress", "finish"),
    [
        (0, "Day 0 of 91", "finishes in 91 days"),
        (30, "Day 30 of 91", "finishes in 61 days"),
        (88, "Day 88 of 91", "finishes in 3 days"),
        (90, "Day 90 of 91", "finishes in 1 day,"),
        (91, "All 91 days done", "finishes today"),
        (92, "All 91 days done", "finished 1 day ago"),
        (94, "All 91 days done", "finished 3 days ago"),
    ],
)
def test_days_are_counted_on_the_day_of_sending(day: int, progress: str, finish: str) -> None:
    """A mail that an outage held up must not count from the day on which it should have gone."""
    mail = sequenced("day_88", replace(VALUES, today=STARTED + timedelta(days=day)))

    assert f"\n{progress}\n" in mail.text
    assert finish in mail.text
    assert progress in mail.html
    assert finish in mail.html
    assert "14 March 2027" in mail.text


def test_the_length_is_the_tests_own() -> None:
    """A completion date that was moved must not leave a mail that says 91 days."""
    mail = sequenced("day_30", values("day_30", expected_completion_date=STARTED + timedelta(days=120)))

    assert "Day 30 of 120" in mail.subject
    assert "91" not in mail.subject + mail.text.replace(VALUES.session_url or "", "")


def test_what_is_not_known_is_left_out() -> None:
    """A session without a serial number, and a business without a contact address, still get their mail."""
    mail = sequenced("day_30", values("day_30", kit_serial_number="\n", contact_email=None))

    assert "Detector:" not in mail.text
    assert ">Detector<" not in mail.html
    assert "None" not in mail.text + mail.html
    assert "Just reply to this email." in mail.text
    assert "Just reply to this email." in mail.html


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"full_name": None}, "full_name is missing"),
        ({"full_name": " \n\u200b"}, "full_name is missing"),
        ({"full_name": 7}, "full_name is a int"),
        ({"address": ""}, "address is missing"),
        ({"activated_on": None}, "activated_on is missing"),
        ({"activated_on": "2026-12-13"}, "activated_on is not a date: '2026-12-13'"),
        ({"activated_on": datetime(2026, 12, 13, tzinfo=UTC)}, "activated_on is not a date"),
        ({"expected_completion_date": None}, "expected_completion_date is missing"),
        ({"expected_completion_date": STARTED}, "2026-12-13 is not after activated_on 2026-12-13"),
        ({"today": STARTED - timedelta(days=1)}, "today 2026-12-12 is before activated_on 2026-12-13"),
        ({"session_url": None}, "session_url is missing"),
        ({"session_url": "/sessions/1"}, "session_url is not an http(s) address: '/sessions/1'"),
        ({"session_url": "javascript:alert(1)"}, "session_url is not an http(s) address"),
        ({"session_url": "data:text/html,x"}, "session_url is not an http(s) address"),
        ({"session_url": f'{APP_URL}/"onmouseover="x'}, "session_url is not a web address"),
        ({"session_url": f"{APP_URL}/a\nb"}, "session_url is not a web address"),
        ({"session_url": f"{APP_URL}/{'a' * 2000}"}, "session_url is not a web address"),
        ({"session_url": "https://[::1/"}, "session_url is not a web address"),
        ({"session_url": "https:///x"}, "session_url is not an http(s) address"),
        ({"session_url": "https://app.clearpathrd.com@evil.test/"}, "session_url is not an http(s) address"),
        ({"session_url": "https://evil.test/x"}, "is not under app_url 'https://app.clearpathrd.com'"),
        ({"session_url": "https://app.clearpathrd.com.evil.test/x"}, "is not under app_url"),
    ],
)
def test_unusable_values_are_named(changed: dict[str, object], named: str) -> None:
    """A row that can't become a mail is failed for good: who mends it must read what to mend."""
    with pytest.raises(Unrenderable) as caught:
        sequenced("day_60", values("day_60", **changed))

    assert isinstance(caught.value, Permanent)
    assert "'day_60'" in str(caught.value)
    assert named in str(caught.value)


@pytest.mark.parametrize("app_url", ["", "app.clearpathrd.com", "ftp://app.clearpathrd.com", None])
def test_a_wrong_setting_is_not_the_rows_fault(app_url: str | None) -> None:
    """A slip in APP_URL must be tellable from a bad row, or it would fail every due mail for good."""
    with pytest.raises(BadInput, match="APP_URL"):
        sequenced("day_60", values("day_60", app_url=app_url, session_url=f"{app_url}/sessions/1"))


@pytest.mark.parametrize(
    "email_type", ["day_45", "", "../day_30", "layout", "DAY_30", "day_30.toml", "x" * 5000]
)
def test_an_unknown_type_is_named(email_type: str) -> None:
    """An application's own row must not name a file to read, and its error must say what there is."""
    with pytest.raises(Unrenderable, match="no such template; there are day_30, day_60") as caught:
        sequenced(email_type, VALUES)

    assert repr(email_type[:80]) in str(caught.value)
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize(
    ("file", "old", "new", "named"),
    [
        ("day_30.toml", 'subject = "', "subject = ", "Invalid"),
        ("day_30.toml", 'heading = "Your radon test is running"', "", "missing required field `heading`"),
        ("day_30.toml", 'heading = "Your radon test is running"', 'heading = ""', "$.heading"),
        ("day_30.toml", "paragraph =", "paragraf =", "unknown field `paragraf`"),
        ("day_30.toml", "{{ ends_on }}", "{{ end_date }}", "no value is called end_date"),
        ("day_30.toml", "{{ ends_on }}", "{% if x %}", "a brace that is not part of a {{ name }}"),
        ("day_30.toml", "{{ ends_on }}", "{{ ends_on", "a brace that is not part of a {{ name }}"),
        ("layout.mjml.j2", "Hello {{ full_name }},</mj-text>", "Hello {{ full_name }},", "template"),
        ("layout.mjml.j2", '<mj-text css-class="side ink">Hello {{ full_name }},</mj-text>',
         "<mj-txt>Hello {{ full_name }},</mj-txt>", "MJML has no element <mj-txt>"),
        ("layout.mjml.j2", '<mj-section css-class="card"', '<mj-txt css-class="card"', "template"),
        ("layout.mjml.j2", "{% if contact_email %}", "{% if %}", "Expected"),
        ("layout.txt.j2", "[[ mail.heading ]]", "[[ mail.header ]]", "header"),
        ("layout.txt.j2", "[% endfor %]", "", "end"),
        ("layout.txt.j2", "{{ progress }}", "{{ progres }}", "no value is called progres"),
    ],
)  # fmt: skip
def test_a_broken_template_is_named(tmp_path: Path, file: str, old: str, new: str, named: str) -> None:
    """A template error needs a code fix: it must come at the first mail, and say where it is."""
    folder = tmp_path / "templates"
    shutil.copytree(TEMPLATES, folder)
    source = (folder / file).read_text(encoding="utf-8")
    assert old in source
    (folder / file).write_text(source.replace(old, new), encoding="utf-8")

    with pytest.raises(Unrenderable) as caught:
        sequenced("day_30", values("day_30"), templates=folder)

    assert "'day_30'" in str(caught.value)
    assert named in str(caught.value)


def test_a_missing_or_unreadable_template_is_named(tmp_path: Path) -> None:
    """A file that is missing or is not UTF-8 is a broken template too, not a crash of the job."""
    with pytest.raises(Unrenderable, match=r"'day_30': .*day_30\.toml"):
        sequenced("day_30", values("day_30"), templates=tmp_path)
    (tmp_path / "day_30.toml").write_bytes(b'subject = "\xff"')
    with pytest.raises(Unrenderable, match=r"'day_30': .*utf-8"):
        sequenced("day_30", values("day_30"), templates=tmp_path)


def test_rendering_is_quick() -> None:
    """10,000 mails must not wait for their templates: MJML is compiled once, not for each mail."""
    mail = values("day_30")
    sequenced("day_30", mail)
    begun = time.process_time()
    for _ in range(1000):
        sequenced("day_30", mail)

    assert time.process_time() - begun < 0.33


@pytest.mark.parametrize(
    ("days", "says"),
    [
        (60, "expires in 60 days"),
        (12, "expires in 12 days"),
        (1, "expires in 1 day"),
        (0, "expires today"),
        (-1, "expired 1 day ago"),
        (-3, "expired 3 days ago"),
        (-1200, "expired 1,200 days ago"),
    ],
)
def test_the_cnrpp_alert_counts_days(days: int, says: str) -> None:
    """The administrator acts on this number, and on the day itself the contractor is still certified."""
    today = date(2027, 3, 14)
    alert = cnrpp_alert(
        contractor_name="Prairie Radon Ltd",
        cnrpp_id="CRT-201345",
        expiry_date=today + timedelta(days=days),
        today=today,
    )

    assert alert.subject == f"C-NRPP certification {says}: Prairie Radon Ltd"
    assert f"The C-NRPP certification of Prairie Radon Ltd {says}." in alert.text
    assert ("now inactive" in alert.text) == (days < 0)


@pytest.mark.parametrize("case", HOSTILE)
def test_alerts_show_names_as_written(case: str) -> None:
    """E4: an alert is plain text, so a contractor's name is shown as written, but on one line."""
    written, shown = HOSTILE[case]
    day = date(2027, 3, 14)
    clean = cnrpp_alert(contractor_name="A", cnrpp_id="B", expiry_date=day, today=day)
    alert = cnrpp_alert(contractor_name=written, cnrpp_id=written, expiry_date=day, today=day)

    assert alert.subject == f"C-NRPP certification expires today: {shown}"
    assert f"Contractor: {shown}\nC-NRPP id: {shown}\nExpiry date: 14 March 2027\n" in alert.text
    assert len(alert.text.splitlines()) == len(clean.text.splitlines())


def test_a_contractor_without_an_id_still_raises_the_alert() -> None:
    """An expiry that nobody hears of because another field is empty would be worse than a gap in the text."""
    day = date(2027, 3, 14)

    assert (
        "C-NRPP id: not on record"
        in cnrpp_alert(contractor_name="A", cnrpp_id=None, expiry_date=day, today=day).text
    )
    with pytest.raises(Unrenderable, match="'cnrpp_alert': contractor_name is missing"):
        cnrpp_alert(contractor_name=None, cnrpp_id="B", expiry_date=day, today=day)


def test_alert_snapshots() -> None:
    """A change of an alert shows in the review as the text that the administrator gets."""
    day = date(2027, 3, 14)
    due = datetime(2027, 3, 14, 7, 45, tzinfo=ZoneInfo("America/Edmonton"))
    alerts: dict[str, Alert] = {
        "cnrpp_alert_ahead": cnrpp_alert(
            contractor_name="Prairie Radon Ltd",
            cnrpp_id="CRT-201345",
            expiry_date=date(2027, 3, 26),
            today=day,
        ),
        "cnrpp_alert_expired": cnrpp_alert(
            contractor_name="Prairie Radon Ltd",
            cnrpp_id="CRT-201345",
            expiry_date=date(2027, 3, 11),
            today=day,
        ),
        "queue_stuck_alert_late": queue_stuck_alert(oldest_due=due, minutes_late=1275, failed_in_24_hours=0),
        "queue_stuck_alert_failed": queue_stuck_alert(oldest_due=None, minutes_late=0, failed_in_24_hours=12),
    }
    for name, alert in alerts.items():
        same_as_snapshot(f"{name}.txt", f"Subject: {alert.subject}\n\n{alert.text}")


def test_a_time_without_an_offset_is_refused() -> None:
    """A time that could be in any zone would send the administrator to the wrong log lines."""
    with pytest.raises(Unrenderable, match="oldest_due 2027-03-14 07:45:00 has no offset"):
        queue_stuck_alert(
            oldest_due=datetime(2027, 3, 14, 7, 45),  # noqa: DTZ001 - what is refused
            minutes_late=75,
            failed_in_24_hours=0,
        )


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start the system's Chromium once, without a network of its own."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium") or "chromium",
            args=["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield chromium
        chromium.close()


# For each text node that is seen: its contrast with what is painted behind it (WCAG 2.2), and its text.
CONTRASTS = """() => {
  const channels = colour => colour.match(/[\\d.]+/g).map(Number);
  const luminance = rgb => rgb.slice(0, 3)
    .map(c => c / 255)
    .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = element => {
    for (let e = element; e; e = e.parentElement) {
      const colour = channels(getComputedStyle(e).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
      if (colour[3] !== 0) throw new Error('half-transparent background');
    }
    return [255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, range = document.createRange();
    range.selectNodeContents(node);
    if (!node.data.trim() || !range.getBoundingClientRect().width) continue;
    const a = luminance(channels(getComputedStyle(node.parentElement).color));
    const b = luminance(behind(node.parentElement));
    found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), node.data.trim()]);
  }
  return found;
}"""
# How far to the right the page, and anything in it, reaches: what is cut off can't be scrolled to either.
REACH = """() => Math.max(
  document.documentElement.scrollWidth,
  ...[...document.body.querySelectorAll('*')].map(e => e.getBoundingClientRect().left + e.scrollWidth),
  ...[...document.body.querySelectorAll('*')].map(e => Math.ceil(e.getBoundingClientRect().right)),
)"""
BACKGROUND = "() => getComputedStyle(document.querySelector('.card')).backgroundColor"


def opened(browser: Browser, html: str, width: int, scheme: Literal["light", "dark"]) -> Page:
    """Open a mail as a mail program with a window of that width would, and fail if it fetches anything."""
    page = browser.new_page(viewport={"width": width, "height": 700}, color_scheme=scheme)
    fetched: list[str] = []
    page.on("request", lambda request: fetched.append(request.url))
    page.set_content(html)
    assert fetched == []
    return page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 600])
@pytest.mark.parametrize("email_type", SEQUENCED_TYPES)
def test_a_mail_can_be_read_in_a_browser(
    browser: Browser, email_type: str, width: int, scheme: Literal["light", "dark"]
) -> None:
    """At both widths, in both schemes: nothing to scroll sideways, contrast of 4.5, a button for a thumb."""
    page = opened(browser, sequenced(email_type, values(email_type)).html, width, scheme)

    assert page.evaluate(REACH) == width
    contrasts = page.evaluate(CONTRASTS)
    assert len(contrasts) > 20
    assert [(ratio, text) for ratio, text in contrasts if ratio < 4.5] == []
    button = page.locator("a").bounding_box()
    assert button is not None
    assert button["height"] >= 44
    assert page.evaluate(BACKGROUND) == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(28, 37, 41)")
    page.close()


@pytest.mark.parametrize("width", [360, 600])
def test_a_mail_can_be_read_without_its_style_sheet(browser: Browser, width: int) -> None:
    """Some mail programs drop <style>: what is left must still fit, be legible and have a button."""
    html = re.sub(r"<style.*?</style>", "", sequenced("day_88", values("day_88")).html, flags=re.DOTALL)
    page = opened(browser, html, width, "light")

    assert page.evaluate(REACH) == width
    assert min(ratio for ratio, _ in page.evaluate(CONTRASTS)) >= 4.5
    page.close()


@pytest.mark.parametrize("case", ["long", "E4", "url"])
def test_long_words_do_not_widen_a_mail(browser: Browser, case: str) -> None:
    """E4: a name without spaces must break, or the whole mail scrolls sideways on a phone."""
    written, _ = HOSTILE[case]
    mail = sequenced(
        "day_30", values("day_30", full_name=written, address=written, kit_serial_number=written)
    )
    page = opened(browser, mail.html, 360, "light")

    assert page.evaluate(REACH) == 360
    assert page.locator("a").count() == 1
    page.close()
