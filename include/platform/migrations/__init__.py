"""The platform's own database, revision by revision."""
