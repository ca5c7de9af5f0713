"""The record that every run of an EcoComply job has in `background_jobs`, from its opening to its end."""
