"""Mail addresses: one, and one that every mail server takes."""

from __future__ import annotations

import pytest

from include.addresses import bare_address, set_address
from include.errors import BadInput


@pytest.mark.parametrize(
    ("value", "address"),
    [
        ("a@b.test", "a@b.test"),
        ("A B <a@b.test>", "a@b.test"),
        ('"A, B" <a.b+c@d.test>', "a.b+c@d.test"),
        ("a@bücher.test", "a@xn--bcher-kva.test"),
    ],
)
def test_an_address(value: str, address: str) -> None:
    """A name may stand before it, and a domain in any script."""
    assert bare_address(value) == address
    assert set_address("X", value) == value


@pytest.mark.parametrize(
    "value", ["", " ", "\t", "ops", "ops@", "@b.test", "é@b.test", "a@b..test", "a b@c.test"]
)
def test_no_address(value: str) -> None:
    """What no server takes is told as such, and a blank text is no crash."""
    with pytest.raises(ValueError, match="this is no address"):
        bare_address(value)


@pytest.mark.parametrize(
    "value",
    [" ", "ops", "ops@", "a@b.test, c@d.test", "a@b.test;c@d.test", "a@b.test\nBcc: c@d.test", "a@b c.test"],
)
def test_a_setting_that_is_not_one_address(value: str) -> None:
    """Each alert would fail for it without a word of the setting; so the setting is named."""
    with pytest.raises(BadInput, match=r"ADMIN_ALERT_EMAIL: .* is not one mail address"):
        set_address("ADMIN_ALERT_EMAIL", value)
