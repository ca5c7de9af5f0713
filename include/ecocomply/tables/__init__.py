"""EcoComply's tables as the newest migration leaves them, one module an area of the business.

The application owns most of them and writes to them too. Every row belongs to a company: row-level security
shows it to that company's users alone (docs/ecocomply.md). In an adopted database a status may be an enum type,
and keys can differ, so a statement writes `ON CONFLICT DO NOTHING` without naming columns where it can.
"""

from __future__ import annotations

from include.columns import baseline_table, findings_table
from include.ecocomply.tables import (
    companies,
    consultants,
    corrective_actions,
    dashboard,
    documents,
    effluent,
    generators,
    jobs,
    monitoring,
    notifications,
    obligations,
    packs,
    permits,
    triggers,
    waste,
)
from include.ecocomply.tables.base import METADATA

BASELINE = baseline_table(METADATA)

ADOPTION_FINDINGS = findings_table(METADATA)

AREAS = (
    companies,
    obligations,
    documents,
    effluent,
    generators,
    permits,
    corrective_actions,
    waste,
    triggers,
    monitoring,
    notifications,
    packs,
    consultants,
    jobs,
    dashboard,
)

__all__ = ["ADOPTION_FINDINGS", "AREAS", "BASELINE", "METADATA"]
