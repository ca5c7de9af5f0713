"""The benchmarks, at a size at which their ratios mean nothing."""
