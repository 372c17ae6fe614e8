"""Compiles stateful OpenVINO LLM graphs into static NPU blobs.

Used by subpackage and by ``compiler_layer.compile``; the command line is ``npuc``.
"""

__version__ = "0.1.0"
