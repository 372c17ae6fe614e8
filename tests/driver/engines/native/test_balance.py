"""Load balancing: splitting calls and sharing units over threads leaves results unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driver_layer.engines.native import NativeExecutor
from driver_layer.engines.native.dispatch.team import Team
from driver_layer.engines.native.executor import host_kernels
from driver_layer.engines.native.jit.host import detect
from driver_layer.engines.native.lower import balance, table, work_units
from driver_layer.engines.native.lower.calls import Calls
from driver_layer.engines.reference import ReferenceEngines
from driver_layer.engines.task_by_task import TaskByTask
from driver_layer.testing.small_programs import Copy, Machine, Matmul, Mix, Side, Step

THREADS = 3


@pytest.fixture(scope="module")
def team() -> Team:
    return Team(host_kernels(detect()), THREADS)


@pytest.fixture(scope="module")
def everything_is_large() -> Iterator[None]:
    """Set limits such that every call is split, and every operand prefetched."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(balance, "_MIN_COST", 1)
        patch.setattr(balance, "_COLUMN_MULTIPLE", 2)
        patch.setattr(balance, "_BLOCK_COLUMNS", 2)
        patch.setattr(work_units, "_MIN_BYTES", 1)
        yield


@pytest.mark.long
@pytest.mark.usefixtures("everything_is_large")
@settings(max_examples=70, deadline=None)
@given(data=st.data())
def test_any_program_with_split_calls_leaves_the_same_bytes_as_the_reference(
    programs: st.SearchStrategy[list[Step]], team: Team, data: st.DataObject
) -> None:
    made = data.draw(programs)
    expected = Machine().run(made, TaskByTask(ReferenceEngines()))
    assert Machine().run(made, NativeExecutor(team=team)) == expected


@pytest.mark.usefixtures("everything_is_large")
def test_values_in_two_parts_are_split_in_both_parts(team: Team) -> None:
    values = Mix(0, weight=128, zero=64, out=256, m=2, n=20, k=6, pitch=40, half=True, group=1)
    made: list[Step] = [
        Copy(Side("ddr", 0, 20, ((4, 24),)), Side("cmx0", 128, 80, ())),
        Copy(Side("fixed", 32, 40, ()), Side("cmx0", 208, 40, ())),
        values,
        Copy(Side("cmx0", 256, 80, ()), Side("ddr", 320, 80, ())),
    ]
    expected = Machine().run(made, TaskByTask(ReferenceEngines()))
    assert Machine().run(made, NativeExecutor(team=team)) == expected


@pytest.mark.usefixtures("everything_is_large")
def test_interleaved_keys_of_several_heads_are_read_in_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Blocks of two heads alternate, as the heads' keys alternate by token."""
    team = Team(host_kernels(detect()), 2)
    seen: list[work_units.WorkUnits] = []
    real = table.make_work_units

    def make_work_units(calls: Calls, queues: int) -> work_units.WorkUnits:
        seen.append(real(calls, queues))
        return seen[-1]

    monkeypatch.setattr(table, "make_work_units", make_work_units)
    tokens, width = 6, 8
    made: list[Step] = []
    for head in range(2):
        cache = Side("fixed", head * width, width, ((tokens, 2 * width),))
        keys = Side("cmx0", 128 + head * 64, width, ((tokens, width),))
        made += [
            Copy(cache, keys),
            Matmul(0, head * width, 128 + head * 64, 256 + head * 64, 1, tokens, width, 24),
            Copy(Side("cmx0", 256 + head * 64, 24, ()), Side("ddr", 320 + head * 32, 24, ())),
        ]
    expected = Machine().run(made, TaskByTask(ReferenceEngines()))
    assert Machine().run(made, NativeExecutor(team=team)) == expected
    address, size = seen[-1].calls.streams()
    begins = address[size > 0] - address[size > 0].min()
    assert begins.tolist() == [0, 8, 32, 40, 64, 72]


costs = st.lists(st.lists(st.sampled_from([1, 3, 10]), min_size=1, max_size=9), max_size=6)


@given(levels=costs, queues=st.integers(1, 4))
def test_queues_get_equal_shares_of_consecutive_units(levels: list[list[int]], queues: int) -> None:
    ordered = [sorted(level, reverse=True) for level in levels]
    level = np.repeat(np.arange(len(ordered)), [len(one) for one in ordered])
    cost = np.array([cost for one in ordered for cost in one], np.int64)
    queue = work_units._assign_queues(level, cost, queues)  # pyright: ignore[reportPrivateUsage]
    for number in range(len(ordered)):
        counts = np.bincount(queue[level == number], minlength=queues)
        assert counts.max() - counts.min() <= 1 + len({*ordered[number]})
        for size in {*ordered[number]}:
            owners = queue[(level == number) & (cost == size)].tolist()
            assert np.ptp(np.bincount(owners, minlength=queues)) <= 1
            # The units of a queue are consecutive.
            assert sum(a != b for a, b in pairwise(owners)) == len(set(owners)) - 1
