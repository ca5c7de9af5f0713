"""EcoComply's pages: jobs, dead letters, notifications, compliance, risk, and each company by itself."""

from __future__ import annotations
