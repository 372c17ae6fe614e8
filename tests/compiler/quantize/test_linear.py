"""Arithmetic of quantization, on blocks of any numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as some

from compiler_layer.quantize.linear import BITS, dequantize, quantize

ELEMENTS = sorted(BITS)
RANGES = {"i8": (-128, 127), "u8": (0, 255), "i4": (-8, 7), "u4": (0, 15)}

elements = st.sampled_from(ELEMENTS)
shapes = st.tuples(st.integers(1, 4), st.integers(1, 9), st.integers(1, 3))


def blocks(bound: float) -> st.SearchStrategy[np.ndarray]:
    numbers = st.floats(-bound, bound, width=32)
    return shapes.flatmap(lambda shape: some.arrays(np.float32, shape, elements=numbers))


@settings(max_examples=70, deadline=None)
@given(element=elements, weights=st.sampled_from([2.0**-30, 1.0, 1e5]).flatmap(blocks))
def test_no_error_exceeds_half_a_scale(element: str, weights: np.ndarray) -> None:
    block = quantize(weights, element)
    low, high = RANGES[element]
    assert block.values.min() >= low
    assert block.values.max() <= high
    error = np.abs(dequantize(block).astype(np.float64) - weights)
    # Quotients are computed in f32: a tie may fall to either side.
    assert (error <= np.abs(block.scale.astype(np.float64)) * (0.5 + 1e-4)).all()


@settings(max_examples=20, deadline=None)
@given(
    element=elements,
    scale=st.sampled_from([2.0**-12, 0.013671875, 1.0, -0.5]),
    data=st.data(),
)
def test_weights_that_use_the_complete_range_are_exact(
    element: str, scale: float, data: st.DataObject
) -> None:
    """Dequantized numbers quantize to themselves."""
    low, high = RANGES[element]
    inner = data.draw(some.arrays(np.int64, (3, 6, 2), elements=st.integers(low, high)))
    zero = data.draw(st.integers(low, high)) if element.startswith("u") else 0
    ends = np.broadcast_to(np.array([low, high])[None, :, None], (3, 2, 2))
    steps = np.concatenate([inner, ends], axis=1) - zero
    weights = (steps * scale).astype(np.float32)
    block = quantize(weights, element)
    np.testing.assert_array_equal(dequantize(block), weights)


@pytest.mark.parametrize("element", ELEMENTS)
def test_zeros_stay_zeros_with_a_scale_of_one(element: str) -> None:
    weights = np.zeros((2, 4, 1), np.float32)
    weights[1] = 3
    block = quantize(weights, element)
    assert block.scale[0] == 1
    np.testing.assert_array_equal(dequantize(block)[0], weights[0])
    assert np.abs(dequantize(block)[1] - 3).max() < 0.01


@settings(max_examples=15, deadline=None)
@given(element=elements, weights=blocks(10.0))
def test_zero_is_always_exact(element: str, weights: np.ndarray) -> None:
    weights[:, 0] = 0
    np.testing.assert_array_equal(dequantize(quantize(weights, element))[:, 0], 0)


@settings(max_examples=15, deadline=None)
@given(element=elements, weights=blocks(10.0))
def test_each_vector_is_quantized_separately(element: str, weights: np.ndarray) -> None:
    whole = quantize(weights, element)
    for group in range(weights.shape[0]):
        for column in range(weights.shape[2]):
            at = np.s_[group : group + 1, :, column : column + 1]
            alone = quantize(weights[at], element)
            np.testing.assert_array_equal(whole.values[at], alone.values)
            np.testing.assert_array_equal(whole.scale[at], alone.scale)


def test_the_larger_side_has_the_extra_step_of_signed_numbers() -> None:
    weights = np.array([8.0, -7.0, 1.0], np.float32).reshape(1, 3, 1)
    block = quantize(weights, "i4")
    assert block.scale.item() == -1
    assert block.values.reshape(-1).tolist() == [-8, 7, -1]


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize(
    ("value", "says"),
    [(np.nan, "or NaN"), (np.inf, "infinite"), (-np.inf, "infinite"), (3e38, "exceeds f16")],
)
def test_a_weight_without_a_valid_scale_is_refused(element: str, value: float, says: str) -> None:
    weights = np.ones((1, 4, 1), np.float32)
    weights[0, 2] = value
    with pytest.raises(ValueError, match=says):
        quantize(weights, element)
