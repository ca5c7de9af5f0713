"""NIFYA's admin API, which Airflow's API server mounts under /nifya."""
