"""The digest as mail: hostile titles, thousands of entries, the headers that stop it."""

from __future__ import annotations

from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

import pytest

from hooks.email_mime import fault, mime_bytes
from include.errors import BadInput
from include.mail import Message
from include.nifya.digest_mail import Digest, digest_message
from tests.nifya.world import HOSTILE

LINK = "https://almanac.nifya.test/nifya/unsubscribe/7e57"
SENDER = "NIFYA <hola@nifya.test>"


def message(entries: list[dict[str, Any]], unread: int | None = None, **changed: Any) -> Message:
    """Return the mail of some entries."""
    given: dict[str, Any] = {"name": "Ana", "app_url": "https://app.nifya.test/n", "unsubscribe_url": LINK}
    digest = Digest(entries=entries, unread=len(entries) if unread is None else unread, **(given | changed))
    return digest_message(digest, sender=SENDER, to="ana@nifya.test")


def entry(title: str = "Becas", url: str | None = "https://www.boe.es/1", **more: Any) -> dict[str, Any]:
    """Return an entry as the database gives it."""
    return {"title": title, "url": url, "content": None, "subscription": None, **more}


def wire(made: Message) -> bytes:
    """Return the mail as it goes over SMTP."""
    assert fault(made, SENDER) is None
    return mime_bytes(made, SENDER, "name", datetime.now(UTC))


class Links(HTMLParser):
    """Collects where a page's links lead, and every tag."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.tags: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value or "" for name, value in attrs if tag == "a" and name == "href"]


def test_a_hostile_title_is_text(tmp_path: Any) -> None:
    """E4: escaped in HTML; as written in the subject and the text part."""
    made = message([entry(HOSTILE, content=HOSTILE, subscription=HOSTILE)], name=HOSTILE)
    html = made.html or ""
    assert "https://evil.test" not in Links(html).links
    assert html.count("&lt;a href=&#34;https://evil.test&#34;&gt;Reset&lt;/a&gt; &amp; Co") == 4
    assert made.text.count(HOSTILE) == 4
    assert made.subject == f"NIFYA: {HOSTILE}"
    wire(made)


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        "//evil.test",
        "ftp://x.test/",
        "https://a@b.test/",
        "",
        None,
    ],
)
def test_only_http_addresses_are_links(url: str | None) -> None:
    """E4: what is no http(s) address is not linked, and not shown as one."""
    made = message([entry("Becas", url)])
    assert set(Links(made.html or "").links) == {"https://app.nifya.test/n", LINK}
    if url:
        assert url not in made.text


@pytest.mark.parametrize(
    "title", ["a\r\nBcc: x@evil.test", "a\x00b", "\u202eevil", "x" * 5_000, "", "\ud800"]
)
def test_no_title_breaks_the_mail(title: str) -> None:
    """Line breaks, control characters, texts without end: a subject stays a subject."""
    made = message([entry(title)])
    assert b"\nBcc:" not in wire(made)
    assert len(made.subject) < 200
    assert "\u202e" not in made.subject


TEMPLATE_WORDS = "{{ unsubscribe_url }} {% for x in y %} </mj-text> <mj-raw>"


def test_a_title_is_no_template(tmp_path: Any) -> None:
    """What looks like our own template's marks is text like any other."""
    made = message([entry(TEMPLATE_WORDS)])
    assert TEMPLATE_WORDS in made.text
    assert "{{ unsubscribe_url }} {% for x in y %} &lt;/mj-text&gt;" in (made.html or "")


@pytest.mark.parametrize(
    "title",
    [
        "Resolución de la Subsecretaría por la que se convocan becas",
        "ñ" * 280,
        "x" * 280,
        "=" * 280,
        "😀" * 280,
        "a",
    ],
)
def test_three_thousand_entries_are_one_small_mail(title: str) -> None:
    """E5: under 100 KB on the wire, whatever the letters; it ends in the number left out and a link."""
    entries = [
        entry(title, f"https://www.boe.es/diario_boe/txt.php?id=BOE-A-2026-{n}", content="MINISTERIO · Ñ" * 9)
        for n in range(300)
    ]
    made = message(entries, 3_000)
    size = len(wire(made))
    assert 40_000 < size < 100_000
    shown = (made.html or "").count("diario_boe")
    assert shown == made.text.count("diario_boe")
    left = f"{3_000 - shown:,}".replace(",", ".")
    body, _, _ = made.text.rpartition("-- \n")
    assert body.rstrip().endswith(f"Y {left} más, que puedes ver en https://app.nifya.test/n")
    assert f"Y {left} más" in (made.html or "")


def test_the_headers_that_stop_it() -> None:
    """E5: both headers, so that a mail program's own button unsubscribes by one POST."""
    made = message([entry()])
    assert made.headers == {
        "List-Unsubscribe": f"<{LINK}>",
        "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
    }
    assert b"\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n" in wire(made)


@pytest.mark.parametrize(
    ("unread", "subject", "summary"),
    [
        (1, "NIFYA: Becas", "Hay una novedad en tus suscripciones:"),
        (2, "NIFYA: Becas y 1 más", "Hay 2 novedades en tus suscripciones:"),
        (1_234, "NIFYA: Becas y 1.233 más", "Hay 1.234 novedades en tus suscripciones:"),
    ],
)
def test_what_it_says(unread: int, subject: str, summary: str) -> None:
    """The subject names the newest, the first line how many there are, as Spanish writes numbers."""
    made = message([entry() for _ in range(min(unread, 300))], unread)
    assert made.subject == subject
    assert summary in made.text
    assert summary in (made.html or "")


def test_the_same_digest_gives_the_same_bytes() -> None:
    """Ruling 3: a resumed batch goes out byte for byte as claimed."""
    assert message([entry()]) == message([entry()])


@pytest.mark.parametrize(
    "changed",
    [
        {"app_url": "app.nifya.test"},
        {"app_url": "https://ann:s3cret@app.nifya.test/?key=s3cret"},
        {"unsubscribe_url": "javascript:1"},
        {"unsubscribe_url": "almanac.nifya.test/nifya/unsubscribe/s3cret"},
    ],
)
def test_a_setting_that_is_no_address_is_named(changed: dict[str, Any]) -> None:
    """A slip in a Variable must not go out in a thousand mails, nor its secret or a person's token into a log."""
    with pytest.raises(BadInput, match=next(iter(changed))) as caught:
        message([entry()], **changed)
    assert "s3cret" not in str(caught.value)


def test_nothing_to_tell_is_no_mail() -> None:
    """An empty digest is a fault of who asks for it."""
    with pytest.raises(BadInput, match="nothing to tell"):
        message([])
