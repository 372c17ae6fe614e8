"""The loader: checks a blob, places it in device memory, and relocates it.

read → verify → metadata → place → relocate → kernels, put together by ``hpi``.
"""
