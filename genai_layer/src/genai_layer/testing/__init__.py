"""Checks for other runtimes, and the smallest example of a runtime."""
