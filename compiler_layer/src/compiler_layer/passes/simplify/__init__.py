"""The ``simplify`` pass; begin with ``rules``, the table of rules by op.

ends             padding and rolling
gather, scatter  reads and writes of elements at constant indices
"""

from compiler_layer.passes.simplify.rules import Simplify, simplify_op

__all__ = ["Simplify", "simplify_op"]
