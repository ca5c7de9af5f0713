"""ArcVest's rules."""
