"""ClearPath's database, revision by revision."""
