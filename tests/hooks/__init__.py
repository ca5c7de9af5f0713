"""The hooks, against small real services on loopback."""
