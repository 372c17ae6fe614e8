"""Variables updated in place: no value is read too late, and few are copied."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import elementwise
from compiler_layer.dialects.ov.state import Assign, ReadValue
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.model import Model
from compiler_layer.pipeline import Options, lower
from compiler_layer.schedule.barriers import queues_of
from compiler_layer.schedule.dependencies import dependencies
from compiler_layer.schedule.hazards import hazards
from compiler_layer.schedule.in_place import order_in_place
from compiler_layer.schedule.layout import BufferLayout
from compiler_layer.schedule.tasks import Task, Transfer
from compiler_layer.schedule.views import View
from driver_layer.abi.platforms import PLATFORMS

PLATFORM = PLATFORMS["4000"]
Values = Sequence[SSAValue]
Renew = Callable[[GraphBuilder, Values], Values]


def lowered(renew: Renew, size: int, count: int) -> Model:
    """Return a model whose variables ``renew`` updates; y depends on the first one's old value."""
    kind = tensor("f32", (size, size))
    model, (x,) = Model.build([("x", kind)])
    g = GraphBuilder(model)
    ids = [StringAttr(f"v{number}") for number in range(count)]
    reads = [
        g.add(ReadValue(operands=[[]], properties={"variable_id": name}, result_types=[kind]))
        for name in ids
    ]
    old = [read.output for read in reads]
    for name, new in zip(ids, renew(g, old), strict=True):
        g.add(Assign.make([new], variable_id=name))
    model.set_outputs([("y", g.op(elementwise.Add, x, old[0]))])
    lower(model, Options(precision="f32", fold=False))
    return model


def add_one(g: GraphBuilder, old: Values) -> Values:
    return [g.op(elementwise.Add, value, g.number(1, value)) for value in old]


def swap(g: GraphBuilder, old: Values) -> Values:
    return [old[1], old[0]]


def turn(g: GraphBuilder, old: Values) -> Values:
    return [g.transpose(value, 1, 0) for value in old]


def square(g: GraphBuilder, old: Values) -> Values:
    return [g.matmul(value, value, False) for value in old]


def keep(g: GraphBuilder, old: Values) -> Values:
    return old


def copied_last(laid_out: BufferLayout) -> list[str]:
    """Return the variables that are copied after all other ops."""
    names = []
    for op in reversed(laid_out.ops):
        (target, *_) = op.results
        if op.op is not None or target.buffer.shares is None:
            break
        names.append(target.buffer.name.removeprefix("vpux_ie_assign_"))
    return sorted(names)


@pytest.mark.parametrize(
    ("renew", "size", "count", "copied"),
    [
        (add_one, 64, 1, []),
        (add_one, 1200, 2, ["v0"]),  # y is computed from its old value, later
        (square, 64, 1, []),
        (turn, 1200, 1, ["v0"]),
        (swap, 64, 2, ["v0", "v1"]),
    ],
)
def test_only_variables_that_would_be_read_too_late_are_copied(
    renew: Renew, size: int, count: int, copied: list[str]
) -> None:
    laid_out, _ = order_in_place(lowered(renew, size, count), PLATFORM)
    assert copied_last(laid_out) == copied


CASES = [
    (renew, size, count)
    for renew, count in ((add_one, 2), (turn, 2), (square, 1), (swap, 2), (keep, 1))
    for size in (40, 280)
]


@pytest.mark.parametrize(("renew", "size", "count"), CASES)
def test_no_byte_of_an_old_value_is_read_after_its_overwrite(renew, size, count) -> None:
    _, ordered = order_in_place(lowered(renew, size, count), PLATFORM)
    written: dict[object, set[int]] = {}
    for task in ordered.tasks:
        source, target = ends(task)
        if source is not None and source.buffer in written and not onto_itself(source, target):
            assert not written[source.buffer] & byte_offsets(source)
        if target is not None and target.buffer.shares is not None:
            seen = written.setdefault(target.buffer.shares, set())
            if onto_itself(source, target):
                continue
            assert (
                source is None
                or source.buffer is not target.buffer.shares
                or not (byte_offsets(source) & byte_offsets(target))
            )
            seen |= byte_offsets(target)


@pytest.mark.matrix
@pytest.mark.parametrize(("renew", "size", "count"), CASES)
def test_every_hazard_of_a_variable_in_place_is_a_dependency(renew, size, count) -> None:
    _, ordered = order_in_place(lowered(renew, size, count), PLATFORM)
    tasks = ordered.tasks
    queues = queues_of(tasks, PLATFORM.dma_ports)
    waits = dependencies(tasks, queues)
    done: list[set[int]] = []
    last: dict[object, int] = {}
    for index, found in enumerate(hazards(tasks, queues)):
        direct = waits[index] | ({last[queues[index]]} if queues[index] in last else set())
        done.append(direct.union(*(done[other] for other in direct)))
        last[queues[index]] = index
        assert {other for other in found if tasks[other].op != tasks[index].op} <= done[index]


def ends(task: Task) -> tuple[View | None, View | None]:
    """Return the views outside of CMX that a task reads and writes."""
    if not isinstance(task.work, Transfer):
        return None, None
    source, target = task.work.source, task.work.target
    return (
        source if isinstance(source, View) else None,
        target if isinstance(target, View) else None,
    )


def onto_itself(source: View | None, target: View | None) -> bool:
    if source is None or target is None:
        return False
    same = (source.offset, source.shape, source.strides) == (
        target.offset,
        target.shape,
        target.strides,
    )
    return same and source.buffer is target.buffer.shares


def byte_offsets(view: View) -> set[int]:
    at = np.array([view.offset])
    for size, stride in zip(view.shape, view.strides, strict=True):
        at = (at[:, None] + np.arange(size) * stride).reshape(-1)
    return set((at[:, None] + np.arange(view.itemsize)).reshape(-1).tolist())
