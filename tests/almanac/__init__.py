"""How Almanac's jobs run on Airflow."""
