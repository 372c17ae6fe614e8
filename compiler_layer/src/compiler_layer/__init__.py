"""Compiler of stateful OpenVINO LLM graphs to static NPU blobs: see ``compile`` and ``npuc``.

A model passes from ``frontends`` through ``pipeline``, which lists the ``passes``, to ``schedule``
and ``emit``; ``partition`` cuts it into parts first. ``rewriting`` helps to write passes.
"""

__version__ = "0.1.0"
