"""The queue engine."""
