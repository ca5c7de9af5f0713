"""What a person or an API call may say to a run, and what is refused."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from airflow.sdk import Param

from include.as_of import instant, not_later_than, within_reach
from include.errors import BadInput

AS_OF = "as_of"
DRY_RUN = "dry_run"
_LONGEST_SHOWN = 300

# Airflow checks a param's schema, not just its value, dozens of times a parse and run; by this draft of
# JSON Schema that takes a third of the time, and our keywords mean the same in all of them.
_DRAFT = {"$schema": "http://json-schema.org/draft-07/schema#"}

# A browser fills in its own time; a task that has to wait this long still starts by itself.
_CLOCKS_APART = timedelta(minutes=1)


def run_params(**own: Param) -> dict[str, Param]:
    """Return a DAG's params: its own, and the two that every DAG accepts."""
    params = {
        **own,
        AS_OF: Param(
            None,
            type=["null", "string"],
            format="date-time",
            title="As of",
            description="The instant to decide by, with an offset (2027-03-10T02:00:00-06:00). "
            "Empty: the run's own date. Not later than now, except in a preview.",
        ),
        DRY_RUN: Param(
            False,  # noqa: FBT003 - a Param's default is its first argument
            type="boolean",
            title="Preview only",
            description="Show what the run would change, and change nothing.",
        ),
    }
    for name, param in params.items():
        # The form of the UI shows the title, else the bare name.
        param.schema = _DRAFT | {"title": name.replace("_", " ").capitalize()} | param.schema
    return params


def optional_id(description: str) -> Param:
    """Return a param that takes the id of a row, or nothing."""
    return Param(None, type=["null", "string"], format="uuid", description=description)


def check_values(conf: Mapping[str, Any], schemas: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise BadInput for the first value that its param's schema does not take, in one short sentence."""
    # Half a second that no DAG file should need to be parsed.
    from jsonschema import Draft7Validator, FormatChecker  # noqa: PLC0415 - as said
    from jsonschema.exceptions import best_match  # noqa: PLC0415 - as said

    for name, value in conf.items():
        wrong = best_match(Draft7Validator(schemas[name], format_checker=FormatChecker()).iter_errors(value))
        if wrong is not None:
            raise BadInput(f"{name}: {wrong.message[:_LONGEST_SHOWN]}")


def check_conf(conf: Mapping[str, Any], known: Collection[str], now: datetime) -> None:
    """Raise BadInput for a key that the DAG does not know, or an as_of that is unreadable or to come."""
    for key in conf:
        if key not in known:
            raise BadInput(f"conf: unknown param {key[:100]!r}; this DAG knows {', '.join(sorted(known))}")
    given = conf.get(AS_OF)
    if given is None:
        return
    if not isinstance(given, str):
        raise BadInput(f"as_of: {given!r} is not an instant with an offset, as in 2027-03-10T02:00:00Z")
    as_of = within_reach(instant(given))
    if conf.get(DRY_RUN) is not True:
        not_later_than(as_of, now)


def check_logical_date(given: datetime, now: datetime) -> None:
    """Raise BadInput for a run's own date (aware) that is to come, or that no run can decide by.

    Airflow would take the run and start none of its tasks until then, and no other run of the DAG meanwhile.
    """
    within_reach(given, "logical_date")
    if given > now + _CLOCKS_APART:
        raise BadInput(
            f"logical_date: {given.isoformat()} is later than now ({now.isoformat(timespec='seconds')}); "
            "a preview as of an instant to come is asked for by the params as_of and dry_run"
        )
