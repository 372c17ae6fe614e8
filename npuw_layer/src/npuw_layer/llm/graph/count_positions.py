"""Query numbers, computed from token indices."""

from __future__ import annotations

from dataclasses import dataclass

from compiler_layer.dialects.ov import elementwise, shape
from compiler_layer.dialects.ov.types import element_of
from compiler_layer.elements import FLOATS
from compiler_layer.model import Model
from npuw_layer.errors import ModelError
from npuw_layer.llm.graph.cache_positions import (
    cache_position,
    from_zero,
    index_chain,
    on_tokens,
)
from npuw_layer.llm.graph.graph_pass import GraphPass
from npuw_layer.llm.graph.symbolic_lengths import STORED, SymbolicLengths
from npuw_layer.tensors.names import POSITIONS


@dataclass(frozen=True)
class CountPositions(GraphPass):
    """Compute floats that depend on a query's number from its token index.

    Before:  %n = ov.Convert(%queries) to f32 ; %queries = ov.Range(%stored, %total)
    After:   %n = ov.Convert(%q) to f32 ; %q = ov.Reshape(%cache_position)

    Examples are the rotary factors of a model without positions (LFM-2), and the temperature by
    which Llama 4 scales distant queries. The exporter derives query numbers from the rows of a
    cache, but a static model always reads all rows. The input ``cache_position`` is added if
    needed.

    Raises:
        ModelError: several conversations would share a query number.
    """

    name = "count-positions"

    tokens: int
    slots: int = 1

    def _rewrite(self, model: Model) -> None:
        takes_positions = any(port.name == POSITIONS for port in model.inputs)
        lengths = SymbolicLengths(model)
        for each in model.ops:
            if not isinstance(each, elementwise.Convert) or element_of(each.output) not in FLOATS:
                continue
            chain = index_chain(each.x)
            rows = chain[-1] if chain else None
            if not isinstance(rows, shape.Range) or from_zero(rows):
                continue
            if not takes_positions or lengths.of(rows.start) == STORED:
                if self.slots > 1:
                    raise ModelError(
                        f"{each.described} has a single position for all conversations"
                    )
                counted = cache_position(model, self.tokens)
                each.operands[0] = on_tokens(model, each, each.x, counted, 0)
