"""Graph preparation: passes that make the static graph of a stage from the stateful model.

Begin with ``pipeline``, the list; each pass is a file, and its docstring shows the IR before and
after. ``npuw passes`` and ``npuw graph`` print both.
"""
