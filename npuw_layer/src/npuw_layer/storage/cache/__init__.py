"""What a start keeps for the next: compiled programs, and digests of a model's files."""
