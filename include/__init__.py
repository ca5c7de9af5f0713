"""What the jobs do. Nothing below this package has heard of Airflow."""
