"""Operands that several copies bring together are read where they came from."""

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
from driver_layer.testing.small_programs import Add, Copy, Machine, Mix, Product, Side, Step

KEYS = Product(0, act=0, weight=128, out=256, m=1, n=8, k=16, pitch=32)
VALUES = Mix(0, weight=128, zero=64, out=256, m=2, n=20, k=6, pitch=40, half=True, group=1)


def loads(rows: tuple[int, int], width: int, place: int = 128) -> list[Step]:
    """A cache's rows, which lie apart in DDR, and new rows behind them."""
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
    """Which steps are left out, and how many calls there are; the bytes must be right."""
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


def test_keys_of_a_cache_and_of_a_new_token_are_a_call_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = [*loads((7, 1), 16), KEYS, STORE_KEYS]
    assert lowered(made, monkeypatch) == ([True, True, False, True], 2)


def test_values_of_a_cache_and_of_a_new_token_are_one_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its sums are rounded to f16 once."""
    made = [*loads((5, 1), 20), *ZEROS, VALUES, STORE_VALUES]
    assert lowered(made, monkeypatch) == ([True] * 4 + [False, True], 1)


def test_a_part_whose_source_changes_stays_and_the_others_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    change = Copy(Side("fixed", 0, 16, ()), Side("ddr", 40, 16, ()))
    made = [*loads((7, 1), 16), change, KEYS, STORE_KEYS]
    assert lowered(made, monkeypatch) == ([False, True, False, False, True], 4)


def test_a_row_that_is_written_again_comes_from_the_last_to_write_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    again = Copy(Side("fixed", 64, 32, ()), Side("cmx0", 128 + 16 * 3, 32, ()))
    made = [*loads((7, 1), 16), again, KEYS, STORE_KEYS]
    assert lowered(made, monkeypatch) == ([True, True, True, False, True], 4)


def test_rows_that_a_task_wrote_stay_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last two rows are what another product gave, 8 f32."""
    made = [
        *loads((6, 1), 16)[:1],
        Product(0, act=0, weight=0, out=128 + 6 * 16, m=1, n=8, k=16, pitch=32),
        KEYS,
        STORE_KEYS,
    ]
    assert lowered(made, monkeypatch) == ([True, False, False, True], 3)


def test_rows_that_nobody_wrote_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [*loads((6, 1), 16), KEYS, STORE_KEYS]
    assert lowered(made, monkeypatch) == ([True, True, False, True], 3)


def test_zero_points_of_two_rows_are_cut_where_their_groups_begin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    zeros: list[Step] = [
        Copy(Side("fixed", 8, 2, ()), Side("cmx0", 64, 2, ())),
        Copy(Side("fixed", 100, 1, ()), Side("cmx0", 66, 1, ())),
    ]
    values = replace(VALUES, group=2)
    made = [*loads((4, 2), 20), *zeros, values, STORE_VALUES]
    assert lowered(made, monkeypatch) == ([True] * 4 + [False, True], 1)
    # A bound within a group: all of it is copied.
    made = [*loads((5, 1), 20), *zeros, values, STORE_VALUES]
    assert lowered(made, monkeypatch) == ([False] * 4 + [False, True], 5)


def test_rows_that_only_tasks_wrote_are_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Step] = [
        Add(0, src=0, dst=128, rows=1, cols=112, src_pitch=112, dst_pitch=112),
        Add(0, src=0, dst=240, rows=1, cols=16, src_pitch=16, dst_pitch=16),
        KEYS,
        STORE_KEYS,
    ]
    assert lowered(made, monkeypatch) == ([False, False, False, True], 3)


def test_products_of_different_sizes_with_the_same_weights_are_cut_each_for_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = replace(KEYS, m=2, out=400)
    store = Copy(Side("cmx0", 400, 64, ()), Side("ddr", 360, 64, ()))
    made = [*loads((7, 1), 16), KEYS, other, STORE_KEYS, store]
    assert lowered(made, monkeypatch) == ([True, True, False, False, True, True], 4)


def test_a_product_that_overwrites_its_weights_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    over = replace(KEYS, out=128)
    store = Copy(Side("cmx0", 128, 32, ()), Side("ddr", 320, 32, ()))
    made = [*loads((7, 1), 16), over, store]
    assert lowered(made, monkeypatch) == ([False] * 4, 4)


def test_where_parts_overlap_too_much_to_look_at_operands_stay_whole(
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
        ([write(32, 8), write(-16, 400)], (BY_ROW, (0, 2, 3, 8))),  # a part of a row is all of it
        ([write(112, 16, by_copy=False), write(0, 112, by_copy=False)], None),
        ([write(0, 128, by_copy=False), write(0, 64)], None),  # nothing is left of the copy
        ([write(0, 128)], None),
        ([write(0, 16)], (BY_ROW, (0, 1, 8))),
        ([Write(8, 8, 16, 8, True), Write(0, 8, 16, 8, True)], (BY_BYTE, (0, 8, 16))),
        ([Write(6, 8, 16, 10, True), Write(0, 8, 16, 6, True)], None),  # no multiple of 4
    ],
)
def test_borders_are_where_the_newest_writer_changes(
    writes: list[Write], expected: tuple[SplitDim, tuple[int, ...]] | None
) -> None:
    assert choose_split(TEMPLATE, {0: writes}) == expected


@pytest.mark.parametrize(
    ("writes", "expected"),
    [
        # The second half of all rows but the first.
        ([Write(24, 7, 16, 8, True), Write(0, 8, 16, 8, True)], (BY_BYTE, (0, 8, 16))),
        # From one row into the next: other bytes of each.
        ([write(12, 8), write(0, 128)], None),
    ],
)
def test_borders_within_rows_are_those_of_all_rows(
    writes: list[Write], expected: tuple[SplitDim, tuple[int, ...]] | None
) -> None:
    assert choose_split(replace(TEMPLATE, split_dims=(BY_BYTE,)), {0: writes}) == expected


def test_what_is_written_between_rows_touches_none() -> None:
    apart = slot(1, Access.READ, [Dim(8, 20, 2), Dim(16, 1, NO_WORD)], 1)
    template = replace(TEMPLATE, slots=(apart,))
    found = choose_split(template, {0: [write(56, 44), write(0, 160)]})
    assert found == (BY_ROW, (0, 3, 5, 8))
