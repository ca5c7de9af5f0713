"""LeadMetrics' rules."""
