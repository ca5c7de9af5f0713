"""The embedded stack: it starts whatever was left behind, and leaves nothing behind."""
