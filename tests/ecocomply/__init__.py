"""EcoComply's rules."""
