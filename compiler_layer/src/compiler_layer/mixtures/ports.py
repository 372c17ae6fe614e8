"""The ports of one expert's graph.

Nothing here knows graphs: who runs experts does not load the compiler.
"""

ROWS = "rows"
"""The rows of some tokens, [n, C]."""

WEIGHT = "weight"
"""With what the expert counts for each, [n, 1]."""

OUTPUT = "output"
"""What is to be added for them, [n, H]."""
