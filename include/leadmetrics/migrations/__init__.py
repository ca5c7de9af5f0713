"""LeadMetrics' database, revision by revision."""
