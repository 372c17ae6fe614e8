"""Reductions over axes, and ops based on them: softmax, cumulative sum, normalization."""

from __future__ import annotations

from abc import ABC

from xdsl.dialects.builtin import BoolAttr, Float64Type, FloatAttr, IntegerAttr, StringAttr
from xdsl.irdl import operand_def, prop_def, result_def

from compiler_layer.dialects.ov.constant import int_of, ints_of
from compiler_layer.dialects.ov.op import OvOp, int_value
from compiler_layer.dialects.ov.types import (
    Tensor,
    element_of,
    known_axes,
    known_axis,
    shape_of,
    tensor,
)


class Reduction(OvOp, ABC):
    """Reduction of the elements along ``axes``, a constant."""

    x = operand_def(Tensor)
    axes = operand_def(Tensor)
    keep_dims = prop_def(BoolAttr)
    output = result_def(Tensor)

    def reduced_axes(self) -> list[int]:
        """Return the axes, none negative.

        Raises:
            ValueError: the axes are not known, or do not exist.
        """
        axes = ints_of(self.axes)
        if axes is None:
            raise ValueError("the axes are not a constant")
        return known_axes(axes, len(shape_of(self.x)))

    def infer(self) -> list[Tensor]:
        """Infer the operand's shape, with the axes set to 1 or removed."""
        axes = self.reduced_axes()
        shape = shape_of(self.x)
        if int_value(self.keep_dims):
            kept = tuple(1 if i in axes else d for i, d in enumerate(shape))
        else:
            kept = tuple(d for i, d in enumerate(shape) if i not in axes)
        return [tensor(element_of(self.x), kept)]


class ReduceMean(Reduction):
    """Mean."""


class ReduceSum(Reduction):
    """Sum."""


class ReduceMax(Reduction):
    """Maximum."""


class ReduceProd(Reduction):
    """Product."""


class ReduceMin(Reduction):
    """Minimum."""


class ReduceL1(Reduction):
    """Sum of absolute values."""


class ReduceL2(Reduction):
    """Square root of the sum of squares."""


class ReduceLogicalAnd(Reduction):
    """Logical and of the elements."""


class ReduceLogicalOr(Reduction):
    """Logical or of the elements."""


class _OfAxis(OvOp, ABC):
    """Function of all elements along an axis, for each of these elements."""

    x = operand_def(Tensor)
    axis = prop_def(IntegerAttr)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """Infer the operand's type."""
        known_axis(int_value(self.axis), len(shape_of(self.x)))
        return [tensor(element_of(self.x), shape_of(self.x))]


class Softmax(_OfAxis):
    """exp(x) / sum(exp(x)) along an axis (opset8)."""


class LogSoftmax(_OfAxis):
    """Logarithm of the softmax along an axis (opset5)."""


class CumSum(OvOp):
    """Cumulative sum along an axis (opset3).

    ``exclusive`` leaves out the element itself, ``reverse`` begins at the end.
    """

    x = operand_def(Tensor)
    axis = operand_def(Tensor)
    exclusive = prop_def(BoolAttr)
    reverse = prop_def(BoolAttr)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """Infer the operand's type."""
        axis = int_of(self.axis)
        if axis is not None:
            known_axis(axis, len(shape_of(self.x)))
        return [tensor(element_of(self.x), shape_of(self.x))]


class MVN(OvOp):
    """(x - mean) / sqrt(variance + eps) over axes: layer normalization (opset6).

    ``eps_mode`` states whether eps is inside or outside of the root; without
    ``normalize_variance`` only the mean is subtracted.
    """

    x = operand_def(Tensor)
    axes = operand_def(Tensor)
    normalize_variance = prop_def(BoolAttr)
    eps = prop_def(FloatAttr[Float64Type])
    eps_mode = prop_def(StringAttr)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """Infer the operand's type."""
        known_axes(ints_of(self.axes) or (), len(shape_of(self.x)))
        return [tensor(element_of(self.x), shape_of(self.x))]


class GroupNormalization(OvOp):
    """(x - mean) / sqrt(variance + epsilon) · scale + bias (opset12).

    x is [B, C, …]; mean and variance are computed over each of ``num_groups`` groups of
    consecutive channels, and all dimensions after them; scale and bias are [C].
    """

    x = operand_def(Tensor)
    scale = operand_def(Tensor)
    bias = operand_def(Tensor)
    num_groups = prop_def(IntegerAttr)
    epsilon = prop_def(FloatAttr[Float64Type])
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """Infer the operand's type."""
        shape, groups = shape_of(self.x), int_value(self.num_groups)
        if len(shape) < len("BC"):
            raise ValueError(f"the operand {list(shape)} has no channels")
        channels = shape[1]
        if groups < 1 or (channels >= 0 and channels % groups):
            raise ValueError(f"{channels} channels are not a multiple of {groups} groups")
        for each in (self.scale, self.bias):
            if len(shape_of(each)) != 1 or (
                -1 not in (*shape_of(each), channels) and (shape_of(each)[0] != channels)
            ):
                raise ValueError(f"{list(shape_of(each))} does not fit {channels} channels")
        return [tensor(element_of(self.x), shape)]


ALONG_AXES = Reduction | CumSum | MVN
"""Ops whose second operand is the list of reduced axes, or the axis."""
