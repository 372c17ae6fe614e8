"""Comparison of ops of audio models with OpenVINO, in drawn cases.

A case is a function of draws; it returns a function that builds the op, and the op's inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import openvino.opset15 as op
import openvino.opset16 as op_16
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler_layer.dialects.ov.interpolate import COORDINATE_TRANSFORMATION_MODES, NEAREST_MODES

Case = Callable[..., tuple[Any, ...]]
"""Function from draws to a builder of the op, its inputs, and indices of required constants."""


def lstm_sequence(draws: Any) -> tuple[Any, ...]:
    """Draw all directions, with sequences that end early."""
    direction = draws.one_of("forward", "reverse", "bidirectional")
    many = 2 if direction == "bidirectional" else 1
    batch, steps, wide, size = (draws.whole(1, most) for most in (3, 5, 4, 4))
    inputs = [
        draws.floats([batch, steps, wide]),
        draws.floats([batch, many, size]),
        draws.floats([batch, many, size]),
        draws.integers([batch], 1, steps, draws.one_of("i4", "i8")),
        draws.floats([many, 4 * size, wide]),
        draws.floats([many, 4 * size, size]),
        draws.floats([many, 4 * size]),
    ]
    return lambda *each: op.lstm_sequence(*each, size, direction), inputs, [4, 5, 6]


def transposed_convolution(draws: Any) -> tuple[Any, ...]:
    channels, made = draws.whole(1, 3), draws.whole(1, 3)
    return _scattered(draws, op.convolution_backprop_data, channels, [channels, made])


def transposed_group_convolution(draws: Any) -> tuple[Any, ...]:
    """Draw transposed group convolutions, most of them depthwise."""
    groups, taken, made = draws.whole(1, 4), draws.one_of(1, 1, 2), draws.one_of(1, 1, 2)
    outer = [groups, taken, made]
    return _scattered(draws, op.group_convolution_backprop_data, groups * taken, outer)


def _scattered(draws: Any, build: Any, channels: int, outer: list[int]) -> tuple[Any, ...]:
    rank = draws.whole(1, 2)
    kernel = [draws.whole(2, 4) for _ in range(rank)]
    sizes = [draws.whole(2, 5) for _ in range(rank)]
    strides, dilations = ([draws.whole(1, 3) for _ in range(rank)] for _ in range(2))
    begin, end = ([draws.whole(0, 1) for _ in range(rank)] for _ in range(2))
    added = [draws.whole(0, stride - 1) for stride in strides]
    said = {
        "pads_begin": begin,
        "pads_end": end,
        "dilations": dilations,
        "auto_pad": "explicit",
        "output_padding": added,
    }
    return lambda x, w: build(x, w, strides, **said), [
        draws.floats([draws.whole(1, 2), channels, *sizes]),
        draws.floats([*outer, *kernel]),
    ]


def interpolate(draws: Any) -> tuple[Any, ...]:
    """Draw scales or sizes of one or two axes, up and down, with all modes."""
    x = draws.floats([draws.whole(1, 2), draws.whole(1, 9), draws.whole(2, 24)])
    axes = draws.one_of([2], [1, 2], [2, 1])
    kind = draws.one_of("scales", "sizes")
    if kind == "sizes":
        wanted = np.array([draws.whole(1, 30) for _ in axes], draws.one_of("i4", "i8"))
    else:
        scales = [draws.one_of(2.0, 3.0, 5.0, 1.0, 0.5, 0.25, 1.3, 0.95) for _ in axes]
        least = [1 / x.shape[axis] for axis in axes]
        wanted = np.maximum(scales, least).astype(np.float32)
    said = {
        "mode": draws.one_of("nearest", "linear", "linear_onnx"),
        "shape_calculation_mode": kind,
        "coordinate_transformation_mode": draws.one_of(*COORDINATE_TRANSFORMATION_MODES),
        "nearest_mode": draws.one_of(*NEAREST_MODES),
    }
    inputs = [x, wanted, np.array(axes, draws.one_of("i4", "i8"))]
    return lambda *each: op.interpolate(each[0], each[1], axes=each[2], **said), inputs, [1, 2]


def spectrum(draws: Any) -> tuple[Any, ...]:
    size, step = draws.one_of(4, 6, 8), draws.whole(1, 4)
    signal = draws.floats([draws.whole(1, 2), size + draws.whole(0, 9)])
    window = draws.floats([draws.whole(1, size)])
    turned = draws.flag()
    lengths = [np.array(size, np.int64), np.array(step, np.int64)]
    return lambda *each: op.stft(*each, turned), [signal, window, *lengths], [2, 3]


def signal(draws: Any) -> tuple[Any, ...]:
    """Draw spectra for windows of ones, which determine every sample."""
    size = draws.one_of(4, 6, 8)
    step = draws.whole(1, size // 2)
    found = draws.floats([draws.whole(1, 2), size // 2 + 1, draws.whole(2, 6), 2])
    lengths = [np.array(size, np.int64), np.array(step, np.int64)]
    window, center = np.ones(size, np.float32), draws.flag()
    return lambda *each: op_16.istft(*each, center, False), [found, window, *lengths], [2, 3]


def random_uniform(draws: Any) -> tuple[Any, ...]:
    """Draw seeds, which determine all random numbers."""
    seeds = draws.one_of((0, 1166174095), (7, 5), (3, 0), (1 << 40, 1 << 33))
    low = draws.one_of(0.0, -1.0)
    inputs = [draws.vector(draws.shape()), np.array([low], "f4"), np.array([2.0], "f4")]
    return lambda *each: op.random_uniform(*each, "f32", *seeds), inputs, [0, 1, 2]


CASES: dict[str, Case] = {
    "LSTMSequence": lstm_sequence,
    "ConvolutionBackpropData": transposed_convolution,
    "GroupConvolutionBackpropData": transposed_group_convolution,
    "Interpolate": interpolate,
    "STFT": spectrum,
    "ISTFT": signal,
    "RandomUniform": random_uniform,
}
"""Cases by type of layer."""


@pytest.mark.matrix
@pytest.mark.parametrize("kind", CASES)
@given(data=st.data())
def test_sounds(check_drawn: Callable[..., None], kind: str, data: st.DataObject) -> None:
    check_drawn(kind, data, CASES[kind])
