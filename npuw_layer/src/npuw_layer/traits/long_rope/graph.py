"""Passes for models with two sets of rotary factors."""

from __future__ import annotations

from collections.abc import Sequence

from compiler_layer.model import Model
from npuw_layer.llm.graph.pipeline import Placed
from npuw_layer.llm.graph.rope_cache import CacheRope
from npuw_layer.llm.graph.static_inputs import StaticInputs
from npuw_layer.llm.graph.usual_axes import UsualAxes
from npuw_layer.llm.plan.stages import Stage, rope_rows
from npuw_layer.options import Options
from npuw_layer.traits.long_rope.cache_both import CacheBothRopes
from npuw_layer.traits.long_rope.shape_reach import ShapeReach
from npuw_layer.traits.long_rope.tell_reach import TellReach, largest_positions


def passes(model: Model, stage: Stage, options: Options) -> Sequence[Placed]:
    """Return the passes for a model that computes with its largest position."""
    if not any(True for _ in largest_positions(model)):
        return ()
    return (
        Placed(UsualAxes.name, TellReach()),
        Placed(CacheRope.name, CacheBothRopes(rope_rows(stage, options))),
        Placed(StaticInputs.name, ShapeReach(stage.slots)),
    )
