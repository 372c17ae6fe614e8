"""Helpers for tests of the driver, and conformance checks; begin with ``check_engines``."""
