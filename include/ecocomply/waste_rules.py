"""What consignment notes are checked by: a rule's type, its config and the day decide."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Row

from include.ecocomply.expressions import Answer, Asked
from include.ecocomply.tenant_json import read_json
from include.errors import BadInput
from include.odd_dates import reckonable

CUSTOM = "CUSTOM"
PASS, FAIL, SKIPPED = "PASS", "FAIL", "SKIPPED"

_LONGEST_MESSAGE = 500
_MOST_DIGITS = 30  # a tenant's 1E+999999999 is no limit, and a gigabyte when written out
_EWC = re.compile(r"[0-9]{6}\*?")
# Mass in kilograms, volume in litres: the two can't be compared.
_UNITS = {"KG": ("mass", 1), "TONNES": ("mass", 1000), "LITRES": ("volume", 1), "M3": ("volume", 1000)}
_SPELLINGS = {"M³": "M3", "TONNE": "TONNES", "T": "TONNES", "LITRE": "LITRES", "L": "LITRES"}


class Verdict(NamedTuple):
    """What a rule says of a note. `undecided`: the rule could not be evaluated, and the message says why."""

    result: str
    message: str | None = None
    undecided: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of a company. `config` is what the tenant wrote, whatever it is; `unreadable` says that it is no JSON."""

    id: UUID
    company_id: UUID
    waste_stream_id: UUID | None
    name: str
    type: str
    severity: str
    config: Any
    unreadable: str | None = None

    @classmethod
    def of(cls, row: Row[Any]) -> Rule:
        """Return the rule that a row is."""
        config, unreadable = None, None
        try:
            config = read_json(row.rule_config)
        except BadInput as error:
            unreadable = str(error)
        return cls(
            id=row.id,
            company_id=row.company_id,
            waste_stream_id=row.waste_stream_id,
            name=row.rule_name or row.rule_type.replace("_", " ").capitalize(),
            type=row.rule_type,
            severity=row.severity,
            config=config,
            unreadable=unreadable,
        )


class NotConfigured(BadInput):
    """A rule lacks what it compares with; it is left out."""


def applicable(rules: Sequence[Rule], waste_stream_id: UUID | None) -> list[Rule]:
    """Return which of a company's rules are for a waste stream: its own replace the company's of the same type."""
    own = [rule for rule in rules if waste_stream_id is not None and rule.waste_stream_id == waste_stream_id]
    replaced = {rule.type for rule in own}
    return own + [rule for rule in rules if rule.waste_stream_id is None and rule.type not in replaced]


def verdict(note: Row[Any], rule: Rule, today: date, answer: Answer | None = None) -> Verdict:
    """Check a note by a rule; `answer` is that of a CUSTOM rule's expression."""
    try:
        config = _config(rule)
        check = _CHECKS.get(rule.type)
        objection = _custom(note, config, answer) if check is None else check(note, config, today)
    except NotConfigured as missing:
        return Verdict(SKIPPED, f"{rule.name}: no {missing} is configured")
    except BadInput as error:
        return Verdict(FAIL, f"{rule.name} could not be checked: {error}"[:_LONGEST_MESSAGE], undecided=True)
    if objection is None:
        return Verdict(PASS)
    own_words = config.get("error_message")
    return Verdict(
        FAIL,
        (own_words if isinstance(own_words, str) and own_words.strip() else objection)[:_LONGEST_MESSAGE],
    )


def asked(note: Row[Any], rule: Rule, today: date) -> Asked | None:
    """Return what a CUSTOM rule asks of a note; None for other rules, and for one without an expression."""
    config = rule.config
    if rule.type != CUSTOM or not isinstance(config, Mapping) or config.get("expression") is None:
        return None
    try:
        return Asked(config["expression"], _fields(note, today))
    except BadInput:
        # The verdict says the same of it, and why.
        return None


def status(checked: Sequence[tuple[Rule, Verdict]]) -> str:
    """Return a note's standing after all its rules.

    A rule that could not be evaluated fails the note whatever its severity: nobody has made that check.
    """
    failed = [(rule, found) for rule, found in checked if found.result == FAIL]
    if any(found.undecided or rule.severity == "ERROR" for rule, found in failed):
        return "FAILED"
    return "PASSED_WITH_WARNINGS" if failed else "PASSED"


def _config(rule: Rule) -> Mapping[str, Any]:
    if rule.unreadable is not None:
        raise BadInput(rule.unreadable)
    config = {} if rule.config is None else rule.config
    if not isinstance(config, Mapping):
        raise BadInput("its config is no object")
    return config


