"""EcoComply's database, revision by revision."""
