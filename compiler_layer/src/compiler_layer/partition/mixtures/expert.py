"""Graph of one expert of a mixture."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial

from xdsl.ir import Operation, SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.constant import constant_of
from compiler_layer.dialects.ov.elementwise import Convert
from compiler_layer.dialects.ov.matmul import MatMul
from compiler_layer.dialects.ov.op import NAME_ATTRIBUTE, OvOp, bool_attr
from compiler_layer.dialects.ov.quantize import Dequantize
from compiler_layer.dialects.ov.shape import Broadcast, Reshape
from compiler_layer.dialects.ov.types import element_of, shape_of, tensor
from compiler_layer.model import Model
from compiler_layer.partition.compiled import OUTPUT, ROWS, WEIGHT
from compiler_layer.partition.mixtures.mixture import Mixture
from compiler_layer.partition.mixtures.rows import expert_part, is_weight, of_experts
from compiler_layer.rewriting.match import RESHAPES, owner_of


def expert_model(mixture: Mixture, expert: int, count: int) -> Model:
    """Build the graph of one expert, from ROWS and WEIGHT to OUTPUT.

    Args:
        mixture: not changed.
        expert: the expert's number.
        count: n, the number of rows of an inference.
    """
    return _Writer(mixture, expert, count).write()


class TermWriter(ABC):
    """Writer of the values of a mixture's term, for other rows and other weights.

    Args:
        mixture: not changed.
        g: the graph that receives the ops.
        rows: counterpart of the term's rows.
        weight: counterpart of its columns.
    """

    def __init__(self, mixture: Mixture, g: GraphBuilder, rows: SSAValue, weight: SSAValue) -> None:
        self._mixture, self._g = mixture, g
        self._rows, self._weight = rows, weight
        self._made: dict[SSAValue, SSAValue] = {}

    def _value(self, value: SSAValue) -> SSAValue:
        """Return the counterpart of a value."""
        if value not in self._made:
            self._made[value] = self._write(value)
        return self._made[value]

    def _write(self, value: SSAValue) -> SSAValue:
        mixture, op = self._mixture, owner_of(value)
        if value in mixture.columns:
            return self._weight
        if value is mixture.rows or op not in mixture.ops or isinstance(op, Broadcast):
            return self._rows
        if isinstance(op, RESHAPES):
            return self._value(op.x)
        assert isinstance(op, OvOp)  # RowWalk visits no other ops
        rank = 3 if isinstance(op, MatMul) else len(shape_of(value))
        operands = {
            x: (self._weights(x, rank) if is_weight(x) else self._value(x)) for x in op.operands
        }
        return self._add(op.clone(operands))

    @abstractmethod
    def _weights(self, value: SSAValue, rank: int) -> SSAValue:
        """Return the counterpart of weights; ``rank`` is that of stacked ones."""
        ...

    def _reshape(self, value: SSAValue, *dims: int) -> SSAValue:
        flag = bool_attr(False)
        return self._g.op(Reshape, value, self._g.ints(*dims), special_zero=flag)

    def _add(self, op: Operation) -> SSAValue:
        assert isinstance(op, OvOp)
        op.attributes.pop(NAME_ATTRIBUTE, None)
        self._g.add(op)
        op.refresh_types()
        return op.results[0]


class _Writer(TermWriter):
    """Writer of one expert's graph; arguments as in ``expert_model``."""

    def __init__(self, mixture: Mixture, expert: int, count: int) -> None:
        self._expert = expert
        rows, weights = mixture.rows, mixture.weights
        ports = (
            (ROWS, tensor(element_of(rows), (count, shape_of(rows)[-1]))),
            (WEIGHT, tensor(element_of(weights), (count, 1))),
        )
        self._model, arguments = Model.build(ports)
        super().__init__(mixture, GraphBuilder(self._model), *arguments)

    def write(self) -> Model:
        """Return the graph."""
        term = self._mixture.terms[self._expert]
        self._model.set_outputs([(OUTPUT, self._value(term))])
        return self._model

    def _weights(self, value: SSAValue, rank: int) -> SSAValue:
        """Return this expert's weights: a matrix, or values for all rows, [1, N].

        Args:
            value: weights of all experts, if they are stacked.
            rank: the rank of stacked weights.
        """
        if value not in self._made:
            cut = of_experts(value, rank, len(self._mixture.terms) if self._mixture.stacked else 0)
            made = self._part(value) if cut else self._copy(value)
            shape = shape_of(made)
            self._made[value] = self._reshape(made, *shape[-2:]) if len(shape) > 2 else made
        return self._made[value]

    def _copy(self, value: SSAValue) -> SSAValue:
        """Copy weights that are not stacked."""
        op = owner_of(value)
        assert op is not None
        return self._add(op.clone({x: self._copy(x) for x in op.operands}))

    def _part(self, value: SSAValue) -> SSAValue:
        """Return this expert's part of stacked weights."""
        op, rank = owner_of(value), len(shape_of(value))
        if isinstance(op, Reshape):
            return self._reshape(self._part(op.x), *shape_of(value)[1:])
        if isinstance(op, Convert):
            return self._add(op.clone({op.x: self._part(op.x)}))
        tables = [constant_of(x) for x in (op.operands if isinstance(op, Dequantize) else [value])]
        part = partial(expert_part, index=self._expert, rank=rank)
        parts = [self._add(table.each(part)) for table in tables if table is not None]
        if not isinstance(op, Dequantize):
            return parts[0]
        return self._add(op.clone(dict(zip(op.operands, parts, strict=True))))
