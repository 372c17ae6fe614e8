"""Integer matmuls for models that quantise activations statically (FakeQuantize)."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects import npu
from compiler_layer.dialects.ov.activation import Clamp
from compiler_layer.dialects.ov.elementwise import Add, Multiply, Round
from compiler_layer.dialects.ov.op import float_attr, int_attr, int_value
from compiler_layer.dialects.ov.quantize import FakeQuantize
from compiler_layer.dialects.ov.types import element_of
from compiler_layer.model import Model
from compiler_layer.passes.quantize_activations import as_integers, can_be_integer
from compiler_layer.rewriting.dead_code import remove_dead_code
from compiler_layer.rewriting.graph_pass import GraphPass
from compiler_layer.rewriting.match import producer, scalar_of

_MOST_LEVELS = 256

_WHOLE = 1e-3
"""Maximum distance of zero from a quantisation step, in steps: bounds are rounded to f32."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Quantisation of a tensor: x becomes (q - zero) · scale.

    q is x · factor + shift, rounded and clamped to 0 … last.
    """

    factor: float
    shift: float
    last: int
    scale: float
    zero: int

    @staticmethod
    def of(op: FakeQuantize) -> Grid | None:
        """Return an op's grid; None if it varies within the tensor, or zero is not a step."""
        bounds = (op.input_low, op.input_high, op.output_low, op.output_high)
        low, high, out_low, out_high = (scalar_of(bound) for bound in bounds)
        if low is None or high is None or out_low is None or out_high is None:
            return None
        last = int_value(op.levels) - 1
        if not (1 <= last < _MOST_LEVELS and low < high and out_low < out_high):
            return None
        factor, scale = last / (high - low), (out_high - out_low) / last
        zero = round(-out_low / scale)
        if not 0 <= zero <= last or abs(-out_low / scale - zero) > _WHOLE:
            return None
        shift = -low * factor
        return Grid(factor, shift, last, scale, zero)


def _steps(model: Model, before: npu.MatMul, x: SSAValue, grid: Grid) -> SSAValue:
    """Quantise a tensor to u8 in f32 arithmetic, as SHAVE does."""
    g = GraphBuilder(model, before)
    wide = x if element_of(x) == "f32" else g.convert(x, "f32")
    product = g.op(Multiply, wide, g.number(grid.factor, x))
    scaled = g.op(Add, product, g.number(grid.shift, x))
    whole = g.op(Round, scaled, mode=StringAttr("half_to_even"))
    inside = g.op(Clamp, whole, min=float_attr(0.0), max=float_attr(float(grid.last)))
    return g.convert(inside, "u8")


class FuseFakeQuantize(GraphPass):
    """Compute matmuls in integers where the model quantises activations statically.

    Before:  %r = ov.FakeQuantize(%x, -1.28, 1.27, -1.28, 1.27) {levels = 256}
             %y = npu.matmul(%r, %w : i8) scales %s
    After:   %q = ov.Convert(ov.Clamp(ov.Round(%x · 100 + 128))) : …xui8
             %y = npu.matmul(%q, %w) scales %s {a_scale = 0.01, a_zero = 128}

    The range of the tensor is a constant (static quantisation, W8A8), so run time does not search
    for it. Matmuls that read the same tensor share its quantised form. A matmul stays in floats if
    zero is not a step of the range, if ranges differ by channel, or if its weights do not have 8
    bits and one scale per column.

    Requires: ``lower-matmul``.
    """

    name = "fuse-fake-quantize"

    def _rewrite(self, model: Model) -> None:
        known: dict[FakeQuantize, SSAValue] = {}
        for each in model.ops:
            if not isinstance(each, npu.MatMul) or not can_be_integer(each):
                continue
            fake = producer(each.a, FakeQuantize)
            grid = Grid.of(fake) if fake is not None else None
            if fake is None or grid is None:
                continue
            if fake not in known:
                known[fake] = _steps(model, each, fake.x, grid)
            scale, zero = float_attr(grid.scale), int_attr(grid.zero)
            as_integers(each, known[fake], a_scale=scale, a_zero=zero)
        remove_dead_code(model)
