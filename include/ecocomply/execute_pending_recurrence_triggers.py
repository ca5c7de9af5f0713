"""Rules whose date has come, or whose event has happened, make the schedules and deadlines that they are for."""

from __future__ import annotations

from include.ecocomply.triggers import CONDITIONAL, EVENT_BASED, fire_by_date, fire_by_event
from include.job import NothingOutside
from include.run import Run

NAME = "executePendingRecurrenceTriggers"
SETTINGS: dict[str, str | None] = {}
QUEUES: tuple[str, ...] = ()
Outside = NothingOutside


def fire_scheduled_rules(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Fire each rule by the calendar for every date up to the run's day, those that were missed as well."""
    fire_by_date(run)


def fire_event_rules(run: Run, outside: NothingOutside) -> None:  # noqa: ARG001 - a step's form
    """Fire each rule that listens by every event that it has not fired by yet."""
    fire_by_event(run, (EVENT_BASED, CONDITIONAL), int(run.params["batch_size"]), run.params["company_id"])


STEPS = (fire_scheduled_rules, fire_event_rules)
