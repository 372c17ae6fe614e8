"""Dispatch of native tables: a dispatcher in native code, and the threads that run it.

Begin with ``table`` (the data), then ``team`` (the threads); ``gate`` and ``worker`` are kernels.
"""
