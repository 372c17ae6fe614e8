"""Search for ops to isolate as submodels: by their type, or by a pattern."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from xdsl.ir import Operation, OpResult

from compiler_layer.dialects.ov.attention import RMS, RoPE, ScaledDotProductAttention
from compiler_layer.dialects.ov.elementwise import Convert
from compiler_layer.dialects.ov.matmul import MatMul
from compiler_layer.dialects.ov.quantize import Dequantize
from compiler_layer.dialects.ov.shape import Reshape, Transpose
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.model import Model
from compiler_layer.partition.parts import PartOps
from compiler_layer.partition.repeated.find import find_repetitions
from compiler_layer.rewriting.dataflow import visiting_order
from compiler_layer.rewriting.match import producer

_log = logging.getLogger(__name__)


def _compressed_weight(op: Operation) -> Dequantize | None:
    """Return the decompression of a matmul's weight; None if the op has none."""
    if not isinstance(op, MatMul):
        return None
    for value in (op.b, op.a):
        while isinstance(value, OpResult) and isinstance(value.op, Reshape | Convert | Transpose):
            value = value.op.operands[0]
        if found := producer(value, Dequantize):
            return found
    return None


def _is_product_of(element: str, grouped: bool, op: Operation) -> bool:
    """Return whether an op is a matmul with a weight of one compression.

    Args:
        element: stored element type.
        grouped: whether each row of the weight has several scales.
        op: any op.
    """
    weight = _compressed_weight(op)
    if weight is None or element_of(weight.stored) != element:
        return False
    return (len(shape_of(weight.stored)) > 2) == grouped


_PATTERNS: dict[str, Callable[[Operation], bool]] = {
    "SDPA": lambda op: isinstance(op, ScaledDotProductAttention),
    "RMSNorm": lambda op: isinstance(op, RMS),
    "RMSNorm2": lambda op: isinstance(op, RMS),
    "RoPE": lambda op: isinstance(op, RoPE),
    "DQMatMul": lambda op: _compressed_weight(op) is not None,
    "DQMatMulGQu4": partial(_is_product_of, "u4", True),
    "DQMatMulGQi4": partial(_is_product_of, "i4", True),
    "DQMatMulCWu4": partial(_is_product_of, "u4", False),
    "DQMatMulCWi4": partial(_is_product_of, "i4", False),
}
"""Patterns, by the names in ``options.partition.PATTERNS``."""


def chosen(model: Model, kind: str, name: str) -> Iterator[Operation]:
    """Yield the ops of a type ("Op") or of a pattern ("P")."""
    pattern = _PATTERNS.get(name) if kind == "P" else None
    for op in model.body.ops:
        if pattern(op) if pattern is not None else op.name == f"ov.{name}":
            yield op


def single_ops(model: Model, tag: str, choices: Sequence[tuple[str, str]]) -> list[PartOps]:
    """Return a group for each chosen op.

    Args:
        model: lowered.
        tag: tag of the groups.
        choices: kind and name of each choice.
    """
    found = [op for kind, name in choices for op in chosen(model, kind, name)]
    if not found:
        names = ", ".join(f"{kind}:{name}" for kind, name in choices)
        _log.info("%s: a static model has no %s", tag, names)  # e.g. an LM head has no attention
    return [PartOps(tag, frozenset([op])) for op in dict.fromkeys(found)]


def layers(model: Model, tag: str, least_times: int, least_ops: int) -> list[PartOps]:
    """Return a group for each repetition of the model's repeated block.

    Args:
        model: lowered.
        tag: tag of the groups.
        least_times: minimum repetitions of the block.
        least_ops: minimum ops of the block; below either minimum, no groups.
    """
    order = visiting_order(model)
    found = find_repetitions(order)
    if found is None or found.count < least_times or found.first.length < least_ops:
        return []
    stretches = (found.span(number) for number in range(found.count))
    return [PartOps(tag, frozenset(order[s.begin : s.begin + s.length])) for s in stretches]
