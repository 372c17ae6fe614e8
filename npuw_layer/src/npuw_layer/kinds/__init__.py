"""Kinds of models, one folder each: record ``kind.KIND``, options, compiled model and request.

Begin with ``registry``, then ``llm.kind`` and ``static.kind``, on which the other kinds are built.
Removing a folder removes a kind.
"""

# Import options first: creating them imports the records of all kinds.
import npuw_layer.options  # noqa: F401  # pyright: ignore[reportUnusedImport]
