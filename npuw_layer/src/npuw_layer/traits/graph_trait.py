"""Base of traits that change graphs."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from npuw_layer.llm.trait import Trait

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from npuw_layer.llm.graph.graph_pass import Placed
    from npuw_layer.llm.plan.stages import Stage
    from npuw_layer.options import Options


class GraphTrait(Trait):
    """A trait whose folder has a module ``graph``, with a function ``passes``."""

    def passes(self, model: Model, stage: Stage, options: Options) -> Sequence[Placed]:
        """Return the passes of ``graph``."""
        # Imported here: a warm start compiles nothing, so it need not import the passes.
        graph = import_module(f"npuw_layer.traits.{self.name}.graph")
        return graph.passes(model, stage, options)
