"""The console: Almanac's pages in Airflow's navigation."""
