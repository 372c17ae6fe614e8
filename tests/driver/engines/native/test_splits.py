"""Splitting of operands that several copies write, so that their sources are read directly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from driver_layer.engines.native import NativeExecutor, executor
from driver_layer.engines.native.lower.split_points import Write, choose_split
from driver_layer.engines.native.lower.template import (
    NO_WORD,
    Access,
    Axis,
    Dim,
    SplitDim,
    Template,
    slot,
)
from driver_layer.engines.reference import ReferenceEngines
from driver_layer.engines.task_by_task import TaskByTask
from driver_layer.testing.small_programs import Add, Copy, Machine, Matmul, Mix, Side, Step

KEYS = Matmul(0, act=0, weight=128, out=256, m=1, n=8, k=16, pitch=32)
VALUES = Mix(0, weight=128, zero=64, out=256, m=2, n=20, k=6, pitch=40, half=True, group=1)


def loads(rows: tuple[int, int], width: int, place: int = 128) -> list[Step]:
    """Load a cache's rows, which have gaps in DDR, and new rows after them."""
    past, new = rows
    cache = Side("ddr", 0, width, ((past, width + 4),))
    return [
        Copy(cache, Side("cmx0", place, width, ((past, width),))),
        Copy(
            Side("fixed", 32, new * width, ()),
            Side("cmx0", place + past * width, new * width, ()),
        ),
    ]


ZEROS: list[Step] = [
    Copy(Side("fixed", 8, 2, ()), Side("cmx0", 64, 2, ())),
    Copy(Side("fixed", 100, 4, ()), Side("cmx0", 66, 4, ())),
]
STORE_KEYS = Copy(Side("cmx0", 256, 32, ()), Side("ddr", 320, 32, ()))
STORE_VALUES = Copy(Side("cmx0", 256, 80, ()), Side("ddr", 320, 80, ()))


def lowered(made: list[Step], monkeypatch: pytest.MonkeyPatch) -> tuple[list[bool], int]:
    """Return which operations are eliminated, and the number of calls, after checking the bytes."""
    seen: list[Any] = []
    real_propagate, real_build_table = executor.propagate_copies, executor.build_table

    def propagate_copies(*arguments: Any) -> Any:
        seen.append(real_propagate(*arguments))
        return seen[-1]

    def build_table(*arguments: Any) -> Any:
        seen.append(real_build_table(*arguments))
        return seen[-1]

    monkeypatch.setattr(executor, "propagate_copies", propagate_copies)
    monkeypatch.setattr(executor, "build_table", build_table)
    expected = Machine().run(made, TaskByTask(ReferenceEngines()))
    assert Machine().run(made, NativeExecutor()) == expected
    propagation, lowered = seen
    return propagation.eliminated.tolist(), len(lowered.table.rows)


def test_keys_of_a_cache_and_of_a_new_token_need_one_call_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = [*loads((7, 1), 16), KEYS, STORE_KEYS]
    assert lowered(made, monkeypatch) == ([True, True, False, True], 2)


def test_values_of_a_cache_and_of_a_new_token_need_one_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One call rounds the sums to f16 only once."""
    made = [*loads((5, 1), 20), *ZEROS, VALUES, STORE_VALUES]
    assert lowered(made, monkeypatch) == ([True] * 4 + [False, True], 1)


def test_only_the_part_whose_source_changes_is_copied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    change = Copy(Side("fixed", 0, 16, ()), Side("ddr", 40, 16, ()))
    made = [*loads((7, 1), 16), change, KEYS, STORE_KEYS]
    assert lowered(made, monkeypatch) == ([False, True, False, False, True], 4)


def test_an_overwritten_row_is_read_from_the_source_of_its_last_writer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    again = Copy(Side("fixed", 64, 32, ()), Side("cmx0", 128 + 16 * 3, 32, ()))
    made = [*loads((7, 1), 16), again, KEYS, STORE_KEYS]
    assert lowered(made, monkeypatch) == ([True, True, True, False, True], 4)


def test_rows_that_a_task_wrote_are_read_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last two rows are another matmul's output, 8 f32."""
    made = [
        *loads((6, 1), 16)[:1],
        Matmul(0, act=0, weight=0, out=128 + 6 * 16, m=1, n=8, k=16, pitch=32),
        KEYS,
        STORE_KEYS,
    ]
    assert lowered(made, monkeypatch) == ([True, False, False, True], 3)


def test_rows_without_a_writer_are_read_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [*loads((6, 1), 16), KEYS, STORE_KEYS]
    assert lowered(made, monkeypatch) == ([True, True, False, True], 3)


def test_zero_points_of_groups_of_two_rows_are_split_at_group_boundaries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    zeros: list[Step] = [
        Copy(Side("fixed", 8, 2, ()), Side("cmx0", 64, 2, ())),
        Copy(Side("fixed", 100, 1, ()), Side("cmx0", 66, 1, ())),
    ]
    values = replace(VALUES, group=2)
    made = [*loads((4, 2), 20), *zeros, values, STORE_VALUES]
    assert lowered(made, monkeypatch) == ([True] * 4 + [False, True], 1)
    # With a bound within a group, all operands are copied.
    made = [*loads((5, 1), 20), *zeros, values, STORE_VALUES]
    assert lowered(made, monkeypatch) == ([False] * 4 + [False, True], 5)


