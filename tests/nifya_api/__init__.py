"""NIFYA's admin API."""
