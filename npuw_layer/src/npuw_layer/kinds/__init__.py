"""Kinds of models, one folder each: its record ``kind.KIND``, its options, and what it runs on.

Begin with ``registry``, then ``llm.kind`` and ``static.kind``, on which the other kinds are built.
Removing a folder removes a kind.
"""

# Options come first: making them makes the records of all kinds.
import npuw_layer.options  # noqa: F401  # pyright: ignore[reportUnusedImport]
