"""The specification's settings, checked as its own configuration does: all that is wrong is said at once."""

from __future__ import annotations

import pytest

from include.errors import BadInput
from include.leadmetrics.configuration import SETTINGS, address, configuration


def test_the_defaults() -> None:
    """The specification's defaults are settings that pass."""
    found = configuration(SETTINGS)
    assert (found.dashboard_url, found.signup_alert_email) == (
        "https://app.leadmetrics.ai",
        "moble@leadmetrics.ai",
    )


@pytest.mark.parametrize(
    "url",
    [
        "", "app.leadmetrics.ai", "ftp://x.test", "https://", "https://u:p@x.test", "https://x.test/?a=1",
        "https://x.test/#a", "https://x.test/a b", 'https://x.test/"', "https://x.test:port", "https://x.test/é",
        "https://[x", "https://u:s3cret@x.test", "https://x.test/?key=s3cret",
    ],
)  # fmt: skip
def test_what_is_no_address_of_a_dashboard(url: str) -> None:
    """The resume link is made of it, so it must be one plain address; what is said of it holds no secret."""
    with pytest.raises(
        BadInput, match=r"^LeadMetrics' settings: DASHBOARD_URL is not a plain http"
    ) as caught:
        configuration(SETTINGS | {"DASHBOARD_URL": url})
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nobody",
        "a@b",
        "a b@x.test",
        "a@x.test, b@x.test",
        "A <a@x.test>",
        "a@x.test\n",
        "é@x.test",
        "@x.test",
    ],
)
def test_what_is_no_mail_address(text: str) -> None:
    """One address and nothing else: it goes to a worker that believes it."""
    with pytest.raises(BadInput, match="is no e-mail address"):
        address(text)
    with pytest.raises(BadInput, match="SIGNUP_ALERT_EMAIL is no e-mail address"):
        configuration(SETTINGS | {"SIGNUP_ALERT_EMAIL": text})


def test_addresses_in_their_usual_form() -> None:
    """A domain of other letters goes out in the form that every server takes."""
    assert address("a+b@ñandú.test") == "a+b@xn--and-6ma2c.test"


def test_a_path_is_kept() -> None:
    """R3: a base URL with a path round-trips, with or without a slash at the end."""
    found = configuration(SETTINGS | {"DASHBOARD_URL": "http://127.0.0.1:3000/app/"})
    assert found.dashboard_url == "http://127.0.0.1:3000/app"
