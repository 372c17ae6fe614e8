"""Checks for authors of a custom compiler or device: the requirements of npuw."""
