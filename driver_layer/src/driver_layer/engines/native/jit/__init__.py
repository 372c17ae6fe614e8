"""Just-in-time compilation of kernels in LLVM IR for this host, and their cache on disk.

Begin with ``kernels``; ``emitter`` is the builder that kernels are written with.
"""
