"""Radon concentrations as labs report them."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.clearpath.units import HIGHEST_BQ_M3, Reported, reported
from include.errors import BadInput

DEEP: list[object] = []
for _ in range(100_000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (148, "Bq/m3", "148"),
        (148, "Bq/m³", "148"),
        ("148", "Bq/m3", "148"),
        (148.5, "Bq/m3", "148.5"),
        (0.1, "Bq/m3", "0.1"),
        (Decimal("12.25"), "Bq/m3", "12.25"),
        ("4.0", "pCi/L", "148"),
        (4, "pCi/L", "148"),
        (4.0, "PCI/L", "148"),
        (" 4.0 ", " pCi / L ", "148"),
        ("0.3", "pci/l", "11.1"),
        ("1.48e2", "Bq/m3", "148"),
        (0, "Bq/m3", "0"),
        (-0.0, "Bq/m3", "0"),
        ("0", "pCi/L", "0"),
        (int(HIGHEST_BQ_M3), "Bq/m3", "10000000"),
    ],
)
def test_a_value_becomes_becquerels(value: object, unit: object, expected: str) -> None:
    """S2: labs write numbers and units in many ways; each must come out as the one figure, exactly."""
    assert reported(value, unit) == Reported(Decimal(expected), below_detection=False)


def test_four_picocuries_are_148_becquerels() -> None:
    """S2: the two units must agree, or a house is over the limit in one lab and under it in another."""
    assert reported(148, "Bq/m³") == reported("4.0", "pCi/L")


@pytest.mark.parametrize(
    ("value", "unit", "limit"), [("<0.3", "pCi/L", "11.1"), ("< 15", "Bq/m3", "15"), ("<0.3", "Bq/m3", "0.3")]
)
def test_below_the_limit_is_a_qualifier(value: str, unit: str, limit: str) -> None:
    """S2: "<0.3" is a result; as a failure it would never reach the customer, as 0.3 it would be wrong."""
    assert reported(value, unit) == Reported(Decimal(limit), below_detection=True)


@pytest.mark.parametrize(
    ("value", "unit", "reason"),
    [
        (None, "Bq/m3", "value is missing"),
        ("", "Bq/m3", "value is missing"),
        ("  ", "Bq/m3", "value is missing"),
        (float("nan"), "Bq/m3", "not a finite number"),
        ("NaN", "Bq/m3", "not a finite number"),
        (Decimal("NaN"), "Bq/m3", "not a finite number"),
        (Decimal("sNaN"), "Bq/m3", "not a finite number"),
        (float("inf"), "Bq/m3", "not a finite number"),
        ("-Infinity", "Bq/m3", "not a finite number"),
        (-1, "Bq/m3", "is negative"),
        ("-1", "Bq/m3", "is negative"),
        ("\u22121", "Bq/m3", "is negative"),
        (True, "Bq/m3", "not a number"),
        ("4,0", "pCi/L", "has a comma"),
        ("1,480", "Bq/m3", "has a comma"),
        ("1e999999999", "Bq/m3", "not a number"),
        ("1e99", "Bq/m3", "is above"),
        (1e300, "Bq/m3", "is above"),
        (10**5_000, "Bq/m3", "16610 bits is above"),
        ("270271", "pCi/L", "is above"),
        (Decimal("1E+999999"), "pCi/L", "is above"),
        ("9" * 100_000, "Bq/m3", "not a number"),
        ("<0", "Bq/m3", "below nothing"),
        ("<", "Bq/m3", "not a number"),
        (">100", "Bq/m3", "not a number"),
        ("148 Bq/m3", "Bq/m3", "not a number"),
        ("١٤٨", "Bq/m3", "not a number"),
        ("0x94", "Bq/m3", "not a number"),
        ("1_000", "Bq/m3", "not a number"),
        ([148], "Bq/m3", "of type list is not a number"),
        ({"value": 1}, "Bq/m3", "of type dict is not a number"),
        (DEEP, "Bq/m3", "of type list is not a number"),
        (148, None, "unit is missing"),
        (148, "", "unit is missing"),
        (148, " ", "unit is missing"),
        (148, "kBq/m3", "unit 'kBq/m3' is neither"),
        (148, "Bq", "unit 'Bq' is neither"),
        (148, 3, "unit 3 is neither"),
        (148, ["Bq/m3"], "unit of type list is neither"),
        (148, DEEP, "unit of type list is neither"),
    ],
    ids=lambda case: repr(case)[:20] if not isinstance(case, list | int) else "",
)
def test_what_is_no_concentration_is_refused(value: object, unit: object, reason: str) -> None:
    """S2: a record without a usable value is set aside, and the person who looks at it is told why."""
    with pytest.raises(BadInput) as refused:
        reported(value, unit)
    assert reason in str(refused.value)
    assert len(str(refused.value)) < 200


@given(
    value=st.one_of(
        st.text(max_size=40), st.floats(), st.integers(), st.decimals(), st.booleans(), st.none(), st.binary()
    ),
    unit=st.one_of(st.sampled_from(["Bq/m3", "Bq/m³", "pCi/L"]), st.text(max_size=10), st.none()),
)
def test_any_value_is_read_or_refused(value: object, unit: object) -> None:
    """S2: one odd record must end as set aside, never as an error that stops the page."""
    try:
        result = reported(value, unit)
    except BadInput:
        return
    assert result.value_bq_m3.is_finite()
    assert 0 <= result.value_bq_m3 <= HIGHEST_BQ_M3
