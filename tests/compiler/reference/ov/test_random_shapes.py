"""Comparison of ops that move, concatenate and slice with OpenVINO, in drawn cases.

A case is a function of draws; it returns a function that builds the op, and the op's inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np
import openvino.opset1 as op_1
import openvino.opset15 as op
import pytest
from hypothesis import given
from hypothesis import strategies as st

Case = Callable[..., tuple[Any, ...]]
"""Function from draws to a builder of the op, its inputs, and indices of required constants."""


def shape_of(draws: Any) -> tuple[Any, ...]:
    element = draws.one_of("i32", "i64")
    return lambda x: op.shape_of(x, element), [draws.numbers(draws.shape(least=0))]


def reshape(draws: Any) -> tuple[Any, ...]:
    """Draw patterns that merge or reorder dimensions, infer one with -1, or keep some with 0."""
    shape = draws.shape()
    pattern = [shape[i] for i in draws.order(len(shape))]
    if draws.flag():
        pattern = [prod(pattern[:2]), *pattern[2:], *[1] * draws.whole(0, 2)]
    special = draws.flag()
    for i, (d, new) in enumerate(zip(shape, pattern, strict=False)):
        if special and d == new and draws.flag():
            pattern[i] = 0
    if draws.flag():
        pattern[draws.whole(0, len(pattern) - 1)] = -1
    return lambda x, p: op.reshape(x, p, special), [draws.numbers(shape), draws.vector(pattern)]


def transpose(draws: Any) -> tuple[Any, ...]:
    x = draws.numbers(draws.shape())
    order = draws.order(x.ndim) if draws.flag() else []  # empty: reversed
    return op.transpose, [x, draws.vector(order)]


def unsqueeze(draws: Any) -> tuple[Any, ...]:
    shape = draws.shape(least=0, most=3)
    rank = len(shape) + draws.whole(1, 2)
    axes = [i - rank if draws.flag() else i for i in draws.order(rank)[: rank - len(shape)]]
    return op.unsqueeze, [draws.numbers(shape), draws.vector(axes)]


def squeeze(draws: Any) -> tuple[Any, ...]:
    shape = [1 if draws.flag() else d for d in draws.shape()]
    x = draws.numbers(shape)
    ones = [i for i in draws.axes(len(shape)) if shape[i] == 1]
    if not ones:
        return op.squeeze, [x]
    return draws.one_of(op.squeeze, op_1.squeeze), [x, draws.vector(ones)]


def broadcast(draws: Any) -> tuple[Any, ...]:
    shape = draws.shape()
    small = draws.broadcast_to(shape)
    if draws.flag():
        target = draws.broadcast_to(shape) or [1]
        build = partial(op.broadcast, broadcast_spec="BIDIRECTIONAL")
        return build, [draws.numbers(small), draws.vector(target)]
    return op.broadcast, [draws.numbers(small), draws.vector(shape)]


def tile(draws: Any) -> tuple[Any, ...]:
    repeats = [draws.whole(1, 3) for _ in range(draws.whole(1, 4))]
    return op.tile, [draws.numbers(draws.shape(longest=4)), draws.vector(repeats)]


def pad(draws: Any) -> tuple[Any, ...]:
    """Draw pads; constant mode may also crop, and reflections stay within the tensor."""
    shape = draws.shape()
    mode = draws.one_of("constant", "edge", "reflect", "symmetric")
    longest = [min(3, {"reflect": d - 1, "symmetric": d}.get(mode, 3)) for d in shape]
    ends = [[draws.whole(0, n) for n in longest] for _ in range(2)]
    if mode == "constant":
        taken = [draws.whole(0, (d - 1) // 2) for d in shape]
        ends[draws.whole(0, 1)] = [-n for n in taken]
    x = draws.floats(shape)
    inputs = [x, *(draws.vector(end) for end in ends)]
    if mode == "constant" and draws.flag():
        inputs.append(np.float32(1.5))
        # The CPU plugin treats a value that is not a constant as 0.
        return lambda x, b, e, v: op.pad(x, b, e, mode, v), inputs, (3,)
    return lambda x, b, e: op.pad(x, b, e, mode), inputs


def concat(draws: Any) -> tuple[Any, ...]:
    shape = draws.shape()
    axis = draws.axis(len(shape))
    parts = []
    for _ in range(draws.whole(1, 4)):
        part = list(shape)
        part[axis] = draws.whole(1, 5)
        parts.append(draws.floats(part))
    return lambda *parts: op.concat(list(parts), axis), parts


def split(draws: Any) -> tuple[Any, ...]:
    shape, parts = draws.shape(), draws.whole(1, 4)
    axis = draws.axis(len(shape))
    shape[axis] *= parts
    return lambda x, at: op.split(x, at, parts), [draws.numbers(shape), draws.vector(axis)]


def variadic_split(draws: Any) -> tuple[Any, ...]:
    shape = draws.shape()
    axis = draws.axis(len(shape))
    lengths = [draws.whole(1, 3) for _ in range(draws.whole(1, 4))]
    shape[axis] = sum(lengths)
    if draws.flag():
        lengths[draws.whole(0, len(lengths) - 1)] = -1  # inferred from the rest
    inputs = [draws.numbers(shape), draws.vector(axis), draws.vector(lengths)]
    return op.variadic_split, inputs, (2,)  # otherwise the number of parts may be unknown


def roll(draws: Any) -> tuple[Any, ...]:
    """Draw shifts beyond the length, in both directions, possibly twice along an axis."""
    shape = draws.shape()
    axes = [draws.axis(len(shape)) for _ in range(draws.whole(1, 3))]
    shifts = [draws.whole(-5, 5) for _ in axes]
    return op.roll, [draws.numbers(shape), draws.vector(shifts), draws.vector(axes)]


def slice_(draws: Any) -> tuple[Any, ...]:
    shape = draws.shape()
    axes = draws.axes(len(shape)) if draws.flag() else None
    cuts = [_cut(draws, shape[i]) for i in (axes or range(len(shape)))]
    bounds = [draws.vector(list(each)) for each in zip(*cuts, strict=True)]
    inputs = [draws.numbers(shape), *bounds, *([draws.vector(axes)] if axes else [])]
    return op.slice, inputs, (4,)  # the CPU plugin crashes if axes are not constant


def _cut(draws: Any, length: int) -> tuple[int, int, int]:
    """Draw start, stop and step of a non-empty slice; one end may be beyond the tensor.

    Empty slices are excluded: the CPU plugin returns another shape for them.
    """
    first, last = sorted(draws.whole(0, length - 1) for _ in range(2))
    step = draws.one_of(1, 2, -1, -2)
    if step > 0:
        start, stop = first, draws.one_of(last + 1, length + 3)
    else:
        start, stop = draws.one_of(last, length + 3), first - 1 if first else -length - 1
    return draws.one_of(start, start - length if start < length else start), stop, step


def strided_slice(draws: Any) -> tuple[Any, ...]:
    """Draw ``x[a:b:c, ..., None]`` or ``x[a:b:c, ..., d]``, with entries in any order.

    OpenVINO's CPU plugin computes the combination wrongly, unlike its reference implementation.
    """
    shape = draws.shape()
    mentioned = draws.whole(0, len(shape))
    new = draws.whole(0 if mentioned else 1, 2)
    kinds = ["cut"] * mentioned + ["new"] * new
    kinds = [kinds[i] for i in draws.order(len(kinds))]
    if draws.flag():
        kinds.insert(draws.whole(0, len(kinds)), "ellipsis")
    after = kinds[kinds.index("ellipsis") :].count("cut") if "ellipsis" in kinds else 0
    lengths = iter([*shape[: mentioned - after], *shape[len(shape) - after :]])
    entries = [_entry(draws, next(lengths), new == 0) if k == "cut" else _no_cut(k) for k in kinds]
    bounds = [draws.vector([entry[i] for entry in entries]) for i in range(3)]
    masks = [[entry[i] for entry in entries] for i in range(3, 8)]
    return lambda x, *bounds: op.strided_slice(x, *bounds, *masks), [draws.numbers(shape), *bounds]


def _entry(draws: Any, length: int, may_shrink: bool) -> tuple[int, ...]:
    """Draw begin, end, stride, and the five masks of an entry."""
    if may_shrink and draws.flag():
        at = draws.whole(-length, length - 1)
        return at, at + 1, 1, 0, 0, 0, 1, 0
    return *_cut(draws, length), int(draws.flag()), int(draws.flag()), 0, 0, 0


def _no_cut(kind: str) -> tuple[int, ...]:
    return 0, 0, 1, 0, 0, int(kind == "new"), 0, int(kind == "ellipsis")


def range_(draws: Any) -> tuple[Any, ...]:
    """Draw integers, and floats with steps that are exact in binary."""
    step = draws.one_of(1, 2, 3, -1, -2)
    start = draws.whole(-5, 5)
    stop = start + step * draws.whole(1, 6) - draws.one_of(0, step // abs(step))
    stop = stop if stop != start else stop + step
    element, kind, unit = draws.one_of(("i64", "i8", 1), ("i32", "i4", 1), ("f32", "f4", 0.25))
    bounds = [np.array(v * unit, kind) for v in (start, stop, step)]
    return lambda *bounds: op.range(*bounds, element), bounds


CASES: dict[str, Case] = {
    "ShapeOf": shape_of,
    "Reshape": reshape,
    "Transpose": transpose,
    "Unsqueeze": unsqueeze,
    "Squeeze": squeeze,
    "Broadcast": broadcast,
    "Tile": tile,
    "Pad": pad,
    "Concat": concat,
    "Split": split,
    "VariadicSplit": variadic_split,
    "Roll": roll,
    "Slice": slice_,
    "StridedSlice": strided_slice,
    "Range": range_,
}
"""Cases by type of layer."""


@pytest.mark.matrix
@pytest.mark.parametrize("kind", CASES)
@given(data=st.data())
def test_shapes(check_drawn: Callable[..., None], kind: str, data: st.DataObject) -> None:
    check_drawn(kind, data, CASES[kind])
