"""NIFYA's rules."""
