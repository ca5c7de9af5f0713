"""LeadMetrics' mail: what people wrote stays text, and a link leads to the registration alone."""

from __future__ import annotations

import re
from typing import Any

import pytest

from include.leadmetrics.mail_templates import SLUGS, Unrenderable, mail_of
from tests.leadmetrics.world import HOSTILE

LINK = "https://app.leadmetrics.test/signup?session=abc"


def data(**values: Any) -> dict[str, Any]:
    """Return what a notification's job holds."""
    return {"resumeUrl": LINK, "email": "lead@example.test", "tenantId": "abc", "name": "Ana Núñez"} | values


@pytest.mark.parametrize("slug", SLUGS)
def test_a_hostile_name(slug: str) -> None:
    """E4: escaped in HTML; as written in the subject and the text part; only the resume link is a link."""
    mail = mail_of(slug, data(name=HOSTILE, companyName=HOSTILE))
    assert "<a href=" not in mail.html.replace(f'<a href="{LINK}"', "")
    assert "&lt;a href=&#34;https://evil.test&#34;&gt;Reset&lt;/a&gt; &amp; Co" in mail.html
    assert HOSTILE in mail.text
    assert "\n" not in mail.subject


@pytest.mark.parametrize("slug", SLUGS[:2])
def test_the_reminders(slug: str) -> None:
    """Both lead back to where the registration was broken off, with a name and without one."""
    mail = mail_of(slug, data())
    assert re.findall(r'href="([^"]*)"', mail.html) == [LINK]
    assert LINK in mail.text
    assert "Ana Núñez" in mail.subject
    nameless = mail_of(slug, data(name=None))
    assert "None" not in nameless.subject + nameless.text + nameless.html


def test_the_alert() -> None:
    """Sales read who it is; what is not known has no line."""
    mail = mail_of("signup-alert-internal", data(name=None, companyName="Acme"))
    assert mail.subject == "New signup: lead@example.test"
    assert "Company: Acme" in mail.text
    assert "Name:" not in mail.text
    assert "href" not in mail.html


@pytest.mark.parametrize(
    "url", [None, "", 7, "javascript:alert(1)", "ftp://x.test/", "//x.test", "https://u@x.test/"]
)
def test_a_link_that_is_none(url: Any) -> None:
    """Only http(s) links are links: a row with another goes nowhere, and says why."""
    with pytest.raises(Unrenderable, match="resumeUrl is no http"):
        mail_of("signup-reminder-early", data(resumeUrl=url))


def test_a_line_break_in_a_name() -> None:
    """No value can begin a header or a line of its own."""
    mail = mail_of("signup-reminder-early", data(name="Ana\r\nBcc: all@example.test"))
    assert mail.subject == "Your LeadMetrics account is almost ready, Ana Bcc: all@example.test"


def test_marks_in_a_name() -> None:
    """What people wrote is never a template."""
    mail = mail_of("signup-reminder-early", data(name="{{ 7 * 7 }}[[ heading ]]"))
    assert "{{ 7 * 7 }}[[ heading ]]" in mail.text


def test_the_same_data_gives_the_same_bytes() -> None:
    """A claimed mail can be told from another."""
    assert mail_of("signup-reminder-late", data()) == mail_of("signup-reminder-late", data())
