"""ClearPath RD's rules."""
