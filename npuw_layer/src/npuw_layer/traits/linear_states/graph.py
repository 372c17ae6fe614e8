"""Passes for models with states of fixed size."""

from __future__ import annotations

from collections.abc import Sequence

from compiler_layer.model import Model
from npuw_layer.llm.graph.graph_pass import Placed
from npuw_layer.llm.graph.window_tables import CompareWindowTables
from npuw_layer.llm.plan.stages import Stage, StageKind
from npuw_layer.options import Options
from npuw_layer.traits.linear_states.names import is_linear_cache
from npuw_layer.traits.linear_states.short_convolution import ContinueConvolutions


def passes(model: Model, stage: Stage, options: Options) -> Sequence[Placed]:
    """Return the pass for a model with short convolutions.

    Raises:
        ModelError: a state does not belong to a short convolution.
    """
    del options
    variables = [each.name for each in model.variables()]
    if not any(map(is_linear_cache, variables)):
        return ()
    generates = stage.kind is StageKind.GENERATE
    return (Placed(CompareWindowTables.name, ContinueConvolutions(stage.tokens, generates)),)
