"""Dead code elimination: removal of ops without used results."""

from __future__ import annotations

from xdsl.traits import IsTerminator

from compiler_layer.dialects.ov.state import Assign
from compiler_layer.model import Model


def remove_dead_code(model: Model) -> None:
    """Erase unused ops, last first; assignments and the return stay."""
    for op in reversed(model.ops):
        used = any(result.first_use is not None for result in op.results)
        if not used and not isinstance(op, Assign) and not op.has_trait(IsTerminator):
            op.detach()
            op.erase()
