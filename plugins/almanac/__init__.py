"""How Almanac's jobs run on Airflow: defaults, params, runs, retries, alerts, triggers."""
