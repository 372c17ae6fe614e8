"""The compiler's passes, one ``ModulePass`` per file or sub-package.

Begin with ``compiler_layer.pipeline``, which sets their order. Patterns of one pass are private to
its file; helpers of several passes or packages are in ``compiler_layer.rewriting`` and
``partition``.
"""
