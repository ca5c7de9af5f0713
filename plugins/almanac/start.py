"""What every starting process of Airflow checks and says of itself."""

from __future__ import annotations

import logging
import sys

from include.as_of import check_zone_data
from include.errors import BadInput

_LOG = logging.getLogger("almanac")
_SERVICES = ("api-server", "scheduler", "dag-processor", "triggerer")


def check_start() -> None:
    """Say which zone data this process uses. A service that would read any other than the pinned one ends here."""
    service = service_name()
    if service is None:
        return
    try:
        _LOG.info("%s: zone data: tzdata %s", service, check_zone_data())
    except BadInput as error:
        _LOG.critical("%s: not started: %s", service, error)
        raise SystemExit(1) from None


def service_name() -> str | None:
    """Return which of Airflow's services this process is, as its command line says; None if it is none."""
    return sys.argv[1] if len(sys.argv) > 1 and sys.argv[1] in _SERVICES else None
