"""A DAG folder of one file."""
