"""NIFYA's database, revision by revision."""
