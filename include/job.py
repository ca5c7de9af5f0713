"""What a job module declares, and how its steps are run in a row.

A job is a tuple of step functions, one per step of its specification, each called as `step(run, outside)`. A
DAG's tasks call them one by one; a preview and the tests call them all together, here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from include.effects import Effects
from include.run import Run

Step = Callable[[Run, Any], Mapping[str, Any] | bool | None]
"""A step returns what it hands on to later steps, or False if the job ends there."""


class Outside(Protocol):
    """What a job needs of the world beyond its database: a named tuple of collaborators."""

    def in_preview(self, run: Run, effects: Effects) -> Outside:
        """Return the form that a preview uses: it records what it would change.

        Called before the preview's transaction opens; what must be read from outside is read here.
        """
        ...


class Job(Protocol):
    """A job's module.

    `NAME` is the job's name in logs and bookkeeping; `SETTINGS` maps the platform's variables that it reads to
    their defaults; `QUEUES` names the tables that a preview copies rather than locks, because other workers
    skip rows that are locked.
    """

    @property
    def NAME(self) -> str: ...  # noqa: N802 - a module's constant

    @property
    def STEPS(self) -> tuple[Step, ...]: ...  # noqa: N802 - as above

    @property
    def SETTINGS(self) -> Mapping[str, str | None]: ...  # noqa: N802 - as above

    @property
    def QUEUES(self) -> tuple[str, ...]: ...  # noqa: N802 - as above


def perform(job: Job, run: Run, outside: Any) -> None:
    """Run a job's steps in a row, handing on what each returns."""
    for step in job.STEPS:
        handed = step(run, outside)
        if handed is False:
            return
        if isinstance(handed, Mapping):
            run.handed.update(handed)


class NothingOutside:
    """For a job whose only effects are in its database."""

    def in_preview(self, run: Run, effects: Effects) -> NothingOutside:  # noqa: ARG002 - the protocol's form
        return self