def _fields(note: Row[Any], today: date) -> dict[str, Any]:
    return {
        "consignment_number": note.consignment_number,
        "consignment_date": _day(note).isoformat(),
        "storage_days": (today - _day(note)).days,
        "quantity": None if note.quantity is None else float(note.quantity),
        "unit": note.unit,
        "ewc_code": note.ewc_code,
        "waste_stream_id": _text(note.waste_stream_id),
        "carrier_id": _text(note.carrier_id),
        "destination_site_id": _text(note.destination_site_id),
    }


def _day(note: Row[Any]) -> date:
    return reckonable(note.consignment_date, "the note's consignment_date")


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _number(config: Mapping[str, Any], key: str) -> Decimal:
    """Return a number of a config, where it may stand as a text."""
    given = config.get(key)
    if given is None:
        raise NotConfigured(key)
    try:
        number = Decimal("nan") if isinstance(given, bool) else Decimal(str(given))
    except InvalidOperation:
        number = Decimal("nan")
    if not number.is_finite() or abs(number.adjusted()) > _MOST_DIGITS:
        raise BadInput(f"its {key} is no number")
    return number


def _list(config: Mapping[str, Any], key: str) -> list[str]:
    given = config.get(key)
    if given is None:
        raise NotConfigured(key)
    if not isinstance(given, list):
        raise BadInput(f"its {key} is no list")
    return [str(one).strip().lower() for one in given]


def _custom(note: Row[Any], config: Mapping[str, Any], answer: Answer | None) -> str | None:
    if config.get("expression") is None:
        raise NotConfigured("expression")
    _day(note)
    if answer is None or answer.met is None:
        raise BadInput("its expression was not evaluated" if answer is None else answer.reason or "no reason")
    return None if answer.met else "The consignment note does not meet the condition"


def _carrier_licence(note: Row[Any], config: Mapping[str, Any], today: date) -> str | None:
    """Ask for a licence that covers the day of the consignment and today."""
    if note.carrier_id is None:
        return "No carrier is named"
    if not (note.licence_number or "").strip():
        return "The carrier has no licence"
    if note.licence_expiry_date is None or note.licence_expiry_date < max(today, _day(note)):
        return "The carrier's licence does not cover the consignment date and today"
    if config.get("require_upper_tier") is True and note.licence_tier != "UPPER":
        return "The carrier's licence is not of the upper tier"
    return None


def _volume_limit(note: Row[Any], config: Mapping[str, Any], today: date) -> str | None:  # noqa: ARG001 - a check's form
    """Quantity and limit are compared in one unit; a limit without a unit is in the note's."""
    most = _number(config, "max_volume")
    if note.quantity is None or not note.quantity.is_finite():
        raise BadInput("the note has no quantity")
    kind, size = _unit(note.unit)
    limit_kind, limit_size = _unit(config["unit"]) if config.get("unit") is not None else (kind, size)
    if kind != limit_kind:
        raise BadInput(f"{note.unit or 'no unit'} can't be compared with {config['unit']}")
    if note.quantity * size > most * limit_size:
        return (
            f"The quantity is above the maximum of {most:f} {config.get('unit') or note.unit or ''}".rstrip()
        )
    return None


def _unit(given: Any) -> tuple[str, int]:
    if given is None:
        return "", 1
    word = str(given).strip().upper()
    try:
        return _UNITS[_SPELLINGS.get(word, word)]
    except KeyError:
        raise BadInput(f"{word[:20]!r} is no unit that is known") from None


def _storage_duration(note: Row[Any], config: Mapping[str, Any], today: date) -> str | None:
    most = _number(config, "max_storage_days")
    days = (today - _day(note)).days
    return f"Stored for {days} days, the most is {most:f}" if days > most else None


def _ewc_code(note: Row[Any], config: Mapping[str, Any], today: date) -> str | None:  # noqa: ARG001 - a check's form
    """Ask for six digits, with or without a star: the digits tell codes apart. Without a list any code will do."""
    code = "".join((note.ewc_code or "").split())
    if not _EWC.fullmatch(code):
        return "The EWC code is not six digits"
    if config.get("allowed_codes") is None:
        return None
    allowed = {"".join(one.split()).removesuffix("*") for one in _list(config, "allowed_codes")}
    return None if code.removesuffix("*") in allowed else "The EWC code is not among those allowed"


def _destination(note: Row[Any], config: Mapping[str, Any], today: date) -> str | None:  # noqa: ARG001 - a check's form
    allowed = _list(config, "allowed_site_ids")
    if note.destination_site_id is None:
        return "No destination is named"
    return None if str(note.destination_site_id) in allowed else "The destination is not among those allowed"


_CHECKS: dict[str, Callable[[Row[Any], Mapping[str, Any], date], str | None]] = {
    "CARRIER_LICENCE": _carrier_licence,
    "VOLUME_LIMIT": _volume_limit,
    "STORAGE_DURATION": _storage_duration,
    "EWC_CODE": _ewc_code,
    "DESTINATION": _destination,
}
