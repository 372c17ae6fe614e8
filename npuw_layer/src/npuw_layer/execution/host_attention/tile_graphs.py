"""The programs of host flash attention, as graphs.

How it works. For a query row, softmax over all positions needs the largest score and the sum of all
weights, which are known only at the end. The values carried from tile to tile are correct for the
positions so far (m: largest score, l: sum of weights, a: weighted sum of values). A tile computes
the same for its own positions, and both are scaled to the larger of the two scores:

    mt = max(s)        p = exp(s - mt)        lt = sum(p)         at = p v
    m' = max(m, mt)    c = exp(m - m')        d = exp(mt - m')
    l' = l c + lt d    a' = a c + at d

After the last tile the result is a / l. All values are f32; only matmuls read q, K, V and p in the
graph's element type, as in the attention of a complete program. All ops on scores, by far the
largest tensor, are fused into one kernel.

If a row attends to nothing in a tile, its scores are about LOWEST, and its p is meaningless. If an
earlier tile had a real score, d is exactly 0; if a later tile has one, this tile's c is 0. As all
numbers are finite, so are the results, even of rows that attend to nothing, such as padding.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.elementwise import Add, Divide, Exp, Maximum, Multiply, Subtract
from compiler_layer.dialects.ov.op import bool_attr
from compiler_layer.dialects.ov.quantize import Dequantize
from compiler_layer.dialects.ov.reduce import ReduceMax, ReduceSum, Reduction
from compiler_layer.dialects.ov.types import element_of, shape_of, tensor
from compiler_layer.model import Model
from npuw_layer.backends.protocols import TensorInfo
from npuw_layer.execution.host_attention.shapes import AttentionShape
from npuw_layer.execution.host_attention.tile_ports import (
    CARRIED,
    KEYS,
    KEYS_SCALES,
    MASK,
    OUTPUT,
    QUERY,
    RESULT,
    VALUES,
    VALUES_SCALES,
    last_inputs,
    tile_inputs,
)


def tile_graph(shape: AttentionShape, rows: int) -> Model:
    """Build the program of a tile of stored rows, [1, rows, heads, width], as a cache holds them.

    Args:
        shape: sizes of the attention.
        rows: rows of a tile.

    Returns:
        A graph of q, rows of K and V, the mask of their positions, and the carried values. Its
        outputs are the new carried values.
    """
    tile = _Graph(shape, rows, tile_inputs(shape, rows))
    keys, values = tile.stored(KEYS, KEYS_SCALES), tile.stored(VALUES, VALUES_SCALES)
    tile.model.set_outputs(list(zip(RESULT, tile.carry_on(keys, values), strict=True)))
    return tile.model


def last_graph(shape: AttentionShape) -> Model:
    """Build the program of the new rows, [1, heads, tokens, width], which completes the attention.

    Args:
        shape: sizes of the attention.

    Returns:
        A graph with inputs like those of ``tile_graph``, and output [1, query heads, tokens,
        width].
    """
    last = _Graph(shape, shape.tokens, last_inputs(shape))
    g, heads = last.g, shape.heads * shape.group
    weights, total, _ = last.carry_on(last.new(KEYS), last.new(VALUES))
    found = g.reshape(g.op(Divide, total, weights), 1, heads, shape.tokens, shape.value_width)
    last.model.set_outputs([(OUTPUT, last.narrowed(found))])
    return last.model


class _Graph:
    """A graph over some rows of K and V.

    Key heads are the batch of a matmul; the query heads of a group are its rows.

    Args:
        shape: sizes of the attention.
        rows: number of rows.
        inputs: inputs of the graph.
    """

    def __init__(self, shape: AttentionShape, rows: int, inputs: Sequence[TensorInfo]) -> None:
        self._shape = shape
        self._rows = rows
        typed = [(info.name, tensor(info.element, info.shape)) for info in inputs]
        self.model, arguments = Model.build(typed)
        self.g = GraphBuilder(self.model)
        self._inputs = {info.name: value for info, value in zip(inputs, arguments, strict=True)}

    def stored(self, name: str, scales: str) -> SSAValue:
        """Return rows of a cache as [heads, rows, width]."""
        g, rows = self.g, self._inputs[name]
        if self._shape.scaled:
            kind = StringAttr(self._shape.element)
            rows = g.op(Dequantize, rows, self._inputs[scales], [], destination_type=kind)
        rows = self.narrowed(rows)
        return self._by_head(g.transpose(rows, 0, 2, 1, 3))

    def new(self, name: str) -> SSAValue:
        """Return new rows as [heads, rows, width]."""
        return self._by_head(self._inputs[name])

    def carry_on(self, keys: SSAValue, values: SSAValue) -> Sequence[SSAValue]:
        """Add the rows to the carried values; return weights, total and highest."""
        g, shape = self.g, self._shape
        weights, total, highest = (self._inputs[name] for name in CARRIED)
        queries = shape.group * shape.tokens
        by_row = (shape.heads, shape.group, shape.tokens)
        query = g.reshape(self._inputs[QUERY], shape.heads, queries, shape.width)
        product = g.matmul(self._wide(query), self._wide(keys), True)
        scaled = g.times(g.reshape(product, *by_row, self._rows), shape.scale)
        scores = g.op(Add, scaled, self._inputs[MASK])
        own = self._reduced(ReduceMax, scores)
        p = self.narrowed(g.op(Exp, g.op(Subtract, scores, own)))
        own_weights = self._reduced(ReduceSum, self._wide(p))
        p = g.reshape(p, shape.heads, queries, self._rows)
        product = g.matmul(self._wide(p), self._wide(values), False)
        own_total = g.reshape(product, *by_row, shape.value_width)

        found = g.op(Maximum, own, highest)
        here, before = (g.op(Exp, g.op(Subtract, m, found)) for m in (own, highest))

        def joined(new: SSAValue, carried: SSAValue) -> SSAValue:
            return g.op(Add, g.op(Multiply, new, here), g.op(Multiply, carried, before))

        return joined(own_weights, weights), joined(own_total, total), found

    def narrowed(self, value: SSAValue) -> SSAValue:
        """Convert a value to the graph's element type."""
        return self._as(value, self._shape.element)

    def _by_head(self, rows: SSAValue) -> SSAValue:
        _, heads, count, width = shape_of(rows)
        return self.g.reshape(rows, heads, count, width)

    def _wide(self, value: SSAValue) -> SSAValue:
        """Convert an operand of a matmul that is summed in f32; the DPU itself widens operands."""
        return self._as(value, "f32")

    def _as(self, value: SSAValue, element: str) -> SSAValue:
        return value if element_of(value) == element else self.g.convert(value, element)

    def _reduced(self, kind: type[Reduction], value: SSAValue) -> SSAValue:
        return self.g.op(kind, value, self.g.ints(-1), keep_dims=bool_attr(True))
