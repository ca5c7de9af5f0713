"""Radon concentrations as labs report them, in Bq/m³."""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal

from include.errors import BadInput

BQ_M3_PER_PCI_L = Decimal(37)
"""1 pCi/L in Bq/m³, exactly: a curie is 37 GBq."""

HIGHEST_BQ_M3 = Decimal(10_000_000)
"""More than any house, mine or laboratory has held: a value above it is a mistake."""

_FACTORS = {"bq/m3": Decimal(1), "pci/l": BQ_M3_PER_PCI_L}
_NUMBER = re.compile(r"(?P<below><)?\s*(?P<number>[0-9]{1,12}(\.[0-9]{1,12})?([eE][+-]?[0-9]{1,2})?)")


@dataclass(frozen=True, slots=True)
class Reported:
    """A concentration in Bq/m³; `below_detection` says that it is the limit which the sample stayed under."""

    value_bq_m3: Decimal
    below_detection: bool


def reported(value: object, unit: object) -> Reported:
    """Read a value and its unit: a number, or text such as "148", "4.0" or "<0.3"; Bq/m³ or pCi/L.

    Raises BadInput for anything that can't be a concentration; the message says why.
    """
    factor = _factor(unit)
    number, below = _number(value)
    concentration = number * factor
    if concentration > HIGHEST_BQ_M3:
        raise BadInput(f"value {_shown(value)} is above {HIGHEST_BQ_M3:,} Bq/m³")
    if below and not concentration:
        raise BadInput(f"value {_shown(value)} is below nothing")
    return Reported(concentration, below)


def _factor(unit: object) -> Decimal:
    if unit is None or (isinstance(unit, str) and not unit.strip()):
        raise BadInput("unit is missing; it must be Bq/m³ or pCi/L")
    # The compatibility form turns the superscript of m³ into a plain 3.
    name = "".join(unicodedata.normalize("NFKC", unit).split()).casefold() if isinstance(unit, str) else ""
    factor = _FACTORS.get(name)
    if factor is None:
        raise BadInput(f"unit {_shown(unit)} is neither Bq/m³ nor pCi/L")
    return factor


def _number(value: object) -> tuple[Decimal, bool]:
    if value is None or (isinstance(value, str) and not value.strip()):
        raise BadInput("value is missing")
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        raise BadInput(f"value {_shown(value)} is not a number")
    if isinstance(value, str):
        return _text(value)
    if (isinstance(value, Decimal) and not value.is_finite()) or (
        isinstance(value, float) and not math.isfinite(value)
    ):
        raise BadInput(f"value {_shown(value)} is not a finite number")
    if value < 0:
        raise BadInput(f"value {_shown(value)} is negative")
    if value > HIGHEST_BQ_M3:
        raise BadInput(f"value {_shown(value)} is above {HIGHEST_BQ_M3:,} Bq/m³")
    # A float's own digits, not its binary tail: 0.1 is 0.1. The sign of -0.0 goes.
    return abs(Decimal(repr(value)) if isinstance(value, float) else Decimal(value)), False


def _text(value: str) -> tuple[Decimal, bool]:
    text = value.strip()
    if match := _NUMBER.fullmatch(text):
        return Decimal(match["number"]), bool(match["below"])
    if text.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        raise BadInput(f"value {_shown(value)} is not a finite number")
    if re.fullmatch(r"<?\s*[-\u2212]\s*[0-9.]+", text):
        raise BadInput(f"value {_shown(value)} is negative")
    if re.fullmatch(r"<?\s*[0-9]+(,[0-9]+)+(\.[0-9]+)?", text):
        raise BadInput(f"value {_shown(value)} has a comma, which may be a decimal or a thousand")
    raise BadInput(f"value {_shown(value)} is not a number such as 148, 4.0 or <0.3")


def _shown(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 64:  # noqa: PLR2004
        return f"of {value.bit_length()} bits"
    if not isinstance(value, int | float | Decimal | str):
        return f"of type {type(value).__name__}"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"  # noqa: PLR2004