def test_rows_that_no_copy_wrote_are_not_split(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Step] = [
        Add(0, src=0, dst=128, rows=1, cols=112, src_pitch=112, dst_pitch=112),
        Add(0, src=0, dst=240, rows=1, cols=16, src_pitch=16, dst_pitch=16),
        KEYS,
        STORE_KEYS,
    ]
    assert lowered(made, monkeypatch) == ([False, False, False, True], 3)


def test_matmuls_of_different_sizes_with_the_same_weights_are_split_independently(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = replace(KEYS, m=2, out=400)
    store = Copy(Side("cmx0", 400, 64, ()), Side("ddr", 360, 64, ()))
    made = [*loads((7, 1), 16), KEYS, other, STORE_KEYS, store]
    assert lowered(made, monkeypatch) == ([True, True, False, False, True, True], 4)


def test_a_matmul_that_overwrites_its_weights_is_not_split(monkeypatch: pytest.MonkeyPatch) -> None:
    over = replace(KEYS, out=128)
    store = Copy(Side("cmx0", 128, 32, ()), Side("ddr", 320, 32, ()))
    made = [*loads((7, 1), 16), over, store]
    assert lowered(made, monkeypatch) == ([False] * 4, 4)


def test_operands_are_not_split_if_their_parts_have_too_many_aliases(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: list[Any] = []
    real = executor.find_aliases

    def find_aliases(regions: Any) -> Any:
        found.append(None if found else real(regions))
        return found[-1]

    made = [*loads((7, 1), 16), KEYS, STORE_KEYS]
    with monkeypatch.context() as patched:
        patched.setattr(executor, "find_aliases", find_aliases)
        assert lowered(made, patched) == ([False, False, False, True], 3)
    assert len(found) == 2


ROWS = slot(1, Access.READ, [Dim(8, 16, 2), Dim(16, 1, NO_WORD)], 1)
BY_ROW = SplitDim(0, (Axis(0, 0, 1),), 1, (), NO_WORD)
BY_BYTE = SplitDim(3, (Axis(0, 1, 1),), 4, (), NO_WORD)
TEMPLATE = Template(None, (8, 0, 16, 16), (ROWS,), split_dims=(BY_ROW, BY_BYTE))


def write(begin: int, size: int, *, by_copy: bool = True) -> Write:
    return Write(begin, 1, size, size, by_copy)


@pytest.mark.parametrize(
    ("writes", "expected"),
    [
        ([write(112, 16), write(0, 112)], (BY_ROW, (0, 7, 8))),
        ([write(32, 16), write(-16, 400)], (BY_ROW, (0, 2, 3, 8))),
        ([write(32, 8), write(-16, 400)], (BY_ROW, (0, 2, 3, 8))),  # a partly written row counts
        ([write(112, 16, by_copy=False), write(0, 112, by_copy=False)], None),
        ([write(0, 128, by_copy=False), write(0, 64)], None),  # the copy is overwritten completely
        ([write(0, 128)], None),
        ([write(0, 16)], (BY_ROW, (0, 1, 8))),
        ([Write(8, 8, 16, 8, True), Write(0, 8, 16, 8, True)], (BY_BYTE, (0, 8, 16))),
        ([Write(6, 8, 16, 10, True), Write(0, 8, 16, 6, True)], None),  # not a multiple of 4
    ],
)
def test_split_points_are_where_the_newest_writer_changes(
    writes: list[Write], expected: tuple[SplitDim, tuple[int, ...]] | None
) -> None:
    assert choose_split(TEMPLATE, {0: writes}) == expected


@pytest.mark.parametrize(
    ("writes", "expected"),
    [
        # The second half of all rows except the first.
        ([Write(24, 7, 16, 8, True), Write(0, 8, 16, 8, True)], (BY_BYTE, (0, 8, 16))),
        # From one row into the next: different bytes of each.
        ([write(12, 8), write(0, 128)], None),
    ],
)
def test_split_points_within_rows_must_be_equal_in_all_rows(
    writes: list[Write], expected: tuple[SplitDim, tuple[int, ...]] | None
) -> None:
    assert choose_split(replace(TEMPLATE, split_dims=(BY_BYTE,)), {0: writes}) == expected


def test_writes_to_gaps_between_rows_touch_no_row() -> None:
    apart = slot(1, Access.READ, [Dim(8, 20, 2), Dim(16, 1, NO_WORD)], 1)
    template = replace(TEMPLATE, slots=(apart,))
    found = choose_split(template, {0: [write(56, 44), write(0, 160)]})
    assert found == (BY_ROW, (0, 3, 5, 8))
