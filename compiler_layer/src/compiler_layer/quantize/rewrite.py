"""Insertion of quantized weights into a graph, with the ops that dequantize them.

The ops are the exporter's, which OpenVINO and our passes support: Constant → Convert f16
[→ Subtract the zero point] → Multiply by the scale [→ Reshape of groups] → Convert f32.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from xdsl.ir import Operation, SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import elementwise, shape
from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.op import bool_attr
from compiler_layer.dialects.ov.types import Shape, element_of, shape_of
from compiler_layer.errors import CompilerUsageError
from compiler_layer.files import FileView
from compiler_layer.model import Model
from compiler_layer.quantize.report import Errors, LayerReport
from compiler_layer.quantize.schemes import Format, Scheme, scheme_of
from compiler_layer.quantize.tensors import Blocking, StoredWeight, TensorFile, measure, store
from compiler_layer.quantize.weights import Weight, find_weights
from compiler_layer.rewriting.match import stored_constant

Advance = Callable[[int], object]


def measure_weights(model: Model, requested: Format, advance: Advance) -> list[LayerReport]:
    """Measure the errors of quantizing a model's weights; the model is not changed.

    Args:
        model: read only.
        requested: the requested format; some weights need another, as their reports state.
        advance: called repeatedly with the number of parameters done.

    Returns:
        A report for each weight, in the order of their first use.

    Raises:
        CompilerUsageError: the model has no weights to quantize.
        BadModel: a weight is not finite, too large, or cannot be read; the message names it.
    """
    reports: list[LayerReport] = []
    for weight in _weights_of(model):
        scheme = scheme_of(weight, requested)
        reports.append(_report(weight, scheme, measure(weight, scheme, advance)))
    return reports


def quantize_weights(
    model: Model, requested: Format, file: TensorFile, advance: Advance
) -> list[LayerReport]:
    """Quantize the weights of a model, in place.

    Args:
        model: its weights become views of the file, with ops that dequantize them.
        requested: the requested format; some weights need another, as their reports state.
        file: the file for the new constants' values.
        advance: called repeatedly with the number of parameters done.

    Returns:
        A report for each weight, in the order of their first use.

    Raises:
        CompilerUsageError: the model has no weights to quantize, or the file cannot be written.
        BadModel: a weight is not finite, too large, or cannot be read; the message names it.
    """
    places: dict[Operation, int] = {op: index for index, op in enumerate(model.body.ops)}
    reports: list[LayerReport] = []
    for weight in _weights_of(model):
        scheme = scheme_of(weight, requested)
        stored, errors = store(weight, scheme, file, advance)
        reports.append(_report(weight, scheme, errors))
        _replace(weight, stored, _before(model, weight, places))
    return reports


def quantize_shapes(
    model: Model, requested: Format, place: Callable[[str, Shape], FileView]
) -> list[tuple[Weight, Scheme]]:
    """Set the types and shapes of a model's weights to quantized ones, without reading values.

    Args:
        model: its weights become views created by ``place``, which are never read.
        requested: the requested format.
        place: returns a view for a shape of elements of a type.

    Returns:
        Each weight with its scheme.

    Raises:
        CompilerUsageError: the model has no weights to quantize.
    """
    places: dict[Operation, int] = {op: index for index, op in enumerate(model.body.ops)}
    schemes: list[tuple[Weight, Scheme]] = []
    for weight in _weights_of(model):
        scheme = scheme_of(weight, requested)
        cut = Blocking.of(shape_of(weight.constant.output), weight.summed, scheme)
        zeros = place(scheme.element, cut.scale_shape) if scheme.element.startswith("u") else None
        values, scale = place(scheme.element, cut.shape), place("f16", cut.scale_shape)
        _replace(weight, StoredWeight(cut, values, scale, zeros), _before(model, weight, places))
        schemes.append((weight, scheme))
    return schemes


def parameters(model: Model) -> int:
    """Return the number of parameters of a model's weights, the total of ``advance``."""
    return sum(math.prod(shape_of(weight.constant.output)) for weight in find_weights(model))


def _before(model: Model, weight: Weight, places: dict[Operation, int]) -> GraphBuilder:
    """Return a builder at the first of a weight's constants, before all ops that use it."""
    constants = filter(None, map(stored_constant, weight.values))
    return GraphBuilder(model, before=min(constants, key=lambda constant: places[constant]))


def _weights_of(model: Model) -> list[Weight]:
    weights = find_weights(model)
    if not weights:
        raise CompilerUsageError("no float weights to quantize; the model may be quantized already")
    return weights


def _report(weight: Weight, scheme: Scheme, errors: Errors) -> LayerReport:
    return LayerReport.of(weight.name, shape_of(weight.constant.output), scheme, errors)


def _replace(weight: Weight, stored: StoredWeight, g: GraphBuilder) -> None:
    """Replace the weight in the ops that read it by its dequantized values."""
    name = weight.name
    found = _scaled(stored, g, name)
    dims = shape_of(weight.constant.output)
    if stored.blocking.shape != dims:
        pattern = g.ints(*dims)
        found = g.op(shape.Reshape, found, pattern, special_zero=bool_attr(False))
    floats: dict[str, SSAValue] = {"f16": found}
    for value in weight.values:
        element = element_of(value)
        if element not in floats:
            floats[element] = g.convert(found, element, name and f"{name}/convert")
        value.replace_all_uses_with(floats[element])
        _erase_unused(value)


def _scaled(stored: StoredWeight, g: GraphBuilder, name: str) -> SSAValue:
    """Return (values - zero point) · scale, f16."""

    def constant(view: FileView, dims: Shape, part: str) -> SSAValue:
        label = name and f"{name}{part}"
        return g.add(Constant.of_file(view, view.element, dims), label).output

    cut = stored.blocking
    steps = g.convert(constant(stored.values, cut.shape, ""), "f16")
    if stored.zero_point is not None:
        zero = g.convert(constant(stored.zero_point, cut.scale_shape, "/zero_point"), "f16")
        steps = g.op(elementwise.Subtract, steps, zero)
    scale = constant(stored.scale, cut.scale_shape, "/scale")
    return g.op(elementwise.Multiply, steps, scale)


def _erase_unused(value: SSAValue) -> None:
    """Erase the op that defines a value, and the ops that only it needs, if unused."""
    op = value.owner
    if not isinstance(op, Operation) or any(result.uses for result in op.results):
        return
    operands = list(op.operands)
    op.detach()
    op.erase()
    for operand in operands:
        _erase_unused(operand)
