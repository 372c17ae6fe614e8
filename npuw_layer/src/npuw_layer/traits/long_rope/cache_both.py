"""Both sets of rotary angles, looked up by position."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler_layer.model import Model
from npuw_layer.llm.graph.rope_cache import cache_rope
from npuw_layer.llm.names import long_from


@dataclass(frozen=True)
class CacheBothRopes(ModulePass):
    """Look sines and cosines up in two tables, of short and of long inferences.

    Before:  %s = ov.Sin(%a) ; %a depends on %position_ids and %npuw_longrope_4096
    After:   %s = ov.Gather(%tables, ov.Add(%position_ids, ov.Multiply(%npuw_longrope_4096, rows)))

    Requires: ``tell-reach``.
    """

    name = "cache-both-ropes"

    rows: int

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        del ctx
        model = Model(op)
        inputs = {port.name: port.value for port in model.inputs}
        long = long_from(inputs)
        if long is not None:
            cache_rope(model, self.rows, inputs[long[0]])
