"""Kernels of transfers: copies, fills and gathers. Begin with ``kernels``."""
