"""Compiles stateful OpenVINO LLM graphs into static NPU blobs; begin with ``compile`` or ``npuc``.

A model goes from ``frontends`` through ``pipeline``, which lists the ``passes``, to ``schedule``
and ``emit``; ``partition`` cuts it into parts first. ``rewriting`` is for passes of your own.
"""

__version__ = "0.1.0"
