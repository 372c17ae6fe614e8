"""The static shape of the input that tells of long inferences."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler_layer.dialects.ov.gather import Gather
from compiler_layer.model import Model
from npuw_layer.errors import ModelError
from npuw_layer.llm.names import long_from


@dataclass(frozen=True)
class ShapeReach(ModulePass):
    """Give the input that tells of long inferences its static shape.

    Before:  %npuw_longrope_4096 : tensor<?x1xi64>
    After:   %npuw_longrope_4096 : tensor<SLOTSx1xi64>

    Raises:
        ModelError: there are several conversations, and one decides for all.
    """

    name = "shape-reach"

    slots: int = 1

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        del ctx
        model = Model(op)
        inputs = {port.name: port.value for port in model.inputs}
        long = long_from(inputs)
        if long is None:
            return
        uses = inputs[long[0]].uses
        if self.slots > 1 and any(isinstance(use.operation, Gather) for use in uses):
            raise ModelError(
                "for several conversations at once: each chooses its factors of LongRoPE, which "
                "takes tables of angles: leave NPUW_LLM_CACHE_ROPE on, and NPUW_LLM_ON_FULL other "
                "than SLIDE, or set NPUW_LLM_BATCH_SLOTS = 1"
            )
        model.set_input_shapes({long[0]: (self.slots, 1)})
