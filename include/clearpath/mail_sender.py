"""Whom ClearPath's mail goes through: one provider, so one pause for all that is sent."""

from __future__ import annotations

from include.mail_sending import Sender

QUEUE = "emailQueue"
"""The row of `jobs_state` that holds the pause, and the name of the job that the table had before."""

SENDER = Sender(package="include.clearpath", service="clearpath_email", pause=QUEUE)
