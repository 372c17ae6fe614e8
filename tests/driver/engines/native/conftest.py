"""Strategies for small programs: tasks of all kinds, and operands assembled by several copies."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import strategies as st

from driver_layer.engines.native import NativeExecutor, executor
from driver_layer.engines.reference import ReferenceEngines
from driver_layer.engines.task_by_task import TaskByTask
from driver_layer.testing.small_programs import (
    BYTES,
    Add,
    Copy,
    Fill,
    Machine,
    Matmul,
    Mix,
    Side,
    Step,
)

_WAYS = [
    ("ddr", "cmx0"),
    ("fixed", "cmx0"),
    ("ddr", "cmx1"),
    ("cmx0", "ddr"),
    ("cmx1", "ddr"),
    ("cmx0", "cmx1"),
    ("ddr", "ddr"),
]


@st.composite
def sides(draw: st.DrawFn, memory: str, size: int) -> Side:
    """Draw a side of ``size`` bytes, in a shape that compilers use, or any."""
    width = draw(st.sampled_from([w for w in (4, 8, 16, 32, size) if size % w == 0]))
    return draw(rows(memory, size // width, width))


@st.composite
def rows(draw: st.DrawFn, memory: str, count: int, width: int) -> Side:
    """Draw rows anywhere in a memory, contiguous or with gaps."""
    dims: list[tuple[int, int]] = []
    reach = width
    if count > 1:
        stride = draw(st.sampled_from([width, width, width + 4, 2 * width]))
        reach = (count - 1) * stride + width
        dims.append((count, stride))
    offset = draw(st.integers(0, (BYTES - reach) // 4)) * 4
    return Side(memory, offset, width, tuple(dims))


@st.composite
def copies(draw: st.DrawFn) -> Copy:
    size = draw(st.sampled_from([16, 32, 64, 128]))
    src, dst = draw(st.sampled_from(_WAYS))
    return Copy(draw(sides(src, size)), draw(sides(dst, size)))


def places(size: int) -> st.SearchStrategy[int]:
    """Draw offsets in a tile; few, so that tasks alias."""
    return st.integers(0, (BYTES - size) // 16).map(lambda n: 16 * n)


@st.composite
def sums(draw: st.DrawFn) -> Add:
    rows, cols = draw(st.sampled_from([(1, 16), (1, 64), (4, 16), (8, 4)]))
    pitches = [draw(st.sampled_from([cols, cols, cols + 4, 0])) for _ in range(2)]
    pitches[1] = pitches[1] or cols
    src, dst = (draw(places((rows - 1) * pitch + cols)) for pitch in pitches)
    return Add(draw(st.integers(0, 1)), src, dst, rows, cols, *pitches)


@st.composite
def products(draw: st.DrawFn) -> Matmul:
    m, n, k = draw(st.sampled_from([(1, 4, 16), (2, 4, 8), (4, 2, 16), (2, 8, 8)]))
    pitch = draw(st.sampled_from([4 * n, 4 * n + 16]))
    out = draw(places((m - 1) * pitch + 4 * n))
    act, weight = draw(places(m * k)), draw(places(n * k))
    return Matmul(draw(st.integers(0, 1)), act, weight, out, m, n, k, pitch)


@st.composite
def mixes(draw: st.DrawFn) -> Mix:
    m, n, k = draw(st.sampled_from([(1, 16, 4), (2, 8, 8), (4, 4, 16), (2, 20, 6)]))
    half = draw(st.booleans())
    size = 2 if half else 4
    pitch = draw(st.sampled_from([size * n, size * n + 16]))
    out = draw(places((m - 1) * pitch + size * n))
    weight, zero = draw(places(n * k)), draw(places(k))
    group = draw(st.integers(1, 2))
    return Mix(draw(st.integers(0, 1)), weight, zero, out, m, n, k, pitch, half, group)


steps = st.one_of(
    copies(),
    copies(),
    copies(),
    sums(),
    products(),
    mixes(),
    st.builds(Fill, sides("cmx0", 32), st.integers(0, 255)),
)


@st.composite
def assembled(draw: st.DrawFn) -> list[Step]:
    """Draw a matmul whose weights several copies load, in any order, with gaps and overlaps.

    Like keys, the parts are ranges of n, or like values, ranges of k; sometimes both are half rows.
    Other tasks in between may change copied bytes or their source. The output is stored.
    """
    made = draw(st.one_of(products(), mixes()))
    count, width = (made.n, made.k) if isinstance(made, Matmul) else (made.k, made.n)
    loads = draw(parts(made.tile, made.weight, (count, width)))
    if isinstance(made, Mix):
        loads += draw(parts(made.tile, made.zero, (made.k // made.group, 1)))
    loads = draw(st.permutations(loads))
    between = draw(st.lists(steps, max_size=2))
    size = 2 if isinstance(made, Mix) and made.half else 4
    dims = ((made.m, made.pitch),)
    source = Side(f"cmx{made.tile}", made.out, size * made.n, dims)
    store = Copy(source, draw(rows("ddr", made.m, size * made.n)))
    place = draw(st.integers(0, len(loads)))
    return [
        *loads[:place],
        *between,
        *loads[place:],
        made,
        *draw(st.lists(steps, max_size=1)),
        store,
    ]


@st.composite
def parts(draw: st.DrawFn, tile: int, place: int, shape: tuple[int, int]) -> list[Step]:
    """Draw copies of ranges of an operand's rows, or of halves of all rows, to the operand."""
    count, width = shape
    sources = st.sampled_from(["ddr", "ddr", "fixed", f"cmx{1 - tile}"])
    if width % 2 == 0 and draw(st.integers(0, 5)) == 0:
        return [
            Copy(
                draw(rows(draw(sources), count, width // 2)),
                Side(f"cmx{tile}", place + half, width // 2, ((count, width),)),
            )
            for half in (0, width // 2)
        ]
    inner = draw(st.lists(st.integers(1, count - 1), max_size=3))
    found: list[Step] = []
    for begin, end in pairwise(sorted({0, *inner, count})):
        if draw(st.integers(0, 9)) == 0:
            continue  # a gap
        last = min(end + (draw(st.integers(0, 7)) == 0), count)  # an overlap
        dims = ((last - begin, width),) if draw(st.booleans()) else ()
        near = width if dims else (last - begin) * width
        far = draw(rows(draw(sources), last - begin, width))
        found.append(Copy(far, Side(f"cmx{tile}", place + begin * width, near, dims)))
    return found


@st.composite
def chained(draw: st.DrawFn) -> list[Step]:
    """Draw a matmul split along k into workloads that continue one another's sums.

    Tasks in between may read or change the sums, or change an operand.
    """
    m, n, depth = draw(st.sampled_from([(1, 4, 16), (2, 4, 12), (4, 2, 16), (9, 2, 8)]))
    pitch = 4 * n + draw(st.sampled_from([0, 16]))
    out = draw(places((m - 1) * pitch + 4 * n))
    act, weight = draw(places(m * depth)), draw(places(n * depth))
    tile = draw(st.integers(0, 1))
    sums_of_rows = Side(f"cmx{tile}", out, 4 * n, ((m, pitch),))
    inputs = st.sampled_from([act, weight, act + depth, weight + depth // 2])
    between = st.one_of(
        st.builds(Copy, st.just(sums_of_rows), rows("ddr", m, 4 * n)),
        st.builds(Fill, st.just(Side(f"cmx{tile}", out, 4, ())), st.sampled_from([0, 0x41])),
        inputs.map(lambda at: Fill(Side(f"cmx{tile}", min(at, BYTES - 4), 4, ()), 1)),
        steps,
    )
    # Operands of the first workload may be written late.
    made: list[Step] = [Add(tile, act, act, 1, 4, 4, 4)] * draw(st.integers(0, 2))
    ready = len(made)
    inner = draw(st.lists(st.integers(1, depth - 1), min_size=1, max_size=3))

    def rarely() -> bool:
        return draw(st.integers(0, 9)) == 0

    for begin, end in pairwise(sorted({0, *inner, depth})):
        later = len(made) > ready
        if later:
            made += draw(st.lists(between, max_size=1))
        at = begin - (later and rarely())  # not where the previous workload stopped
        width = n - (later and rarely())
        goes_on = later and not rarely()
        pieces = act + at, weight + at
        made.append(Matmul(tile, *pieces, out, m, width, end - begin, pitch, depth, goes_on))
    return [*made, Copy(sums_of_rows, draw(rows("ddr", m, 4 * n)))]


@pytest.fixture
def shape_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[Step]], tuple[int, int]]:
    """Return a function of a program: rows and phases of its table, after checking its bytes."""
    tables: list[Any] = []
    real = executor.build_table

    def build_table(*arguments: Any) -> Any:
        found = real(*arguments)
        tables.append(found.table)
        return found

    monkeypatch.setattr(executor, "build_table", build_table)

    def shape(made: list[Step]) -> tuple[int, int]:
        expected = Machine().run(made, TaskByTask(ReferenceEngines()))
        assert Machine().run(made, NativeExecutor()) == expected
        return len(tables[-1].rows), len(tables[-1].bounds)

    return shape


@pytest.fixture(scope="session")
def programs() -> st.SearchStrategy[list[Step]]:
    """Programs of any tasks in any order, and programs that assemble operands or chain sums."""
    together = st.lists(st.one_of(assembled(), chained()), min_size=1, max_size=2)
    return st.one_of(
        st.lists(steps, min_size=1, max_size=12),
        together.map(lambda lists: [step for one in lists for step in one]),
    )
