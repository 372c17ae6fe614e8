"""Search for the weights of a model, by their uses instead of their names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.gather import Gather
from compiler_layer.dialects.ov.matmul import MatMul
from compiler_layer.dialects.ov.op import OvOp, int_value
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.elements import FLOATS
from compiler_layer.model import Model
from compiler_layer.rewriting.match import stored_constant

Role = Literal["linear", "embedding", "head"]


@dataclass(slots=True)
class Weight:
    """Matrix of floats that a matmul or a look-up reads, as a constant of the model."""

    constant: Constant
    summed: int
    """Dimension that a matmul sums over, 0 or 1; of an embedding table the last one."""
    role: Role
    """``head``: its matmul is the last one before an output."""
    values: list[SSAValue] = field(default_factory=list[SSAValue])
    """Matrix in the form that ops read: the constant, or conversions of it."""

    @property
    def name(self) -> str:
        """Friendly name of the value that ops read, as in checkpoints."""
        names = (v.owner.friendly_name for v in self.values if isinstance(v.owner, OvOp))
        return next(filter(None, names), self.constant.friendly_name).removesuffix("_compressed")


def find_weights(model: Model) -> list[Weight]:
    """Return the weights in the order of their first use, without repeats."""
    heads = _head_products(model)
    found: dict[tuple[Attribute, Attribute], Weight] = {}
    for op in model.body.ops:
        for value, summed, role in _matrices(op, op in heads):
            constant = stored_constant(value)
            if constant is None or not _is_matrix_of_floats(constant):
                continue
            key = (constant.value, constant.output.type)
            weight = found.setdefault(key, Weight(constant, summed, role))
            if value not in weight.values:
                weight.values.append(value)
    return list(found.values())


def _is_matrix_of_floats(constant: Constant) -> bool:
    return len(shape_of(constant.output)) == 2 and element_of(constant.output) in FLOATS


def _matrices(op: Operation, is_head: bool) -> Iterator[tuple[SSAValue, int, Role]]:
    """Yield the operands of an op that may be weights, and the dimension that is summed over."""
    role = "head" if is_head else "linear"
    if isinstance(op, MatMul):
        yield op.a, 0 if int_value(op.transpose_a) else 1, role
        yield op.b, 1 if int_value(op.transpose_b) else 0, role
    elif isinstance(op, Gather):
        yield op.data, 1, "embedding"


def _head_products(model: Model) -> set[Operation]:
    """Return the matmuls with weights that reach an output without another such matmul."""
    heads: set[Operation] = set()
    seen: set[Operation] = set()
    pending = [port.value for port in model.outputs]
    while pending:
        value = pending.pop()
        op = value.owner if isinstance(value, OpResult) else None
        if op is None or op in seen:
            continue
        seen.add(op)
        matrices = map(stored_constant, op.operands) if isinstance(op, MatMul) else ()
        if any(constant is not None and _is_matrix_of_floats(constant) for constant in matrices):
            heads.add(op)
        else:
            pending.extend(op.operands)
    return heads
