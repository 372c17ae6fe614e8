"""Passes for models whose tokens may be an image's."""

from __future__ import annotations

from collections.abc import Sequence

from compiler_layer.model import Model
from npuw_layer.errors import ModelError
from npuw_layer.llm.graph.pipeline import Placed
from npuw_layer.llm.graph.settle_inputs import SettleInputs
from npuw_layer.llm.names import TOKEN_TYPES, VISUAL_EMBEDS, VISUAL_MASKS
from npuw_layer.llm.plan.stages import Kind, Stage
from npuw_layer.options import Options
from npuw_layer.traits.images.deepstack import SpreadVisualRows


def passes(model: Model, stage: Stage, options: Options) -> Sequence[Placed]:
    """Return the pass for a model with DeepStack.

    Raises:
        ModelError: prompts would be read in pieces, and tokens of an image attend to later ones.
    """
    del options
    if stage.kind is Kind.PREFILL and stage.past:
        _check_types(model)
    if not {VISUAL_EMBEDS, VISUAL_MASKS} <= {port.name for port in model.inputs}:
        return ()
    spread = SpreadVisualRows(stage.tokens)
    return (Placed(SettleInputs.name, spread, (VISUAL_MASKS,)),)


def _check_types(model: Model) -> None:
    """Check that a prompt may be read in pieces.

    Tokens of an image attend to later ones of it, which would be in another piece; nor do exported
    masks leave room for stored rows. The original refuses it alike (fact sheet npuw §a.2).

    Raises:
        ModelError: the prompt must be read whole.
    """
    if any(port.name == TOKEN_TYPES and port.value.uses for port in model.inputs):
        raise ModelError(
            f"the model attends both ways among tokens of an image ({TOKEN_TYPES}), so prompts are "
            "read whole: set NPUW_LLM_PREFILL_HINT to STATIC, and leave "
            "NPUW_LLM_ENABLE_CONTINUOUS_PREFILL and NPUW_LLM_ENABLE_PREFIX_CACHING out"
        )
