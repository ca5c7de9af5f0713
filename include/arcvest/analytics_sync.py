"""Every morning the application fetches its analytics; this calls it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from include.arcvest import application_call
from include.arcvest.application_call import Call
from include.run import Run

NAME = "analyticsSync"
SETTINGS = application_call.SETTINGS
QUEUES: tuple[str, ...] = ()
Outside = application_call.Outside

CALL = Call(job="analytics-sync", endpoint="api/cron/analytics-sync", every=timedelta(hours=24), first=8)


def claim_slot(run: Run, outside: Outside) -> Mapping[str, Any] | bool:  # noqa: ARG001 - a step's form
    """Claim the slot that the run is for; False if it needs no call any more."""
    return application_call.claim_slot(run, CALL)


def call_application(run: Run, outside: Outside) -> None:
    """Call the application under the slot's key, and record what it answers."""
    application_call.call_application(run, outside, CALL)


STEPS = (claim_slot, call_application)
