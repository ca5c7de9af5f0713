"""Outside services as small real servers on loopback, for tests and the demo."""
