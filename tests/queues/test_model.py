"""Random operations on a queue, beside a model of what they should do: the two never differ."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from sqlalchemy import Engine

from include.queues.engine import Claim, Failure, Queue, StaleClaim, new_owner
from tests.queues.conftest import FAIR, FULL, PLAIN, Bench, install

EXAMPLES, STEPS = 25, 30


@dataclass
class Model:
    """A row as it should be."""

    number: int
    status: str
    attempts: int = 0
    owner: str | None = None
    waits: bool = False
    lost: bool = False


def machine(  # noqa: C901 - a rule an operation
    bench: Bench, queue: Queue, steps: list[int]
) -> type[RuleBasedStateMachine]:
    """Return the machine for a queue; each example starts with it empty, each step is noted in `steps`."""
    table, words = queue.table, queue.table.words

    class Operations(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            bench.execute(f'TRUNCATE "{table.name}", queue_audit')
            self.rows: dict[Any, Model] = {}
            self.claims: list[Claim] = []

        @rule()
        def enqueue(self) -> None:
            key: Any = uuid.uuid4() if table.key_type == "uuid" else f"row {len(self.rows)}"
            number = len(self.rows)
            due = datetime.now(UTC) - timedelta(days=2) + timedelta(milliseconds=number)
            bench.add(table, 1, **{"id": key, table.due: due})
            self.rows[key] = Model(number, words.due)

        @rule(at_most=st.integers(1, 4))
        def claim(self, at_most: int) -> None:
            with bench.database.transaction() as tx:
                found = queue.claim(tx, new_owner("test"), at_most)
            due = [key for key, row in self.rows.items() if row.status == words.due and not row.waits]
            if any(self.rows[key].lost for key in due):
                # A row that may have killed its worker comes alone.
                assert bool(found) == bool(due)
                assert len(found) == 1 or not any(self.rows[one.key].lost for one in found)
            else:
                assert len(found) == min(at_most, len(due))
            for one in found:
                row = self.rows[one.key]
                assert row.status == words.due
                assert not row.waits
                row.status, row.attempts, row.owner = words.claimed, row.attempts + 1, one.owner
                assert one.attempt == row.attempts
            self.claims += found

        def _valid(self, claim: Claim) -> bool:
            row = self.rows[claim.key]
            return row.status == words.claimed and row.owner == claim.owner and row.attempts == claim.attempt

        @rule(data=st.data())
        def complete(self, data: Any) -> None:
            if not self.claims:
                return
            claim = data.draw(st.sampled_from(self.claims))
            if self._valid(claim):
                with bench.database.transaction() as tx:
                    queue.complete(tx, [claim])
                self.rows[claim.key].status = words.done
            else:
                with pytest.raises(StaleClaim), bench.database.transaction() as tx:
                    queue.complete(tx, [claim])

        @rule(data=st.data())
        def release(self, data: Any) -> None:
            if not self.claims:
                return
            claim = data.draw(st.sampled_from(self.claims))
            with bench.database.transaction() as tx:
                released = queue.release(tx, [claim])
            assert released == ({claim.key} if self._valid(claim) else set())
            if released:
                row = self.rows[claim.key]
                row.status, row.attempts, row.owner = words.due, row.attempts - 1, None

        @rule(data=st.data(), permanent=st.booleans())
        def fail(self, data: Any, permanent: bool) -> None:  # noqa: FBT001 - drawn
            if not self.claims:
                return
            claim = data.draw(st.sampled_from(self.claims))
            failure = Failure(claim, "no", permanent=permanent)
            if not self._valid(claim):
                with pytest.raises(StaleClaim), bench.database.transaction() as tx:
                    queue.fail(tx, [failure])
                return
            with bench.database.transaction() as tx:
                queue.fail(tx, [failure])
            row = self.rows[claim.key]
            ends = permanent or not table.delays or row.attempts >= table.attempt_limit
            row.status, row.waits = (words.failed, False) if ends else (words.due, True)
            row.lost = False

        @rule()
        def waits_pass(self) -> None:
            column = table.again or table.due
            due = f"\"{column}\" = now() - interval '1 day' + random() * interval '1 second'"
            bench.execute(
                f'UPDATE "{table.name}" SET {due} WHERE "{column}" > now() AND status = \'{words.due}\''
            )
            for row in self.rows.values():
                row.waits = False

        @rule()
        def workers_are_lost(self) -> None:
            bench.execute(f"UPDATE \"{table.name}\" SET heartbeat_at = now() - interval '1 day'")
            with bench.database.transaction() as tx:
                again, ended = queue.take_back(tx)
            lost = [row for row in self.rows.values() if row.status == words.claimed]
            assert again + ended == len(lost)
            delays = table.delays if table.lost_delays is None else table.lost_delays
            for row in lost:
                row.owner, row.lost = None, True
                if row.attempts >= table.attempt_limit:
                    row.status = words.failed
                else:
                    row.status = words.due
                    row.waits = bool(delays and any(delays))

        @rule(data=st.data(), what=st.sampled_from(["cancel", "retry", "requeue"]))
        def person(self, data: Any, what: str) -> None:
            if what not in table.people_may or not self.rows:
                return
            key = data.draw(st.sampled_from(sorted(self.rows, key=str)))
            row = self.rows[key]
            with bench.database.transaction() as tx:
                changed = getattr(queue, what)(tx, [key], "ana")
            expected = {"cancel": words.due, "retry": words.failed, "requeue": words.claimed}[what]
            assert changed == ({key} if row.status == expected else set())
            if changed:
                row.status = str(words.cancelled) if what == "cancel" else words.due
                row.attempts = 0 if what == "retry" else row.attempts
                row.owner, row.waits = None, False

        @invariant()
        def same(self) -> None:
            steps.append(1)
            for key, row in self.rows.items():
                found = bench.row(table, key)
                assert (found.status, found.attempts, found.claimed_by) == (
                    row.status,
                    row.attempts,
                    row.owner if row.status == words.claimed else None,
                )

    return Operations


@pytest.mark.parametrize("table", [FULL, FAIR, PLAIN], ids=lambda table: table.name)
def test_random_operations(empty_database: Engine, table: Any, record_property: Any) -> None:
    """Whatever is done in whatever order, each row is where the model says, and a late word is refused."""
    install(empty_database)
    bench = Bench(empty_database)
    steps: list[int] = []
    run_state_machine_as_test(
        machine(bench, Queue(table), steps),
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    record_property("queues", f"{table.name}: {len(steps):,} random operations, each compared with the model")
