"""How the console comes into Airflow: its entries in the navigation, and what it costs other processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

LOADS = """
import json, sys
from airflow.plugins_manager import _get_plugins, get_plugin_info
plugins, errors = _get_plugins()
wanted = ("fastapi", "starlette", "console", "ecocomply_api", "nifya_api", "airflow.api_fastapi.core_api")
heavy = [name for name in wanted if name in sys.modules]
bare = [
    name for name, module in sys.modules.items()
    if "." not in name and not hasattr(module, "__path__")
    and (getattr(module, "__file__", None) or "").startswith(sys.argv[1])
]
almanac = next(plugin for plugin in plugins if plugin.name == "almanac")
app = almanac.fastapi_apps[0]
paths = {route.path for route in app["app"].routes}
print(json.dumps({
    "errors": errors,
    "names": [plugin.name for plugin in plugins],
    "heavy": heavy,
    "bare": bare,
    "prefix": app["url_prefix"],
    "views": almanac.external_views,
    "paths": sorted(paths),
}))
"""


@pytest.fixture(scope="module", params=["http://127.0.0.1:8080", "https://example.test/airflow/"])
def loaded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """Load the plugins folder as every process of Airflow does, and tell what it brought."""
    home = tmp_path_factory.mktemp("home")
    environment = os.environ | {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "AIRFLOW__API__BASE_URL": request.param,
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'plugins'}",
    }
    done = subprocess.run(
        [sys.executable, "-c", LOADS, str(ROOT / "plugins")],
        check=True,
        capture_output=True,
        text=True,
        env=environment,
    )
    found: dict[str, object] = json.loads(done.stdout.strip().splitlines()[-1])
    return found | {"below": "/airflow" if request.param.endswith("/airflow/") else ""}


def test_the_folder_gives_one_plugin_and_no_error(loaded: dict[str, object]) -> None:
    """Airflow runs every file of the folder under its bare name, unless the packages are listed as ignored."""
    assert loaded["errors"] == {}
    assert loaded["names"] == ["almanac"]
    assert loaded["bare"] == ["almanac_plugin"]


def test_loading_it_brings_no_web_app(loaded: dict[str, object]) -> None:
    """Workers and the DAG processor load the plugin for each task and file; a web app there is waste."""
    assert loaded["heavy"] == []


def test_every_entry_leads_to_a_page(loaded: dict[str, object]) -> None:
    """An entry whose page was renamed shows an empty frame; one below a path must know it."""
    views, paths = loaded["views"], loaded["paths"]
    assert isinstance(views, list)
    assert isinstance(paths, list)
    assert len(views) == 14
    prefix = f"{loaded['below']}{loaded['prefix']}"
    for view in views:
        assert view["href"].startswith(prefix)
        assert view["href"].removeprefix(prefix) in paths
        assert view["icon"].startswith(f"{prefix}/static/")
    assert len({view["url_route"] for view in views}) == len(views)
