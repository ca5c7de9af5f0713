"""The tables of revision 0001, as they were then."""

from __future__ import annotations

from include.columns import baseline_table, findings_table
from include.ecocomply.migrations.r0001_tables import (
    companies,
    consultants,
    corrective_actions,
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
from include.ecocomply.migrations.r0001_tables.base import METADATA

BASELINE = baseline_table(METADATA)

ADOPTION_FINDINGS = findings_table(METADATA)

AREAS = (
    companies,
    consultants,
    corrective_actions,
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

__all__ = ["ADOPTION_FINDINGS", "AREAS", "BASELINE", "METADATA"]
