"""Hooks that ask Airflow itself, over its own API and a metadata database."""
