"""The compiler's passes, one ``ModulePass`` per file or sub-package; begin with ``pipeline``.

``compiler_layer.pipeline`` sets their order. Patterns of one pass are private to its file; helpers
of several passes or packages are in ``compiler_layer.rewriting`` and ``partition``.
"""
