"""Computation of f64 ops in f32."""

from __future__ import annotations

from functools import partial

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue, Use
from xdsl.rewriter import InsertPoint, Rewriter

from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.elementwise import Convert
from compiler_layer.dialects.ov.op import NAME_ATTRIBUTE, OvOp
from compiler_layer.dialects.ov.types import element_of
from compiler_layer.elements import convert_values
from compiler_layer.model import Model, Port
from compiler_layer.rewriting.graph_pass import GraphPass
from compiler_layer.rewriting.replace import replace

_WIDE, _NARROW = "f64", "f32"
_SAYS_TYPE = ("destination_type", "output_type")
"""Properties of ops that set their result's type."""


def _narrow_constant(constant: Constant) -> Constant:
    values = convert_values(constant.load(), _WIDE, _NARROW)
    return Constant.inline(values, _NARROW)


def _narrow(op: OvOp) -> None:
    if isinstance(op, Constant):
        if element_of(op.output) == _WIDE:
            replace(op, op.each(_narrow_constant))
        return
    for name in _SAYS_TYPE:
        if op.properties.get(name) == StringAttr(_WIDE):
            op.properties[name] = StringAttr(_NARROW)
    op.refresh_types()


def _is_other(op: Operation, use: Use) -> bool:
    return use.operation is not op


def _conversion(port: Port, element: str) -> Convert:
    """Convert a port's value; an error about the conversion names the port."""
    made = Convert.make([port.value], destination_type=StringAttr(element))
    made.attributes[NAME_ATTRIBUTE] = StringAttr(port.name)
    return made


def _ports_stay(model: Model) -> None:
    """Keep the declared types of inputs and outputs."""
    for port in model.inputs:
        if element_of(port.value) == _WIDE:
            inner = _conversion(port, _NARROW)
            Rewriter.insert_op(inner, InsertPoint.at_start(model.body))
            port.value.replace_uses_with_if(inner.output, partial(_is_other, inner))
    outputs: list[tuple[str, SSAValue]] = []
    for port in model.outputs:
        value = port.value
        if element_of(value) == _WIDE:
            outer = _conversion(port, _WIDE)
            model.body.insert_op_before(outer, model.terminator)
            value = outer.output
        outputs.append((port.name, value))
    model.set_outputs(outputs)


class NarrowDoubles(GraphPass):
    """Compute f64 ops in f32, as OpenVINO's plugins do: no hardware has f64.

    Before:  %a = ov.Convert(%x : …xi64) {destination_type = "f64"} ; %y = ov.Sin(%a) : …xf64
    After:   %a = ov.Convert(%x : …xi64) {destination_type = "f32"} ; %y = ov.Sin(%a) : …xf32

    Values of constants alone have been folded in f64 before.
    """

    name = "narrow-doubles"

    def _rewrite(self, model: Model) -> None:
        ops = [each for each in model.body.ops if isinstance(each, OvOp)]
        if not any(element_of(x) == _WIDE for each in ops for x in each.results):
            return
        # ``ops`` excludes the conversions that ``_ports_stay`` inserts.
        _ports_stay(model)
        for each in ops:
            _narrow(each)
        model.refresh_signature()
