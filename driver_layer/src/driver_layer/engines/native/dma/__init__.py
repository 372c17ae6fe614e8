"""Kernels of transfers."""
