"""The peers of the queue engine: each script runs in an environment of its own and prints its seconds as JSON."""
