"""Code of each opcode in LLVM IR, over vectors or scalars.

Results equal those of numpy's f32 functions. As in the reference, FMA rounds the product and the
sum separately.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from driver_layer.abi.dtypes import DType
from driver_layer.abi.shave import Op
from driver_layer.engines.native.jit.emitter import Emitter, Value
from driver_layer.engines.native.jit.small_floats import rounded
from driver_layer.engines.native.shave import maths
from driver_layer.engines.native.shave.maths.polynomial import absolute, is_nan, like


def minimum(e: Emitter, a: Value, b: Value) -> Value:
    """Return the smaller value; NaN if either is NaN."""
    return e.b.select(is_nan(e, a), a, e.b.select(e.b.fcmp_ordered("<", a, b), a, b))


def maximum(e: Emitter, a: Value, b: Value) -> Value:
    """Return the larger value; NaN if either is NaN."""
    return e.b.select(is_nan(e, a), a, e.b.select(e.b.fcmp_ordered(">", a, b), a, b))


def _sqrt(e: Emitter, a: Value) -> Value:
    return e.intrinsic("llvm.sqrt", a)


def _rcp(e: Emitter, a: Value) -> Value:
    return e.b.fdiv(like(e, a, 1.0), a)


def _compare(comparison: str) -> Callable[[Emitter, Value, Value], Value]:
    def compare(e: Emitter, a: Value, b: Value) -> Value:
        true = e.b.fcmp_ordered(comparison, a, b)
        return e.b.select(true, like(e, a, 1.0), like(e, a, 0.0))

    return compare


def _select(e: Emitter, a: Value, b: Value, c: Value) -> Value:
    return e.b.select(e.b.fcmp_unordered("!=", a, like(e, a, 0.0)), b, c)


_OF_ONE: Mapping[Op, Callable[[Emitter, Value], Value]] = {
    Op.MOV: lambda e, a: a,
    Op.NEG: lambda e, a: e.b.fneg(a),
    Op.ABS: absolute,
    Op.SQRT: _sqrt,
    Op.RSQRT: lambda e, a: _rcp(e, _sqrt(e, a)),
    Op.RCP: _rcp,
    Op.EXP: maths.exp,
    Op.LOG: maths.log,
    Op.SIN: maths.sin,
    Op.COS: maths.cos,
    Op.TANH: maths.tanh,
    Op.FLOOR: lambda e, a: e.intrinsic("llvm.floor", a),
    Op.ERF: maths.erf,
    Op.RINT: lambda e, a: e.intrinsic("llvm.rint", a),
    Op.RE4M3: lambda e, a: rounded(e, a, DType.F8E4M3),
    Op.RE5M2: lambda e, a: rounded(e, a, DType.F8E5M2),
}

_OF_TWO: Mapping[Op, Callable[[Emitter, Value, Value], Value]] = {
    Op.ADD: lambda e, a, b: e.b.fadd(a, b),
    Op.SUB: lambda e, a, b: e.b.fsub(a, b),
    Op.MUL: lambda e, a, b: e.b.fmul(a, b),
    Op.DIV: lambda e, a, b: e.b.fdiv(a, b),
    Op.MIN: minimum,
    Op.MAX: maximum,
    Op.POW: maths.power,
    Op.CMPEQ: _compare("=="),
    Op.CMPLT: _compare("<"),
    Op.CMPLE: _compare("<="),
}

_OF_THREE: Mapping[Op, Callable[[Emitter, Value, Value, Value], Value]] = {
    Op.FMA: lambda e, a, b, c: e.b.fadd(e.b.fmul(a, b), c),
    Op.SEL: _select,
}

COMPUTE: Mapping[Op, Callable[..., Value]] = {**_OF_ONE, **_OF_TWO, **_OF_THREE}
"""Code of each elementwise opcode."""

COMBINE: Mapping[Op, tuple[Callable[[Emitter, Value, Value], Value], float]] = {
    Op.RSUM: (_OF_TWO[Op.ADD], -0.0),
    Op.RMAX: (maximum, -math.inf),
    Op.RMIN: (minimum, math.inf),
}
"""Combining function of each reduction, and its initial value."""
