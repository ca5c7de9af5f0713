"""The embedded stack: everything that the platform needs to run on one bare machine, on loopback alone."""
