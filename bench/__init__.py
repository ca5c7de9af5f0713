"""The benchmarks: each times a job and its limit side by side, in one run, and gives their ratio."""
