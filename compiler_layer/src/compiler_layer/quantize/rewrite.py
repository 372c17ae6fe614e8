"""Puts quantised weights into the graph, with the ops that give the floats back.

They are the exporter's, which OpenVINO and our passes know: Constant → Convert f16
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
from compiler_layer.quantize.tensor_file import TensorFile
from compiler_layer.quantize.tensors import Blocking, StoredWeight, measure, store
from compiler_layer.quantize.weights import Weight, find_weights
from compiler_layer.rewriting.match import stored_constant

Advance = Callable[[int], object]


def measure_weights(model: Model, wanted: Format, advance: Advance) -> list[LayerReport]:
    """Say what quantisation would do to the weights of a model, which stays as it is.

    Args:
        model: read only.
        wanted: the format of its weights; some would be stored otherwise, their reports say why.
        advance: is told how many parameters are done, again and again.

    Returns:
        A report for each weight, in the order of their first use.

    Raises:
        CompilerUsageError: there is nothing to quantise.
        BadModel: a weight is not finite or too large, or cannot be read; names it.
    """
    reports: list[LayerReport] = []
    for weight in _weights_of(model):
        scheme = scheme_of(weight, wanted)
        reports.append(_report(weight, scheme, measure(weight, scheme, advance)))
    return reports


def quantize_weights(
    model: Model, wanted: Format, file: TensorFile, advance: Advance
) -> list[LayerReport]:
    """Quantise the weights of a model, in place.

    Args:
        model: its weights become views of the file, with ops that make floats of them.
        wanted: the format of its weights; some may be stored otherwise, their reports say why.
        file: where the new constants' values go.
        advance: is told how many parameters are done, again and again.

    Returns:
        A report for each weight, in the order of their first use.

    Raises:
        CompilerUsageError: there is nothing to quantise, or the file cannot be written.
        BadModel: a weight is not finite or too large, or cannot be read; names it.
    """
    places: dict[Operation, int] = {op: index for index, op in enumerate(model.body.ops)}
    reports: list[LayerReport] = []
    for weight in _weights_of(model):
        scheme = scheme_of(weight, wanted)
        stored, errors = store(weight, scheme, file, advance)
        reports.append(_report(weight, scheme, errors))
        _replace(weight, stored, _before(model, weight, places))
    return reports


def quantize_shapes(
    model: Model, wanted: Format, place: Callable[[str, Shape], FileView]
) -> list[tuple[Weight, Scheme]]:
    """Give the weights of a model the types and shapes of quantised ones, whatever their values.

    Args:
        model: its weights become views of what ``place`` gives, which is never read.
        wanted: the format of its weights.
        place: makes a view of so many elements of a type.

    Returns:
        Each weight, and how it is stored.

    Raises:
        CompilerUsageError: there is nothing to quantise.
    """
    places: dict[Operation, int] = {op: index for index, op in enumerate(model.body.ops)}
    schemes: list[tuple[Weight, Scheme]] = []
    for weight in _weights_of(model):
        scheme = scheme_of(weight, wanted)
        cut = Blocking.of(shape_of(weight.constant.output), weight.summed, scheme)
        zeros = place(scheme.element, cut.scale_shape) if scheme.element.startswith("u") else None
        values, scale = place(scheme.element, cut.shape), place("f16", cut.scale_shape)
        _replace(weight, StoredWeight(cut, values, scale, zeros), _before(model, weight, places))
        schemes.append((weight, scheme))
    return schemes


def parameters(model: Model) -> int:
    """How many numbers the weights of a model have: what ``advance`` is told in all."""
    return sum(math.prod(shape_of(weight.constant.output)) for weight in find_weights(model))


def _before(model: Model, weight: Weight, places: dict[Operation, int]) -> GraphBuilder:
    """Where the ops go that give a weight's floats back: before any that takes them."""
    constants = filter(None, map(stored_constant, weight.values))
    return GraphBuilder(model, before=min(constants, key=lambda constant: places[constant]))


def _weights_of(model: Model) -> list[Weight]:
    weights = find_weights(model)
    if not weights:
        raise CompilerUsageError("the model has no float weights to quantise; are they already?")
    return weights


def _report(weight: Weight, scheme: Scheme, errors: Errors) -> LayerReport:
    return LayerReport.of(weight.name, shape_of(weight.constant.output), scheme, errors)


def _replace(weight: Weight, stored: StoredWeight, g: GraphBuilder) -> None:
    """Give the ops that take the weight the floats that its quantised values stand for."""
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
    """(values - zero point) · scale, f16."""

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
    """Erase what made a value, and what made that, as far as nobody else uses it."""
    op = value.owner
    if not isinstance(op, Operation) or any(result.uses for result in op.results):
        return
    operands = list(op.operands)
    op.detach()
    op.erase()
    for operand in operands:
        _erase_unused(operand)
