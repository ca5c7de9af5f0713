"""What every run leaves behind, and what operators are told."""
