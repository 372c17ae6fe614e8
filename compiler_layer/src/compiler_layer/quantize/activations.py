"""Activations in 8 bits with one range for all tokens (static quantisation, W8A8).

What a product of an 8-bit weight takes is rounded by a FakeQuantize before it, as NNCF writes it:
OpenVINO and our passes then compute the product in integers. The ranges come from running the float
model over a few sequences of tokens (``sequences``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
from compiler_layer.quantize.sequences import Tokens, inputs_of
from compiler_layer.quantize.weights import find_weights
from compiler_layer.reference.interpreter import Interpreter
from compiler_layer.rewriting.dead_code import remove_dead_code

_LAST = 255
"""The last of the 256 steps of a range."""

Advance = Callable[[int], object]


@dataclass(frozen=True, slots=True)
class Activation:
    """A tensor of floats that products with weights take."""

    name: str
    """Of the first of its weights."""
    value: SSAValue
    products: tuple[MatMul, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """256 steps of equal size, one of which is zero: q stands for (q - zero) · scale."""

    scale: float
    """An f16, so that the bounds are exact in f32."""
    zero: int

    @staticmethod
    def of(low: float, high: float) -> Range:
        """Give the least range that holds two numbers and zero.

        Raises:
            ValueError: one is not finite, or the scale is beyond f16.
        """
        if not np.isfinite([low, high]).all():
            raise ValueError("an activation is infinite or no number")
        low, high = min(low, 0.0), max(high, 0.0)
        scale = float(stored_scale(np.array([(high - low) / _LAST], np.float32))[0])
        return Range(scale, round(-low / scale))

    @property
    def low(self) -> float:
        """What the first step stands for."""
        return -self.zero * self.scale

    @property
    def high(self) -> float:
        """What the last step stands for."""
        return (_LAST - self.zero) * self.scale

    def rounded(self, x: Floats) -> Floats:
        """Give what becomes of numbers."""
        steps = np.clip(np.rint(x / np.float32(self.scale)) + self.zero, 0, _LAST)
        return ((steps - self.zero) * np.float32(self.scale)).astype(np.float32)


def find_activations(model: Model) -> list[Activation]:
    """Give what products with weights take, in the order of the weights; shared tensors once.

    The head's are not among them: 8 bits there cost most, and save nothing in decoding. Nor are
    those of weights [K, N], which the DPU does not take as integers.
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
    """Find the range of each activation: the least and the largest number that occur.

    Args:
        model: with float weights; read only.
        activations: what ``find_activations`` gives.
        sequences: tokens to run the model over, each from an empty cache.
        advance: is told how many tokens are done, again and again.

    Raises:
        BadModel: an activation is not finite, or too large.
        CompilerUsageError: the model is no language model over tokens.
    """
    low, high = [0.0] * len(activations), [0.0] * len(activations)
    for arrays in _observed(model, sequences, advance):
        for index, array in enumerate(arrays):
            # numpy's keep what is no number; Python's would lose it.
            low[index] = float(np.minimum(low[index], array.min()))
            high[index] = float(np.maximum(high[index], array.max()))
    return [_range(*found) for found in zip(activations, low, high, strict=True)]


def measure_activations(
    model: Model,
    activations: Sequence[Activation],
    ranges: Sequence[Range],
    sequences: Sequence[Tokens],
    advance: Advance,
) -> list[LayerReport]:
    """Say how far ranges throw the activations of a float model off; see ``calibrate``."""
    errors = [Errors() for _ in activations]
    for arrays in _observed(model, sequences, advance):
        for sums, found, array in zip(errors, ranges, arrays, strict=True):
            sums.add(array, found.rounded(array))
    return [
        LayerReport.of(one.name, shape_of(one.value)[-1:], ACTIVATIONS, sums)
        for one, sums in zip(activations, errors, strict=True)
    ]


def quantize_activations(
    model: Model, activations: Sequence[Activation], ranges: Sequence[Range]
) -> None:
    """Round what products take, in place: a FakeQuantize before the first of them."""
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


def _observed(
    model: Model, sequences: Sequence[Tokens], advance: Advance
) -> Iterator[list[Floats]]:
    """Give the activations for each of the sequences."""
    probe = model.clone()
    values = [one.value for one in find_activations(probe)]
    probe.set_outputs([(str(index), value) for index, value in enumerate(values)])
    remove_dead_code(probe)
    interpreter = Interpreter(probe)
    for tokens in sequences:
        interpreter.reset()
        yield list(interpreter.run(inputs_of(probe, tokens)).values())
        advance(tokens.size)


def _range(activation: Activation, low: float, high: float) -> Range:
    try:
        return Range.of(low, high)
    except ValueError as error:
        raise BadModel("the model", str(error), f"what {activation.name} takes") from None
