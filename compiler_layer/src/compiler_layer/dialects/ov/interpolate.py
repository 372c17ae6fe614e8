"""Resampling of some of a tensor's axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import DenseArrayBase, StringAttr, i64
from xdsl.irdl import operand_def, prop_def, result_def

from compiler_layer.dialects.ov.constant import ints_of, values_of
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.types import Tensor, element_of, known_axes, shape_of, tensor
from compiler_layer.elements import FLOATS

Array = npt.NDArray[Any]
F32 = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

_EPSILON = np.float32(1e-6)
"""Addend of scales before the multiplication, as in OpenVINO: 3 elements by 1/3 result in 1."""

_HALF = np.float32(0.5)

NEAREST = "nearest"


class Interpolate(OvOp):
    """Resampling of some axes to sizes, or by scales (opset11).

    ``mode`` is "nearest", "linear" or "linear_onnx"; the last two are equal without antialiasing.
    ``shape_calculation_mode`` states whether the second operand is "sizes" or "scales".
    ``coordinate_transformation_mode`` maps an element of the result to a place in the operand,
    ``nearest_mode`` selects one of two neighbours.
    """

    x = operand_def(Tensor)
    scales_or_sizes = operand_def(Tensor)
    axes = operand_def(Tensor)
    mode = prop_def(StringAttr)
    shape_calculation_mode = prop_def(StringAttr)
    coordinate_transformation_mode = prop_def(StringAttr)
    nearest_mode = prop_def(StringAttr)
    antialias = prop_def(StringAttr)
    pads_begin = prop_def(DenseArrayBase.constr(i64))
    pads_end = prop_def(DenseArrayBase.constr(i64))
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """Infer the sizes, or the operand's dimensions times scales, rounded down."""
        if any((*self.pads_begin.get_values(), *self.pads_end.get_values())):
            raise ValueError("pads_begin, pads_end: padding before resampling is not supported")
        element, shape = element_of(self.x), list(shape_of(self.x))
        if self.mode.data != NEAREST and element not in FLOATS:
            raise ValueError(f"mode {self.mode.data!r} of {element} is not supported")
        axes = ints_of(self.axes)
        if axes is None:
            return [tensor(element, (-1,) * len(shape))]
        targets = values_of(self.scales_or_sizes)
        if targets is not None and (
            targets.size != len(axes) or not (np.isfinite(targets) & (targets > 0)).all()
        ):
            kind = self.shape_calculation_mode.data
            raise ValueError(f"{targets.tolist()} are not positive {kind} for {len(axes)} axes")
        for number, axis in enumerate(known_axes(axes, len(shape))):
            each = None if targets is None else targets.reshape(-1)[number]
            shape[axis] = -1 if each is None else self._made(shape[axis], each)
        return [tensor(element, tuple(shape))]

    def _made(self, size: int, targets: Any) -> int:
        if self.shape_calculation_mode.data == "sizes":
            return int(targets)
        return -1 if size < 0 else scaled(size, float(targets))

    def known_resampling(self) -> list[ResampledAxis] | None:
        """Return the axes whose length changes; None if shape, axes or scales are not known."""
        targets, axes, shape = values_of(self.scales_or_sizes), ints_of(self.axes), shape_of(self.x)
        if targets is None or axes is None or -1 in shape:
            return None
        return self.resampled(shape, targets, np.array(axes, np.int64))

    def resampled(self, shape: Sequence[int], targets: Array, axes: Ints) -> list[ResampledAxis]:
        """Return the axes whose length changes.

        Args:
            shape: the operand's static shape.
            targets: the scales or sizes.
            axes: the axes.
        """
        found: list[ResampledAxis] = []
        known = known_axes(axes.reshape(-1).tolist(), len(shape))
        for axis, each in zip(known, targets.reshape(-1), strict=True):
            size, made = shape[axis], self._made(shape[axis], each)
            sizes = self.shape_calculation_mode.data == "sizes"
            scale = np.float32(made) / np.float32(size) if sizes else np.float32(each)
            found.append(ResampledAxis(self, axis, size, made, scale))
        return [each for each in found if each.made != each.size]


@dataclass(frozen=True, slots=True)
class ResampledAxis:
    """An axis of an Interpolate, from ``size`` to ``made`` elements."""

    op: Interpolate
    axis: int
    size: int
    made: int
    scale: np.float32

    @property
    def nearest(self) -> Ints:
        """Number of the operand's element that each element of the result is, [made]."""
        rounding = _NEAREST[self.op.nearest_mode.data]
        return np.clip(rounding(self._places(), self.scale < 1).astype(np.int64), 0, self.size - 1)

    @property
    def neighbours(self) -> tuple[Ints, Ints, F32]:
        """Numbers of the two elements around each place, and the share of the second, [made]."""
        places = np.clip(self._places(), 0, self.size - 1)
        below = np.floor(places).astype(np.int64)
        above = np.minimum(below + 1, self.size - 1)
        return below, above, (places - below).astype(np.float32)

    def _places(self) -> F32:
        """Return positions of the result's elements in the operand, in f32 as OpenVINO does."""
        number = np.arange(self.made, dtype=np.float32)
        return _PLACES[self.op.coordinate_transformation_mode.data](self, number)


def _half_pixel(axis: ResampledAxis, number: F32) -> F32:
    return (number + _HALF) / axis.scale - _HALF


def _pytorch_half_pixel(axis: ResampledAxis, number: F32) -> F32:
    return _half_pixel(axis, number) if axis.made > 1 else np.zeros_like(number)


def _aligned(axis: ResampledAxis, number: F32) -> F32:
    steps = np.float32(max(axis.made - 1, 1))
    return number * (np.float32(axis.size - 1) / steps)


_PLACES: dict[str, Callable[[ResampledAxis, F32], F32]] = {
    "half_pixel": _half_pixel,
    "pytorch_half_pixel": _pytorch_half_pixel,
    "asymmetric": lambda axis, number: number / axis.scale,
    "tf_half_pixel_for_nn": lambda axis, number: (number + _HALF) / axis.scale,
    "align_corners": _aligned,
}
"""Position in the operand of each element of the result, by coordinate_transformation_mode."""

_NEAREST: dict[str, Callable[[F32, np.bool_], F32]] = {
    "round_prefer_floor": lambda places, _: np.ceil(places - _HALF),
    "round_prefer_ceil": lambda places, _: np.floor(places + _HALF),
    "floor": lambda places, _: np.floor(places),
    "ceil": lambda places, _: np.ceil(places),
    "simple": lambda places, shrinks: np.ceil(places) if shrinks else np.trunc(places),
}
"""Rounding of positions, by nearest_mode; the second argument is true if the axis shrinks."""

COORDINATE_TRANSFORMATION_MODES, NEAREST_MODES = tuple(_PLACES), tuple(_NEAREST)


def scaled(size: int, scale: float) -> int:
    """Return the length of a resampled axis, with OpenVINO's rounding."""
    return int(np.floor(np.float32(size) * (np.float32(scale) + _EPSILON)))
