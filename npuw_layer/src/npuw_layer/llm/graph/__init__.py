"""Graph preparation: passes that turn the stateful model into the static graph of a stage.

Begin with ``pipeline``, the list; each pass is a file, and its docstring shows the IR before and
after. ``npuw passes`` and ``npuw graph`` print both.
"""
