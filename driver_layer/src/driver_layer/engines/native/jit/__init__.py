"""Just-in-time compilation of kernels in LLVM IR for this host, and their cache on disk.

Begin with ``kernels``; ``emitter`` is what kernels are written with.
"""
