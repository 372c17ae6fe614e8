"""Equality of the native issue order and ``npu.order``'s."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from driver_layer.abi.tasks import BARRIER_CONFIG
from driver_layer.engines.native import NativeExecutor
from driver_layer.errors import DeviceFault
from driver_layer.npu.order import issue_order
from driver_layer.npu.program import Program
from driver_layer.testing.queues import QueuedTask, queue_of

PHYSICAL = 70


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Draw tasks in an order that respects all barriers, in a few queues; sometimes with a flaw."""
    count = draw(st.integers(1, 10))
    queue_of_task = draw(st.lists(st.sampled_from("abc"), min_size=count, max_size=count))
    # Successive barriers, each between tasks before and after a border.
    borders = sorted(draw(st.lists(st.integers(1, count), max_size=5)))
    configs = np.zeros(len(borders), BARRIER_CONFIG)
    waits, posts = [0] * count, [0] * count
    last: dict[int, int] = {}
    for virtual, border in enumerate(borders):
        real = draw(st.sampled_from([0, 1, 64, 69]))
        configs[virtual]["real_id"], configs[virtual]["next_same_id"] = real, -1
        if real in last:
            configs[last[real]]["next_same_id"] = virtual
        last[real] = virtual
        begin = borders[virtual - 1] if virtual else 0
        producers = [t for t in range(begin, border) if draw(st.booleans())]
        consumers = [t for t in range(border, count) if draw(st.integers(0, 3)) == 0]
        configs[virtual]["producers"], configs[virtual]["consumers"] = (
            len(producers),
            len(consumers),
        )
        for task in producers:
            posts[task] |= 1 << real
        for task in consumers:
            waits[task] |= 1 << real
    if len(configs) and draw(st.integers(0, 5)) == 0:
        configs[0][draw(st.sampled_from(["producers", "consumers"]))] += 1
    queues: dict[str, list[QueuedTask]] = defaultdict(list)
    for task in range(count):
        after = draw(st.integers(0, len(borders))) if draw(st.integers(0, 4)) == 0 else 0
        queues[queue_of_task[task]].append(QueuedTask(waits[task], posts[task], after))
    return Program(tuple(queue_of(name, tasks) for name, tasks in queues.items()), configs, ())


def found(order, program: Program) -> object:
    """Return the order's steps, or the fault's message."""
    try:
        return list(order(program, PHYSICAL).steps())
    except DeviceFault as fault:
        return str(fault)


@settings(max_examples=100, deadline=None)
@given(programs())
def test_the_native_issue_order_equals_the_reference_order(program: Program) -> None:
    assert found(NativeExecutor().order, program) == found(issue_order, program)
