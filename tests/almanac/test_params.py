"""What a run may be given: a slip in a name or an instant is told, not guessed."""

from __future__ import annotations

import re
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.sdk import Param

from almanac.params import check_conf, check_logical_date, check_values, run_params
from include.errors import BadInput

NOW = datetime(2027, 3, 10, 2, tzinfo=UTC)
KNOWN = {"as_of", "dry_run", "grace_days"}


@pytest.mark.parametrize(
    "conf",
    [
        {},
        {"grace_days": 5},
        {"as_of": None},
        {"as_of": "2027-03-10T02:00:00Z"},
        {"as_of": "2027-03-09T20:00:00-06:00"},
        {"as_of": "2031-01-01T00:00:00Z", "dry_run": True},
        {"as_of": "1970-01-01T00:00:00Z"},
        {"as_of": "8999-12-31T23:59:59Z", "dry_run": True},
    ],
)
def test_what_is_granted(conf: dict[str, Any]) -> None:
    """This very moment is not to come, and a preview may look ahead."""
    check_conf(conf, KNOWN, NOW)


@pytest.mark.parametrize(
    ("conf", "said"),
    [
        ({"dryrun": True}, "unknown param 'dryrun'; this DAG knows as_of, dry_run, grace_days"),
        ({"x" * 5_000: 1}, "unknown param 'x{100}';"),
        ({"as_of": 5}, "as_of: 5 is not an instant"),
        ({"as_of": "2027-03-10T01:00:00"}, "as_of: '2027-03-10T01:00:00' is not an instant with an offset"),
        ({"as_of": "2027-03-10T02:00:01Z"}, "is later than now"),
        ({"as_of": "2027-03-10T02:00:01Z", "dry_run": "true"}, "is later than now"),
        ({"as_of": "garbage", "dry_run": True}, "as_of: 'garbage' is not an instant"),
        ({"as_of": "0001-01-01T00:00:00Z"}, "as_of: 0001-01-01.* is not between the years 1970 and 8999"),
        ({"as_of": "1969-12-31T23:59:59Z"}, "as_of: 1969-12-31"),
        ({"as_of": "9000-01-01T00:00:00Z", "dry_run": True}, "as_of: 9000-01-01"),
        ({"as_of": "9999-12-31T23:59:59Z", "dry_run": True}, "as_of: 9999-12-31"),
    ],
)
def test_what_is_refused(conf: dict[str, Any], said: str) -> None:
    """Rulings 1 and 10: a typing error would otherwise run the job for real, with its defaults."""
    with pytest.raises(BadInput, match=said):
        check_conf(conf, KNOWN, NOW)


@pytest.mark.parametrize(
    ("conf", "said"),
    [
        ({"grace_days": "x"}, "grace_days: 'x' is not of type 'integer'"),
        ({"grace_days": -1}, "grace_days: -1 is less than the minimum of 0"),
        ({"dry_run": "yes"}, "dry_run: 'yes' is not of type 'boolean'"),
        ({"grace_days": "x" * 5_000}, "grace_days: '.{299}$"),
    ],
    ids=str,
)
def test_a_value_is_refused_in_one_sentence(conf: dict[str, Any], said: str) -> None:
    """The library's own message is the value, the whole schema and a tree of paths."""
    params = run_params(grace_days=Param(90, type="integer", minimum=0))
    schemas = {name: param.schema for name, param in params.items()}
    check_values({"grace_days": 0, "dry_run": True, "as_of": None}, schemas)
    with pytest.raises(BadInput) as refused:
        check_values(conf, schemas)
    assert re.match(said, str(refused.value))
    assert "\n" not in str(refused.value)


def test_every_param_has_a_title() -> None:
    """The form of the UI shows it; `grace_days` is a name for programs."""
    params = run_params(grace_days=Param(90, type="integer"), since=Param(None, type="null", title="From"))
    titles = {name: param.schema["title"] for name, param in params.items()}
    assert titles == {
        "grace_days": "Grace days",
        "since": "From",
        "as_of": "As of",
        "dry_run": "Preview only",
    }


def test_every_dag_has_the_two() -> None:
    """Rulings 1 and 9: as_of and dry_run, typed, beside a DAG's own."""
    params = run_params()
    assert {name: param.value for name, param in params.items()} == {"as_of": None, "dry_run": False}
    assert params["as_of"].schema["format"] == "date-time"
    assert params["dry_run"].schema["type"] == "boolean"


@pytest.mark.parametrize(
    ("given", "granted"),
    [
        (NOW - timedelta(days=400), True),
        (NOW, True),
        # The browser's clock is ahead.
        (NOW + timedelta(seconds=60), True),
        (NOW + timedelta(seconds=61), False),
        (datetime(9999, 12, 31, tzinfo=UTC), False),
        (datetime(1969, 12, 31, tzinfo=UTC), False),
        (datetime(1, 1, 1, tzinfo=UTC), False),
    ],
    ids=str,
)
def test_the_runs_own_date(given: datetime, *, granted: bool) -> None:
    """A run whose date is to come would start none of its tasks, and keep the DAG's other runs waiting."""
    with nullcontext() if granted else pytest.raises(BadInput, match="logical_date: "):
        check_logical_date(given, NOW)
