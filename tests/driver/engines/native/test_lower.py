"""Steps of the lowering, each by itself."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driver_layer.engines.native.dma.shapes import TransferSide, joint_dims
from driver_layer.engines.native.lower.arrays import equal_rows
from driver_layer.engines.native.lower.redirect import remap_operand
from driver_layer.engines.native.lower.regions import READ_ONLY, find_aliases, number_regions
from driver_layer.engines.native.lower.template import NO_WORD, Access, Dim, slot

Bytes = set[int]


def bytes_of_side(side: TransferSide) -> list[int]:
    """Return the addresses in the order in which a transfer accesses them."""
    starts = itertools.product(*(range(length) for length, _ in side.dims))
    strides = [stride for _, stride in side.dims]
    return [
        sum(i * s for i, s in zip(start, strides, strict=True)) + byte
        for start in starts
        for byte in range(side.width)
    ]


@st.composite
def two_sides(draw: st.DrawFn) -> tuple[TransferSide, TransferSide]:
    """Draw two sides with the same number of bytes."""
    factors = draw(st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=2, max_size=4))

    def side() -> TransferSide:
        lengths: list[int] = []
        held = 1
        for factor in factors:
            held *= factor
            if draw(st.booleans()):
                lengths.append(held)
                held = 1
        return TransferSide(held, tuple((length, draw(st.integers(1, 50))) for length in lengths))

    return side(), side()


@settings(max_examples=70, deadline=None)
@given(two_sides())
def test_joint_dimensions_address_the_bytes_of_both_sides_in_order(
    sides: tuple[TransferSide, TransferSide],
) -> None:
    joint = joint_dims(*sides)
    assert joint is not None
    width, dims = joint
    for number, side in enumerate(sides):
        same = TransferSide(width, tuple((dim.length, dim[number + 1]) for dim in dims))
        assert bytes_of_side(same) == bytes_of_side(side)


def test_sides_without_a_common_split_have_no_joint_dimensions() -> None:
    assert joint_dims(TransferSide(3, ((4, 8),)), TransferSide(4, ((3, 8),))) is None


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
def test_equal_rows_are_grouped_in_order_of_first_occurrence(rows: list[tuple[int, int]]) -> None:
    table = np.array(rows, np.int64)
    first, group = equal_rows(table)
    assert [rows[i] for i in first] == list(dict.fromkeys(rows))
    assert [rows[first[g]] for g in group] == rows


@st.composite
def regions(draw: st.DrawFn) -> np.ndarray:
    """Draw begin, rows, pitch and width of some regions in a small memory."""
    pitch = draw(st.sampled_from([7, 16]))
    drawn: list[tuple[int, int, int, int]] = []
    for _ in range(draw(st.integers(1, 10))):
        rows = draw(st.sampled_from([1, 1, 2, 4]))
        width = draw(st.integers(1, pitch if rows > 1 else 3 * pitch))
        own = draw(st.sampled_from([pitch, pitch, pitch + 3])) if rows > 1 else width
        drawn.append((draw(st.integers(0, 60)), rows, own, width))
    return np.unique(np.array(drawn, np.int64), axis=0)


def bytes_of_region(region: list[int]) -> Bytes:
    begin, rows, pitch, width = region
    return {begin + row * pitch + byte for row in range(rows) for byte in range(width)}


@settings(max_examples=50, deadline=None)
@given(regions())
def test_regions_alias_if_their_bytes_overlap(table: np.ndarray) -> None:
    """Only regions with different pitches may be reported as aliases without an overlap."""
    aliases = find_aliases(table)
    assert aliases is not None
    sets = [bytes_of_region(region) for region in table.tolist()]
    for one in range(len(table)):
        span = slice(aliases.first[one], aliases.first[one + 1])
        found = dict(zip(aliases.regions[span], aliases.covered[span], strict=True))
        for two in range(len(table)):
            rows = table[[one, two], 1]
            vague = (rows > 1).all() and table[one, 2] != table[two, 2]
            if sets[one] & sets[two]:
                assert two in found
            elif two in found:
                assert vague
            if found.get(two):
                assert sets[two] <= sets[one]


def test_bytes_that_are_never_written_have_no_region() -> None:
    begins = np.array([0, 100, 100, 50], np.int64)
    shapes = np.array([[1, 10, 10]] * 4, np.int64)
    writes = np.array([False, True, False, False])
    numbers = number_regions(begins, shapes, writes).numbers.tolist()
    assert numbers[0] == numbers[3] == READ_ONLY
    assert numbers[1] == numbers[2] != READ_ONLY


def addresses_of(dims: list[tuple[int, int]], element: int) -> list[int]:
    return bytes_of_side(TransferSide(element, tuple(dims)))


@settings(max_examples=70, deadline=None)
@given(st.data())
def test_a_remapped_operand_has_the_same_bytes_on_the_other_side(data: st.DataObject) -> None:
    """Copies of rows, ascending on the near side and in any order on the far side."""
    draw = data.draw
    element = draw(st.sampled_from([1, 2, 4]))
    width = element * draw(st.sampled_from([1, 2, 4, 6]))
    lengths = draw(st.lists(st.integers(2, 4), max_size=2))
    far_strides = [width + draw(st.integers(0, 9)) for _ in lengths]
    near_strides: list[int] = []
    size = width
    for length in reversed(lengths):
        stride = size + element * draw(st.sampled_from([0, 0, 0, 1, 2]))
        near_strides.insert(0, stride)
        size = stride * length
    near, far = (
        slot(
            0,
            Access.WRITE,
            [Dim(n, s, i) for i, (n, s) in enumerate(zip(lengths, side, strict=True))],
            width,
        )
        for side in (near_strides, far_strides)
    )
    where = dict(
        zip(
            bytes_of_side(TransferSide(width, tuple(zip(lengths, near_strides, strict=True)))),
            bytes_of_side(TransferSide(width, tuple(zip(lengths, far_strides, strict=True)))),
            strict=True,
        )
    )
    steps = [element, width, *near_strides, 2 * width]
    dims = [
        (draw(st.integers(1, 3)), draw(st.sampled_from(steps)))
        for _ in range(draw(st.integers(0, 2)))
    ]
    reach = sum((length - 1) * stride for length, stride in dims) + element
    if reach > size:
        return
    offset = draw(st.integers(0, (size - reach) // element)) * element
    operand = slot(9, Access.READ, [Dim(n, s, 10 + i) for i, (n, s) in enumerate(dims)], element)
    reached = [offset + byte for byte in addresses_of(dims, element)]
    moved = remap_operand(operand, offset, near, far)
    if moved is None or not where.keys() >= set(reached):
        return
    strides = dict(moved.strides)
    there = [(n, strides.get(10 + i, s)) for i, (n, s) in enumerate(dims)]
    expected = [where[byte] for byte in reached]
    assert [moved.offset + byte for byte in addresses_of(there, element)] == expected


def test_an_operand_with_fixed_strides_is_not_remapped_to_other_strides() -> None:
    near = slot(0, Access.WRITE, [Dim(4, 8, 1)], 8)
    far = slot(0, Access.READ, [Dim(4, 32, 1)], 8)
    rows = slot(5, Access.READ, [Dim(4, 8, NO_WORD)], 4)
    assert remap_operand(rows, 0, near, far) is None
    within = slot(5, Access.READ, [Dim(2, 4, NO_WORD)], 4)
    moved = remap_operand(within, 16, near, far)
    assert moved is not None
    assert moved.offset == 64


@pytest.mark.parametrize("length", [3, 4])
def test_an_operand_that_crosses_rows_is_not_remapped(length: int) -> None:
    near = slot(0, Access.WRITE, [Dim(4, 8, 1)], 8)
    far = slot(0, Access.READ, [Dim(4, 32, 1)], 8)
    crossing = slot(5, Access.READ, [Dim(length, 4, 6)], 4)
    assert remap_operand(crossing, 0, near, far) is None


@pytest.mark.parametrize("outer", [8, 24, 48])
def test_operands_are_not_remapped_through_a_side_with_interleaved_rows(outer: int) -> None:
    """Four rows 16 bytes apart, and four others between them or after the first of them."""
    near = slot(0, Access.WRITE, [Dim(2, outer, 1), Dim(4, 16, 2)], 8)
    far = slot(0, Access.READ, [Dim(2, 64, 1), Dim(4, 8, 2)], 8)
    steps = slot(5, Access.READ, [Dim(3, outer, 6)], 8)
    assert remap_operand(steps, 0, near, far) is None


def test_operands_are_remapped_through_rows_with_gaps() -> None:
    near = slot(0, Access.WRITE, [Dim(4, 12, 1)], 8)
    far = slot(0, Access.READ, [Dim(4, 32, 1)], 8)
    rows = slot(5, Access.READ, [Dim(4, 12, 6), Dim(4, 2, NO_WORD)], 2)
    moved = remap_operand(rows, 0, near, far)
    assert moved is not None
    assert moved.strides == ((6, 32),)
