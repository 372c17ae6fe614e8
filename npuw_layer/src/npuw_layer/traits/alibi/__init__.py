"""ALiBi: attention biases by distance, looked up by token index.

The trait only changes graphs (``graph``); it has no part in conversations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from npuw_layer.llm.trait import Trait

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from npuw_layer.llm.graph.graph_pass import Placed
    from npuw_layer.llm.plan.stages import Stage
    from npuw_layer.options import Options


class ALiBi(Trait):
    """Tables of biases by distance."""

    def passes(self, model: Model, stage: Stage, options: Options) -> Sequence[Placed]:
        """Return the passes of ``graph``."""
        # Imported here: a warm start compiles nothing, so it need not import the passes.
        from npuw_layer.traits.alibi.graph import passes

        return passes(model, stage, options)


TRAIT = ALiBi("alibi")
