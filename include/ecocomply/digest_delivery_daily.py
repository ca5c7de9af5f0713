"""The daily digests: one mail a person and day of what waits for it."""

from __future__ import annotations

from include.ecocomply import digest_delivery
from include.mail_sending import Outside
from include.run import Run

NAME = "digest-delivery-job"
SETTINGS = digest_delivery.SETTINGS
QUEUES = digest_delivery.QUEUES

FREQUENCY = "DAILY"


def make_digests(run: Run, outside: Outside) -> None:  # noqa: ARG001 - a step's form
    """Make the digest of everybody for whom something waits."""
    digest_delivery.make_digests(run, FREQUENCY)


def claim_digests(run: Run, outside: Outside) -> None:
    """Render what waits and commit the claim."""
    digest_delivery.claim_digests(run, FREQUENCY, outside.mail)


def send_digests(run: Run, outside: Outside) -> None:
    """Send every open claim of a digest and record each answer."""
    digest_delivery.send_digests(run, outside)


STEPS = (make_digests, claim_digests, send_digests)
