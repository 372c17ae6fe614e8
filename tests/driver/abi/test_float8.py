"""8-bit floats: the value of each code, and rounding to a code."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver_layer.abi.float8 import E4M3, E5M2, Float8, f8_to_f32, f32_to_f8

KINDS = pytest.mark.parametrize("kind", [E4M3, E5M2], ids=["e4m3", "e5m2"])
CODES = np.arange(256, dtype=np.uint8)
HALVES = st.floats(width=16, allow_nan=False)


def rounded(value: float, kind: Float8) -> float:
    return float(f8_to_f32(f32_to_f8(np.array([value], np.float32), kind), kind)[0])


def test_the_formats_are_those_of_the_specification() -> None:
    assert (E4M3.limit, E5M2.limit) == (448.0, 57344.0)
    for kind, least, normal in ((E4M3, 2.0**-9, 2.0**-6), (E5M2, 2.0**-16, 2.0**-14)):
        values = f8_to_f32(CODES, kind)
        assert values[0] == 0
        assert values[1] == least
        assert values[1 << kind.fraction] == normal
        assert np.array_equal(np.signbit(values[:128]), np.zeros(128, bool))
        assert np.array_equal(values[128:], -values[:128], equal_nan=True)
    assert np.flatnonzero(np.isnan(f8_to_f32(CODES, E4M3))).tolist() == [0x7F, 0xFF]
    assert not np.isinf(f8_to_f32(CODES, E4M3)).any()
    values = f8_to_f32(CODES, E5M2)
    assert np.flatnonzero(np.isinf(values)).tolist() == [0x7C, 0xFC]
    assert np.isnan(values[[0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF]]).all()


@KINDS
def test_every_number_is_rounded_to_itself(kind: Float8) -> None:
    values = f8_to_f32(CODES, kind)
    numbers = ~np.isnan(values)
    assert np.array_equal(f32_to_f8(values, kind)[numbers], CODES[numbers])
    assert np.isnan(f8_to_f32(f32_to_f8(values, kind), kind)[~numbers]).all()


@KINDS
def test_a_tie_goes_to_the_even_code(kind: Float8) -> None:
    values = f8_to_f32(CODES[: kind.largest + 1], kind)
    middles = (values[:-1] + values[1:]) / 2
    lower = CODES[: kind.largest]
    assert np.array_equal(f32_to_f8(middles, kind), lower + lower % 2)
    assert np.array_equal(f32_to_f8(-middles, kind), (lower + lower % 2) | 0x80)


@KINDS
@given(value=HALVES)
def test_an_f16_value_is_rounded_to_the_nearest_number(kind: Float8, value: float) -> None:
    """A value more than half a step above the largest number is out of range."""
    largest, found = kind.limit, rounded(value, kind)
    step = largest - float(f8_to_f32(CODES, kind)[kind.largest - 1])
    if abs(value) > largest + step / 2:
        assert np.isnan(found) if kind is E4M3 else found == np.copysign(np.inf, value)
    elif np.isfinite(found):
        numbers = f8_to_f32(CODES, kind)
        distances = np.abs(numbers[np.isfinite(numbers)].astype(np.float64) - value)
        assert abs(found - value) == distances.min()
        assert np.signbit(found) == np.signbit(value)


@KINDS
@given(pair=st.tuples(st.floats(width=32), st.floats(width=32)))
def test_rounding_keeps_the_order(kind: Float8, pair: tuple[float, float]) -> None:
    bounded = [min(max(value, -kind.limit), kind.limit) for value in pair if value == value]
    found = [rounded(value, kind) for value in sorted(bounded)]
    assert found == sorted(found)


@KINDS
def test_a_nan_stays_a_nan_with_its_sign(kind: Float8) -> None:
    nan = np.array([np.nan, -np.nan], np.float32)
    codes = f32_to_f8(nan, kind)
    assert np.isnan(f8_to_f32(codes, kind)).all()
    assert (codes >> 7).tolist() == [0, 1]


def test_f32_is_rounded_to_f16_first() -> None:
    """OpenVINO rounds twice, which may make a tie of f8."""
    just_above = np.nextafter(np.float32(1.0625), np.float32(2))
    assert rounded(float(just_above), E4M3) == 1.0
    assert rounded(1.0625 + 2.0**-10, E4M3) == 1.125
