"""Choice of the element type of every tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from compiler_layer.dialects.ov.attention import RoPE, ScaledDotProductAttention
from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.elementwise import Convert
from compiler_layer.dialects.ov.gather import Gather
from compiler_layer.dialects.ov.interpolate import Interpolate
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.paged_attention import PagedAttentionExtension
from compiler_layer.dialects.ov.quantize import Dequantize, FakeConvert, FakeQuantize
from compiler_layer.dialects.ov.shape import Reshape
from compiler_layer.dialects.ov.state import KEPT, Assign, ReadValue
from compiler_layer.dialects.ov.types import element_of, shape_of, tensor
from compiler_layer.elements import RAW_FLOATS
from compiler_layer.errors import CompilerUsageError
from compiler_layer.model import Model
from compiler_layer.passes.simplify.rules import simplify_op
from compiler_layer.rewriting.constants import retyped
from compiler_layer.rewriting.dead_code import remove_dead_code
from compiler_layer.rewriting.graph_pass import GraphPass

PRECISIONS = ("f32", "f16", "bf16")
"""Values of INFERENCE_PRECISION_HINT."""

_TAKES_MIXED = (
    *(RoPE, ScaledDotProductAttention, PagedAttentionExtension),
    *(FakeConvert, FakeQuantize, Interpolate),
)
"""Ops whose float operands may differ in type; in one of them, scales are sizes."""


_ACTIVATIONS = frozenset({"f32", "f16", *RAW_FLOATS})
"""Types of inputs that may be activations; those of fewer bits than f32 are rounded already."""


class _Adjuster:
    """Conversion of one model from f32 to a narrower type."""

    def __init__(self, model: Model, precision: str) -> None:
        self._model = model
        self._precision = precision
        self._exact: set[SSAValue] = set()
        self._narrowed: dict[SSAValue, SSAValue] = {}

    def run(self) -> None:
        declared = [element_of(port.value) for port in self._model.outputs]
        ops = [
            op for op in self._model.ops if isinstance(op, OvOp) and not isinstance(op, Constant)
        ]
        self._find_exact(ops)
        for op in ops:
            self._adjust(op)
        self._keep_outputs(declared)
        for op in self._model.ops:
            if isinstance(op, Convert):
                simplify_op(op)
        remove_dead_code(self._model)
        self._model.refresh_signature()

    def _find_exact(self, ops: Sequence[OvOp]) -> None:
        """Find values that depend on integers and constants alone: positions, rotary tables, masks.

        Weights combined with these values are exact, too: a rotary angle is a frequency times a
        position, so an error of the frequency grows with the position.
        """
        self._exact.update(
            port.value for port in self._model.inputs if element_of(port.value) not in _ACTIVATIONS
        )
        weights = set[SSAValue]()
        for op in ops:
            inputs = {x for x in op.operands if not isinstance(x.owner, Constant)}
            others = inputs - weights
            if isinstance(op, Convert | Dequantize | Reshape) and not others:
                weights.update(op.results)
            elif self._may_be_exact(op) and others <= self._exact and (others or not inputs):
                self._exact.update(op.results)
        for op in reversed(ops):
            if weights.issuperset(op.results) and self._is_used_exactly(op):
                self._exact.update(op.results)

    def _may_be_exact(self, op: OvOp) -> bool:
        looks_up = isinstance(op, Gather) and element_of(op.data) in ("f32", self._precision)
        return not isinstance(op, ReadValue) and not looks_up

    def _is_used_exactly(self, op: OvOp) -> bool:
        users = [use.operation for result in op.results for use in result.uses]
        return any(result in self._exact for user in users for result in user.results)

    def _adjust(self, op: OvOp) -> None:
        if self._exact.issuperset(op.results):
            return
        if isinstance(op, ReadValue | Assign) and KEPT in op.attributes:
            self._widen_assigned(op)
            return
        if isinstance(op, Convert | Dequantize) and op.destination_type.data == "f32":
            op.properties["destination_type"] = StringAttr(self._precision)
        if isinstance(op, ReadValue):
            element = element_of(op.output)
            narrow = self._precision if element == "f32" else element
            kind = tensor(narrow, shape_of(op.output))
            Rewriter.replace_value_with_new_type(op.output, kind)
        for index, operand in enumerate(op.operands):
            op.operands[index] = self._operand(op, operand)
        op.refresh_types()

    def _widen_assigned(self, op: ReadValue | Assign) -> None:
        if isinstance(op, Assign) and element_of(op.value) == self._precision:
            op.operands[0] = self._converted(op.value, "f32")
            op.refresh_types()

    def _operand(self, op: OvOp, operand: SSAValue) -> SSAValue:
        if element_of(operand) != "f32" or isinstance(op, _TAKES_MIXED):
            return operand
        if operand not in self._narrowed:
            self._narrowed[operand] = self._narrow(operand)
        return self._narrowed[operand]

    def _narrow(self, value: SSAValue) -> SSAValue:
        if isinstance(value.owner, Constant):
            return self._place(value, retyped(value.owner, self._precision))
        return self._converted(value, self._precision)

    def _converted(self, value: SSAValue, element: str) -> SSAValue:
        return self._place(value, Convert.make([value], destination_type=StringAttr(element)))

    def _place(self, value: SSAValue, op: OvOp) -> SSAValue:
        owner = value.owner
        at = (
            InsertPoint.after(owner)
            if isinstance(owner, Operation)
            else InsertPoint.at_start(self._model.body)
        )
        Rewriter.insert_op(op, at)
        return op.results[0]

    def _keep_outputs(self, declared: Sequence[str]) -> None:
        """Convert results to the model's declared types, by which callers allocate buffers."""
        outputs: list[tuple[str, SSAValue]] = []
        for port, kind in zip(self._model.outputs, declared, strict=True):
            value = port.value
            if element_of(value) != kind:
                kept = Convert.make([value], destination_type=StringAttr(kind))
                self._model.body.insert_op_before(kept, self._model.terminator)
                value = kept.output
            outputs.append((port.name, value))
        self._model.set_outputs(outputs)


@dataclass(frozen=True)
class AdjustPrecision(GraphPass):
    """Choose the element type of every tensor.

    Before:  %w = ov.Convert(%stored : tensor<256x256xf16>) : …xf32 ; %y = ov.MatMul(%x, %w) : …xf32
    After:   %y = ov.MatMul(%x, %stored) : …xf16                            (with precision "f16")

    Values that depend only on integers and constants (positions, rotary tables, masks) stay f32. So
    do the model's results, and variables with ``keep_type``. Weights keep their stored type, except
    weights that are combined with positions, e.g. 8-bit rotary frequencies: these are widened to
    f32.

    Args:
        precision: f32 (nothing changes), f16 or bf16.
    """

    name = "adjust-precision"
    precision: str = "f16"

    def _rewrite(self, model: Model) -> None:
        if self.precision not in PRECISIONS:
            known = ", ".join(PRECISIONS)
            raise CompilerUsageError(f"precision {self.precision!r}: expected one of {known}")
        if self.precision != "f32":
            _Adjuster(model, self.precision).run()
