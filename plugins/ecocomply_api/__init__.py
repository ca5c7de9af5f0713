"""EcoComply's job API: metrics, health, and the status of jobs as it changes."""
