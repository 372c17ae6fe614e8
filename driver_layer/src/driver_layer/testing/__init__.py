"""Helpers for tests of the driver, and conformance checks for other implementations.

Begin with ``check_engines``, which any set of engines must pass.
"""
