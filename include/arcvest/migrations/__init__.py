"""ArcVest's database, revision by revision."""
