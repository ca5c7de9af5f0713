"""The job API of EcoComply."""
