"""The dashboard of the clocks: a materialised view, which `create_all` makes with the tables."""

from __future__ import annotations

from importlib import resources

from sqlalchemy import DDL, event

from include.ecocomply.tables.base import METADATA

for _name in (
    "compliance_clock_dashboard",
    "compliance_clock_dashboard_key",
    "compliance_clock_dashboard_company",
):
    _source = resources.files("include.ecocomply").joinpath("ddl", f"{_name}.sql").read_text(encoding="utf-8")
    event.listen(METADATA, "after_create", DDL(_source))
