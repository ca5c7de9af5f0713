"""Whose rows a transaction sees: one user's companies, or, for the service's own work, everybody's.

The roles are the database's own (docs/ecocomply.md); a login that is a member of both may be either. Both ends
with the transaction, so a pooled connection carries nothing over.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from uuid import UUID

from include.ecocomply.job_types import JobDag
from include.run import Database, Run, Transaction
from include.statements import statement

_PACKAGE = "include.ecocomply"

USER_ROLE = "ecocomply_user"
SERVICE_ROLE = "ecocomply_service"


def act_as_user(tx: Transaction, user_id: UUID, company_id: UUID | None = None) -> None:
    """Let the rest of a transaction see what a user may see: the own company, and a consultant's active clients.

    `company_id` narrows that to one of them; a company that the user may not see leaves nothing.
    """
    company = None if company_id is None else str(company_id)
    tx.value(statement(_PACKAGE, "act_as"), role=USER_ROLE, user_id=str(user_id), company_id=company)


def act_as_service(tx: Transaction) -> None:
    """Let the rest of a transaction see every company's rows, and those of none."""
    tx.value(statement(_PACKAGE, "act_as"), role=SERVICE_ROLE, user_id=None, company_id=None)


def companies_seen(tx: Transaction, user_id: UUID) -> frozenset[UUID]:
    """Return the companies whose rows a user may see; the rest of the transaction is the service's."""
    act_as_user(tx, user_id)
    found: list[UUID] = tx.value(statement(_PACKAGE, "companies_seen"))
    act_as_service(tx)
    return frozenset(found)


class ServiceDatabase:
    """A database whose every transaction is the service's: for the platform's own books."""

    def __init__(self, db: Database) -> None:
        self.db = db

    @contextmanager
    def transaction(self) -> Generator[Transaction]:
        with self.db.transaction() as tx:
            act_as_service(tx)
            yield tx

    def alone(self, what: str) -> AbstractContextManager[None]:
        return self.db.alone(what)


class UserDatabase:
    """A database whose every transaction is one user's: for a job that this user asked for."""

    def __init__(self, db: Database, user_id: UUID) -> None:
        self.db = db
        self.user_id = user_id

    @contextmanager
    def transaction(self) -> Generator[Transaction]:
        with self.db.transaction() as tx:
            act_as_user(tx, self.user_id)
            yield tx

    def alone(self, what: str) -> AbstractContextManager[None]:
        return self.db.alone(what)


def as_service(run: Run) -> Run:
    """Return the run with the service's database; it counts and notes where the run itself does."""
    return run if isinstance(run.db, ServiceDatabase) else replace(run, db=ServiceDatabase(_nobodys(run.db)))


def as_user(run: Run, user_id: UUID) -> Run:
    """Return the run with a user's database; it counts and notes where the run itself does."""
    return replace(run, db=UserDatabase(_nobodys(run.db), user_id))


def as_asked(run: Run, dag: JobDag, created_by: UUID | None) -> Run:
    """Return the run under the claims of who asked for it; the platform's own work keeps the service's."""
    return run if created_by is None or dag.service_only else as_user(run, created_by)


def _nobodys(db: Database) -> Database:
    return db.db if isinstance(db, ServiceDatabase | UserDatabase) else db
