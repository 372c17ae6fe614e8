"""8-bit activations with one range for all tokens (static quantization, W8A8).

A FakeQuantize before a matmul with an 8-bit weight rounds the activation, as NNCF writes it:
OpenVINO and our passes then compute the matmul in integers. The ranges are measured by running the
float model over a few sequences of tokens (``sequences``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.matmul import MatMul
from compiler_layer.dialects.ov.op import int_attr, int_value
from compiler_layer.dialects.ov.quantize import FakeQuantize
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.errors import BadModel
from compiler_layer.model import Model
from compiler_layer.quantize.linear import Floats, stored_scale
from compiler_layer.quantize.report import Errors, LayerReport
from compiler_layer.quantize.schemes import ACTIVATIONS
from compiler_layer.quantize.sequences import Tokens, batched, inputs_of
from compiler_layer.quantize.weights import find_weights
from compiler_layer.reference.interpreter import Interpreter
from compiler_layer.rewriting.dead_code import remove_dead_code

_LAST = 255
"""Index of the last of the 256 steps of a range."""

Advance = Callable[[int], object]


@dataclass(frozen=True, slots=True)
class Activation:
    """Float tensor that matmuls with weights read."""

    name: str
    """Name of the first of its weights."""
    value: SSAValue
    products: tuple[MatMul, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """256 equal steps, one of which represents zero: q represents (q - zero) · scale."""

    scale: float
    """Step size, an f16 value, so that the bounds are exact in f32."""
    zero: int

    @staticmethod
    def of(low: float, high: float) -> Range:
        """Return the smallest range that contains two numbers and zero.

        Raises:
            ValueError: a number is not finite, or the scale exceeds f16.
        """
        if not np.isfinite([low, high]).all():
            raise ValueError("an activation is infinite or NaN")
        low, high = min(low, 0.0), max(high, 0.0)
        scale = float(stored_scale(np.array([(high - low) / _LAST], np.float32))[0])
        return Range(scale, round(-low / scale))

    @property
    def low(self) -> float:
        """Value of the first step."""
        return -self.zero * self.scale

    @property
    def high(self) -> float:
        """Value of the last step."""
        return (_LAST - self.zero) * self.scale

    def rounded(self, x: Floats) -> Floats:
        """Return numbers rounded to the range's steps."""
        steps = np.clip(np.rint(x / np.float32(self.scale)) + self.zero, 0, _LAST)
        return ((steps - self.zero) * np.float32(self.scale)).astype(np.float32)


def find_activations(model: Model) -> list[Activation]:
    """Return the activations of matmuls with weights, in the order of the weights, without repeats.

    Those of the LM head are excluded: 8 bits cost most accuracy there, and save nothing in
    decoding. So are those of weights [K, N], which the DPU does not accept as integers.
    """
    found: dict[SSAValue, tuple[str, list[MatMul]]] = {}
    for weight in find_weights(model):
        users = [use.operation for value in weight.values for use in value.uses]
        for op in users:
            if (
                weight.role == "linear"
                and isinstance(op, MatMul)
                and _can_be_integer(op, weight.values)
            ):
                found.setdefault(op.a, (weight.name, []))[1].append(op)
    return [Activation(name, value, tuple(ops)) for value, (name, ops) in found.items()]


def calibrate(
    model: Model, activations: Sequence[Activation], sequences: Sequence[Tokens], advance: Advance
) -> list[Range]:
    """Find the range of each activation, from its minimum to its maximum.

    Args:
        model: with float weights; read only.
        activations: the result of ``find_activations``.
        sequences: tokens to run the model over, each from an empty cache.
        advance: called repeatedly with the number of measured activations; each counts once for
            each sequence.

    Raises:
        BadModel: an activation is not finite, or too large.
        CompilerUsageError: the model is not a language model over tokens.
    """
    low, high = [0.0] * len(activations), [0.0] * len(activations)

    def see(index: int, array: Floats) -> None:
        # numpy's minimum and maximum propagate NaN; Python's would lose it.
        low[index] = float(np.minimum(low[index], array.min()))
        high[index] = float(np.maximum(high[index], array.max()))

    _observe(model, sequences, see, advance)
    return [_range(*found) for found in zip(activations, low, high, strict=True)]


def measure_activations(
    model: Model,
    activations: Sequence[Activation],
    ranges: Sequence[Range],
    sequences: Sequence[Tokens],
    advance: Advance,
) -> list[LayerReport]:
    """Measure the errors that ranges cause in a float model's activations; see ``calibrate``."""
    errors = [Errors() for _ in activations]

    def see(index: int, array: Floats) -> None:
        errors[index].add(array, ranges[index].rounded(array))

    _observe(model, sequences, see, advance)
    return [
        LayerReport.of(one.name, shape_of(one.value)[-1:], ACTIVATIONS, sums)
        for one, sums in zip(activations, errors, strict=True)
    ]


def quantize_activations(
    model: Model, activations: Sequence[Activation], ranges: Sequence[Range]
) -> None:
    """Insert a FakeQuantize before the first matmul of each activation, in place."""
    places = {op: index for index, op in enumerate(model.body.ops)}
    for one, found in zip(activations, ranges, strict=True):
        first = min(one.products, key=lambda op: places[op])
        g = GraphBuilder(model, before=first)
        low, high = (g.constant(np.array(bound, np.float32)) for bound in (found.low, found.high))
        name = first.friendly_name and f"{first.friendly_name}/fq_input_0"
        bounds = (low, high, low, high)
        levels = int_attr(_LAST + 1)
        rounded = g.op(FakeQuantize, one.value, *bounds, name=name, levels=levels)
        for product in one.products:
            product.operands[0] = rounded


def _can_be_integer(op: MatMul, values: Sequence[SSAValue]) -> bool:
    rows = int_value(op.transpose_b) and not int_value(op.transpose_a)
    return bool(rows) and op.b in values and element_of(op.a) == "f32"


def _observe(
    model: Model,
    sequences: Sequence[Tokens],
    see: Callable[[int, Floats], object],
    advance: Advance,
) -> None:
    """Call ``see`` with each activation's number and its values, a batch of sequences at a time."""
    probe = model.clone()
    places = {one.value: number for number, one in enumerate(find_activations(probe))}
    probe.set_outputs([(str(number), value) for value, number in places.items()])
    remove_dead_code(probe)
    probe.set_outputs([])  # so that no activation is kept

    for batch in batched(probe, sequences):

        def observe(value: SSAValue, array: Floats, count: int = len(batch)) -> None:
            if value in places:
                see(places[value], array)
                advance(count)

        Interpreter(probe).run(inputs_of(probe, batch), observe)


def _range(activation: Activation, low: float, high: float) -> Range:
    try:
        return Range.of(low, high)
    except ValueError as error:
        raise BadModel("the model", str(error), f"input of {activation.name}") from None
