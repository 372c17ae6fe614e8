"""Expert routing on the device: DMA gathers the chosen experts' weights by the router's ids."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.elementwise import Convert, Minimum
from compiler_layer.dialects.ov.gather import Gather
from compiler_layer.dialects.ov.matmul import MatMul
from compiler_layer.dialects.ov.op import bool_attr
from compiler_layer.dialects.ov.quantize import Dequantize
from compiler_layer.dialects.ov.reduce import ReduceSum
from compiler_layer.dialects.ov.shape import Broadcast, Reshape
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.errors import UnsupportedModel
from compiler_layer.model import Model
from compiler_layer.partition.mixtures.expert import TermWriter
from compiler_layer.partition.mixtures.find import find_mixtures
from compiler_layer.partition.mixtures.mixture import Mixture
from compiler_layer.partition.mixtures.rows import of_experts
from compiler_layer.rewriting.dead_code import remove_dead_code
from compiler_layer.rewriting.graph_pass import GraphPass
from compiler_layer.rewriting.match import owner_of


class _Router(TermWriter):
    """Rewriter of a mixture: one expert's rows for each choice.

    Values have a row for each choice, [P, 1, N], where P is T x K.
    """

    def __init__(self, model: Model, mixture: Mixture) -> None:
        self._experts = len(mixture.terms)
        self._g = GraphBuilder(model, owner_of(mixture.output))
        tokens, slots = mixture.tokens, mixture.slots
        self._choices = tokens * slots
        # A router that finds no maximum, e.g. of NaN, returns an id beyond the last expert.
        last = self._g.constant(np.array(self._experts - 1, np.int64))
        ids = mixture.ids
        if element_of(ids) != "i64":
            ids = self._g.convert(ids, "i64")
        self._ids = self._reshape(self._g.op(Minimum, ids, last), self._choices)
        channels = shape_of(mixture.rows)[-1]
        rows = self._reshape(mixture.rows, tokens, 1, channels)
        each = self._g.op(
            Broadcast, rows, self._g.ints(tokens, slots, channels), mode=StringAttr("numpy")
        )
        rows = self._reshape(each, self._choices, 1, channels)
        weights = self._reshape(mixture.weights, self._choices, 1, 1)
        super().__init__(mixture, self._g, rows, weights)

    def run(self) -> None:
        """Replace the sum over experts by a sum over choices."""
        mixture = self._mixture
        each = self._value(next(iter(mixture.terms.values())))
        each = self._reshape(each, mixture.tokens, mixture.slots, shape_of(each)[-1])
        total = self._g.op(ReduceSum, each, self._g.ints(1), keep_dims=bool_attr(False))
        mixture.output.replace_all_uses_with(self._reshape(total, *shape_of(mixture.output)))

    def _weights(self, value: SSAValue, rank: int) -> SSAValue:
        """Return weights that all experts share, or the chosen expert's weights for each choice."""
        if not of_experts(value, rank, self._experts):
            return value
        if rank != len(shape_of(value)) or shape_of(value)[1] == 1:
            raise UnsupportedModel("DEVICE_ROUTED: experts have weights that are not matrices")
        return self._part(value)

    def _part(self, value: SSAValue) -> SSAValue:
        op, shape = owner_of(value), shape_of(value)
        if isinstance(op, Reshape):
            return self._reshape(self._part(op.x), self._choices, *shape[1:])
        if isinstance(op, Constant):
            return self._g.gather(value, self._ids, 0) if shape[0] == self._experts else value
        assert isinstance(op, Convert | Dequantize)
        return self._add(op.clone({x: self._part(x) for x in op.operands}))


def is_of_choices(op: Gather) -> bool:
    """Return whether a gather takes complete expert weights; matmuls gather these while loading."""
    users = [use.operation for use in op.output.uses]
    while users and all(isinstance(user, Convert | Dequantize | Reshape) for user in users):
        users = [use.operation for user in users for use in user.results[0].uses]
    return bool(users) and all(isinstance(user, MatMul) and is_choice(user.b) for user in users)


def is_choice(value: SSAValue) -> bool:
    """Return whether a matrix is gathered by index from a stack of matrices."""
    op = owner_of(value)
    while isinstance(op, Convert | Dequantize | Reshape):
        op = owner_of(op.operands[0])
    if not isinstance(op, Gather) or op.known_axis() != 0 or len(shape_of(op.data)) < 3:
        return False
    return isinstance(owner_of(op.data), Constant) and len(shape_of(op.indices)) == 1


class RouteExperts(GraphPass):
    """Gather the chosen experts' weights on the device, by the router's ids.

    Before:  %y = experts(ov.Broadcast(%x)) * scores ; %sum = ov.ReduceSum(%y, 0)      [E, T, H]
    After:   %w1 = ov.Gather(%w, %ids)                                  [T x K, N, C] of [E, N, C]
             %y = experts(%x for each choice) * %weights ; %sum = ov.ReduceSum(%y, 1)  [T, K, H]

    A matmul that loads a block of an expert's weights gathers it: DMA reads the expert's index at
    run time. So only the weights of the K experts that a token chose are read. The weights must be
    stored expert by expert in one tensor.

    If tokens make at least as many choices as experts exist, all experts are read once, unchanged.

    Requires: the passes of ``pipeline.graph_passes``.

    Raises:
        UnsupportedModel: the experts' weights are not stored in one tensor.
    """

    name = "route-experts"

    def _rewrite(self, model: Model) -> None:
        for mixture in find_mixtures(model):
            if mixture.tokens * mixture.slots >= len(mixture.terms):
                continue
            if not mixture.stacked:
                raise UnsupportedModel(
                    "DEVICE_ROUTED: each expert's weights are a separate tensor, and DMA gathers "
                    "from one tensor; use HOST_ROUTED"
                )
            _Router(model, mixture).run()
        remove_dead_code(model)
