"""Passes for models with images among the tokens."""

from __future__ import annotations

from collections.abc import Sequence

from compiler_layer.dialects.ov.elementwise import Add
from compiler_layer.dialects.ov.types import shape_of
from compiler_layer.model import Model
from npuw_layer.errors import NotCausal
from npuw_layer.llm.graph.check_tokens import CheckTokens, close_row
from npuw_layer.llm.graph.graph_pass import GraphPass, Placed
from npuw_layer.llm.plan.stages import Stage, StageKind
from npuw_layer.options import Options
from npuw_layer.traits.images.deepstack import SpreadVisualRows
from npuw_layer.traits.images.trait import PER_LAYER, TOKEN_TYPES, VISUAL_EMBEDS, VISUAL_MASKS


def passes(model: Model, stage: Stage, options: Options) -> Sequence[Placed]:
    """Return the passes for a model with DeepStack or with embeddings for each layer.

    Raises:
        NotCausal: prompts would be read in chunks, but tokens of an image attend to later ones.
    """
    del options
    if stage.kind is StageKind.PREFILL and stage.past:
        _check_types(model)
    inputs, found = {port.name for port in model.inputs}, list[Placed]()
    if {VISUAL_EMBEDS, VISUAL_MASKS} <= inputs:
        spread = SpreadVisualRows(stage.tokens)
        found.append(Placed(CheckTokens.name, spread, (VISUAL_MASKS,)))
    if PER_LAYER in inputs:
        found.append(Placed(CheckTokens.name, SettleLayers()))
    return found


def _check_types(model: Model) -> None:
    """Check that a prompt may be read in chunks.

    Tokens of an image attend to its later tokens, which would be in another chunk; nor do exported
    masks leave room for stored rows. NPUW rejects such models, too
    (docs/reference/npuw.md#lengths).

    Raises:
        NotCausal: the prompt must be read whole.
    """
    if any(port.name == TOKEN_TYPES and port.value.uses for port in model.inputs):
        raise NotCausal(
            f"tokens of an image attend to later ones ({TOKEN_TYPES}), so prompts must be read "
            "whole; set NPUW_LLM_PREFILL_HINT to STATIC, and leave "
            "NPUW_LLM_ENABLE_CONTINUOUS_PREFILL and NPUW_LLM_ENABLE_PREFIX_CACHING out"
        )


class SettleLayers(GraphPass):
    """Fix the number of layers that have separate embeddings.

    Before:  %per_layer_inputs : tensor<?x?x?x8xf32> ; ov.Add(%per_layer_inputs, %h : ?x?x30x8)
    After:   %per_layer_inputs : tensor<?x?x30x8xf32>

    The model adds the embeddings to a projection with as many layers.

    Source: NPUW's ReshapeToStatic, which finds the number in the same way.
    """

    name = "settle-layers"

    def _rewrite(self, model: Model) -> None:
        value = model.find_input(PER_LAYER)
        assert value is not None  # otherwise the pass is not in the pipeline
        sums = [use.operation for use in value.uses if isinstance(use.operation, Add)]
        for like in [shape_of(op.b if op.a is value else op.a) for op in sums]:
            close_row(model, PER_LAYER, like)
