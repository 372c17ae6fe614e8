"""For those who bring a runtime of their own: checks, and the smallest example."""
