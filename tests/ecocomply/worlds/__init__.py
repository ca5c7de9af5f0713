"""What each job of EcoComply has to work on: two rows at least that it changes, and one that it leaves."""
