"""The compiler's passes, one ``ModulePass`` a file or sub-package; begin with ``pipeline``.

``compiler_layer.pipeline`` has their order. Patterns of one pass are private to its file; helpers
that several passes or other packages use are in ``compiler_layer.rewriting`` and ``partition``.
"""
