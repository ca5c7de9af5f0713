"""Promises that every DAG keeps, also the ones that are not written yet."""
