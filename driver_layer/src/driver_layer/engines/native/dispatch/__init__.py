"""Dispatch of native tables: the dispatcher in native code, and its threads.

Begin with ``table`` (the data), then ``team`` (the threads); ``gate`` and ``worker`` are kernels.
"""
