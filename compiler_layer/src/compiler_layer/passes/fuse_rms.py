"""Fusion of RMSNorm."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from compiler_layer.dialects.ov.attention import RMS
from compiler_layer.dialects.ov.elementwise import Add, Divide, Multiply, Power, Sqrt
from compiler_layer.dialects.ov.op import float_attr, int_value
from compiler_layer.dialects.ov.reduce import ReduceMean
from compiler_layer.dialects.ov.types import shape_of
from compiler_layer.rewriting.graph_pass import OpPass
from compiler_layer.rewriting.match import either, producer, scalar_of, stored_constant
from compiler_layer.rewriting.replace import replace


def _squared(value: SSAValue) -> SSAValue | None:
    """Return the x of x², written as a power or a multiplication."""
    power = producer(value, Power)
    if power is not None:
        return power.a if scalar_of(power.b) == 2 else None
    product = producer(value, Multiply)
    return product.a if product is not None and product.a is product.b else None


def _mean_square(value: SSAValue) -> tuple[SSAValue, float] | None:
    """Return x and ε of mean(x²) + ε over the last dimension."""
    add = producer(value, Add)
    found = either(add, ReduceMean) if add is not None else None
    if found is None:
        return None
    mean, other = found
    epsilon, x = scalar_of(other), _squared(mean.x)
    if epsilon is None or x is None or not int_value(mean.keep_dims):
        return None
    return (x, epsilon) if mean.reduced_axes() == [len(shape_of(x)) - 1] else None


def _normalised(op: Multiply) -> tuple[SSAValue, float] | None:
    """Return x and ε of x · (1 / sqrt(mean(x²) + ε)), or of x · (…) to the power of -½."""
    for inverse, x in ((op.a, op.b), (op.b, op.a)):
        divide, power = producer(inverse, Divide), producer(inverse, Power)
        inside = None
        if divide is not None and scalar_of(divide.a) == 1:
            root = producer(divide.b, Sqrt)
            inside = root.x if root is not None else None
        elif power is not None and scalar_of(power.b) == -0.5:
            inside = power.a
        found = _mean_square(inside) if inside is not None else None
        if found is not None and found[0] is x:
            return found
    return None


def _is_gamma(value: SSAValue, width: int) -> bool:
    """Return whether a value is a constant with one number per channel."""
    shape = shape_of(value)
    flat = shape[-1:] == (width,) and int(np.prod(shape)) == width
    return flat and stored_constant(value) is not None


def _fuse(op: Multiply) -> None:
    found = _normalised(op)
    if found is None:
        return
    x, number = found
    epsilon = float_attr(number)
    scaled = op.output.get_user_of_unique_use()
    if isinstance(scaled, Multiply) and x.type == scaled.output.type:
        gamma = scaled.b if scaled.a is op.output else scaled.a
        if _is_gamma(gamma, shape_of(x)[-1]):
            replace(scaled, RMS.make([x, [gamma]], epsilon=epsilon))
            return
    # Created last: a detached op would count as a user of x.
    replace(op, RMS.make([x, []], epsilon=epsilon))


class FuseRMS(OpPass):
    """Fuse RMSNorm.

    Before:  %s = ov.Power(%x, 2); %m = ov.ReduceMean(%s, -1); %r = ov.Sqrt(ov.Add(%m, ε));
             %n = ov.Multiply(%x, ov.Divide(1, %r)); %y = ov.Multiply(%gamma, %n)
    After:   %y = ov.RMS(%x, %gamma) {epsilon = ε}

    The fused op computes in f32 from end to end, whatever the model's precision.
    """

    name = "fuse-rms"
    rewrites = ((Multiply, _fuse),)
