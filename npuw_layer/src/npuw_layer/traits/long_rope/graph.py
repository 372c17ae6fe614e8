"""Passes for models with two sets of rotary factors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler_layer.dialects.ov.gather import Gather
from compiler_layer.model import Model, Port
from npuw_layer.errors import ModelError
from npuw_layer.llm.graph.graph_pass import GraphPass, Placed
from npuw_layer.llm.graph.rope_cache import CacheRope, cache_rope
from npuw_layer.llm.graph.static_inputs import StaticInputs
from npuw_layer.llm.graph.usual_axes import UsualAxes
from npuw_layer.llm.plan.stages import Stage, rope_rows
from npuw_layer.options import Options
from npuw_layer.traits.long_rope.mark_long_inferences import MarkLongInferences, largest_positions
from npuw_layer.traits.long_rope.names import long_from


def passes(model: Model, stage: Stage, options: Options) -> Sequence[Placed]:
    """Return the passes for a model that depends on its largest position."""
    if not any(True for _ in largest_positions(model)):
        return ()
    return (
        Placed(UsualAxes.name, MarkLongInferences()),
        Placed(CacheRope.name, CacheBothRopes(rope_rows(stage, options))),
        Placed(StaticInputs.name, ShapeLongMark(stage.slots)),
    )


def _reach_of(model: Model) -> Port | None:
    """Return the input that marks long inferences; None if the graph has none."""
    long = long_from(port.name for port in model.inputs)
    return next((port for port in model.inputs if long is not None and port.name == long[0]), None)


@dataclass(frozen=True)
class CacheBothRopes(GraphPass):
    """Look up sines and cosines in two tables, for short and for long inferences.

    Before:  %s = ov.Sin(%a) ; %a depends on %position_ids and %npuw_longrope_4096
    After:   %s = ov.Gather(%tables, ov.Add(%position_ids, ov.Multiply(%npuw_longrope_4096, rows)))

    Requires: ``mark-long-inferences``.
    """

    name = "cache-both-ropes"

    rows: int

    def _rewrite(self, model: Model) -> None:
        switch = _reach_of(model)
        if switch is not None:
            cache_rope(model, self.rows, switch.value)


@dataclass(frozen=True)
class ShapeLongMark(GraphPass):
    """Set the static shape of the input that marks long inferences.

    Before:  %npuw_longrope_4096 : tensor<?x1xi64>
    After:   %npuw_longrope_4096 : tensor<SLOTSx1xi64>

    Raises:
        ModelError: several conversations would share one choice.
    """

    name = "shape-long-mark"

    slots: int = 1

    def _rewrite(self, model: Model) -> None:
        port = _reach_of(model)
        if port is None:
            return
        uses = port.value.uses
        if self.slots > 1 and any(isinstance(use.operation, Gather) for use in uses):
            raise ModelError(
                "for several conversations in one batch LongRoPE needs tables of rotary factors: "
                "leave NPUW_LLM_CACHE_ROPE on, and NPUW_LLM_ON_FULL other than SLIDE, or set "
                "NPUW_LLM_BATCH_SLOTS = 1"
            )
        model.set_input_shapes({port.name: (self.slots, 1)})
