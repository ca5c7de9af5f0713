"""What Almanac adds to Airflow; every process loads this file, so what one alone needs is imported late."""

from __future__ import annotations

from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from airflow.configuration import conf
from airflow.plugins_manager import AirflowPlugin

from almanac import listener
from almanac.start import check_start

_PREFIX = "/almanac"


def _page(name: str, path: str, url_route: str, **more: Any) -> dict[str, Any]:
    below = urlsplit(conf.get("api", "base_url", fallback="")).path.rstrip("/")
    return {
        "name": name,
        "href": f"{below}{_PREFIX}{path}",
        "destination": "nav",
        "url_route": url_route,
        "icon": f"{below}{_PREFIX}/static/almanac.svg",
        **more,
    }


class AlmanacPlugin(AirflowPlugin):
    """The console and its pages in Airflow's navigation; what the scheduler hears; what the API refuses."""

    name = "almanac"

    listeners = [listener]  # noqa: RUF012 - as Airflow declares it

    external_views = [  # noqa: RUF012 - as Airflow declares it
        _page("Almanac", "/runs", "almanac-runs", nav_top_level=True),
        _page("Queues", "/queues", "almanac-queues", category="Almanac"),
        _page("Alerts", "/alerts", "almanac-alerts", category="Almanac"),
        _page("Mail log", "/clearpath/mail", "clearpath-mail", category="ClearPath"),
        _page("Certificates", "/clearpath/certificates", "clearpath-certificates", category="ClearPath"),
        _page("Set-aside lab records", "/clearpath/lab", "clearpath-lab", category="ClearPath"),
        _page("Job queue", "/arcvest/jobs", "arcvest-jobs", category="ArcVest"),
        _page("Scheduled jobs", "/nifya/jobs", "nifya-jobs", category="NIFYA"),
        _page("Jobs", "/ecocomply/jobs", "ecocomply-jobs", category="EcoComply"),
        _page("Dead letters", "/ecocomply/dead-letters", "ecocomply-dead-letters", category="EcoComply"),
        _page("Notifications", "/ecocomply/notifications", "ecocomply-notifications", category="EcoComply"),
        _page("Compliance", "/ecocomply/compliance", "ecocomply-compliance", category="EcoComply"),
        _page("Risk", "/ecocomply/risk", "ecocomply-risk", category="EcoComply"),
        _page("Companies", "/ecocomply/companies", "ecocomply-companies", category="EcoComply"),
    ]

    @cached_property
    def fastapi_apps(self) -> list[dict[str, Any]]:
        """Build the console and the systems' APIs, which only the API server asks for."""
        from console.app import create_app  # noqa: PLC0415 - a web app, of no use to any other process
        from ecocomply_api.app import create_app as create_job_api  # noqa: PLC0415 - as above
        from nifya_api.app import create_app as create_api  # noqa: PLC0415 - as above

        return [
            {"name": "Almanac console", "app": create_app(), "url_prefix": _PREFIX},
            {"name": "NIFYA admin API", "app": create_api(), "url_prefix": "/nifya"},
            {"name": "EcoComply job API", "app": create_job_api(), "url_prefix": "/ecocomply"},
        ]

    @cached_property
    def fastapi_root_middlewares(self) -> list[dict[str, Any]]:
        """Name the check of what a run is given, which only the API server asks for."""
        from almanac.conf_check import ConfCheck  # noqa: PLC0415 - as above

        return [{"name": "Almanac's check of a run's conf", "middleware": ConfCheck}]

    @classmethod
    def on_load(cls, *_args: Any, **_kwargs: Any) -> None:
        """Check a starting process."""
        check_start()
