"""Equality of kernels and the reference for random programs over random windows.

Summed values are integers, so that the order of a sum does not matter, and inexact results (exp and
the like) are only stored: all other values have equal bits.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from driver_layer.abi.dtypes import ELEMENT_TYPES
from driver_layer.engines.native.jit.host import Isa, native_isa

_TYPES = ["f32", "f16", "bf16", "i64", "i32", "u8", "i8", "boolean"]
_UNARY = ["mov", "neg", "abs", "floor", "rint", "sqrt", "rsqrt", "rcp"]
_BINARY = ["add", "sub", "mul", "div", "min", "max", "cmpeq", "cmplt", "cmple"]
_ROUGH = ["exp", "sin", "cos", "tanh", "erf"]
_REDUCTIONS = ["rsum", "rmax", "rmin"]


class _Program:
    """A random program and its windows.

    For each register, it is known whether it has columns, and how it varies over the grid.
    """

    def __init__(self, choose: random.Random) -> None:
        self._choose = choose
        self.grid = tuple(choose.choice([1, 1, 2, 3]) for _ in range(3))
        self._cols = choose.choice([2, 3, 8, 15, 16, 17, 33, 64, 70])
        self.windows: list[tuple[str, int, tuple[int, ...], int | None]] = []
        self._lines: list[str] = []
        self._registers: dict[int, tuple[int, frozenset[int]]] = {}
        self._rough: set[int] = set()
        self._loaded: dict[int, tuple[int, frozenset[int]]] = {}

    def write(self) -> str:
        choose = self._choose
        for _ in range(choose.randint(1, 3)):
            self._load()
        self._new("imm {}, " + str(choose.randint(-4, 4)), (), (1, frozenset()))
        steps = {"one": 4, "two": 8, "three": 2, "reduce": 2, "rotate": 1, "count": 1, "store": 1}
        for _ in range(choose.randint(2, 14)):
            kind = choose.choices(list(steps), list(steps.values()))[0]
            getattr(self, f"_{kind}")()
        for register in list(self._registers)[-2:]:
            self._store(register)
        return "\n".join([*self._lines, "end"])

    def _window(self, cols: int, axes: frozenset[int]) -> int:
        """Add a window that moves in some dimensions, nested in any order, with gaps."""
        choose, kind = self._choose, self._choose.choice(_TYPES)
        size = ELEMENT_TYPES[kind].storage.itemsize
        order = (
            [*axes, 3] if choose.random() < 0.2 else [3, *choose.sample(sorted(axes), len(axes))]
        )
        strides, reach = [0, 0, 0, 0], size
        for axis in order:
            strides[axis] = reach + (choose.choice([0, 0, 3, 40]) if axis != 3 else 0)
            reach = strides[axis] * (*self.grid, cols)[axis]
        self.windows.append((kind, cols, tuple(strides[:3]), strides[3]))
        return len(self.windows) - 1

    def _load(self) -> None:
        choose = self._choose
        cols = choose.choice([1, self._cols, self._cols])
        axes = frozenset(axis for axis in range(3) if choose.random() < 0.7)
        window = self._window(cols, axes)
        moves = frozenset(axis for axis in axes if self.grid[axis] > 1)
        self._loaded[window] = (cols, moves)
        self._new(f"ld {{}}, w{window}", (), (cols, moves))

    def _new(self, text: str, sources: tuple[int, ...], shape: tuple[int, frozenset[int]]) -> int:
        register = self._choose.randint(0, 7)
        self._lines.append(text.format(f"v{register}", *(f"v{source}" for source in sources)))
        self._registers.pop(register, None)
        self._rough.discard(register)
        self._registers[register] = shape
        return register

    def _sources(self, count: int) -> tuple[int, ...]:
        exact = [register for register in self._registers if register not in self._rough]
        return tuple(self._choose.choice(exact) for _ in range(count))

    def _apply(self, names: list[str], count: int) -> int:
        sources = self._sources(count)
        shapes = [self._registers[source] for source in sources]
        shape = max(cols for cols, _ in shapes), frozenset().union(*(axes for _, axes in shapes))
        text = f"{self._choose.choice(names)} {{}}" + ", {}" * count
        return self._new(text, sources, shape)

    def _one(self) -> None:
        exact = [r for r in self._registers if r not in self._rough]
        if len(exact) > 2 and self._choose.random() < 0.2:
            self._rough.add(self._apply(_ROUGH, 1))
        else:
            self._apply(_UNARY, 1)

    def _two(self) -> None:
        self._apply(_BINARY, 2)

    def _three(self) -> None:
        self._apply(["fma", "sel"], 3)

    def _whole(self) -> int:
        """Return a register of small integers."""
        (source,) = self._sources(1)
        cols, axes = self._registers[source]
        low = self._new("imm {}, -50", (), (1, frozenset()))
        if low == source:
            self._registers[low] = (1, frozenset())
            return low
        above = self._new("max {}, {}, {}", (source, low), (cols, axes))
        high = self._new("imm {}, 50", (), (1, frozenset()))
        if high == above:
            return high
        below = self._new("min {}, {}, {}", (above, high), (cols, axes))
        return self._new("rint {}, {}", (below,), (cols, axes))

    def _reduce(self) -> None:
        source = self._whole()
        _, axes = self._registers[source]
        self._new(f"{self._choose.choice(_REDUCTIONS)} {{}}, {{}}", (source,), (1, axes))

    def _rotate(self) -> None:
        (source,) = self._sources(1)
        shape = self._registers[source]
        turn = self._choose.randrange(shape[0])
        self._new(f"rot {{}}, {{}}, {turn}", (source,), shape)

    def _count(self) -> None:
        if max((cols for _, cols, _, stride in self.windows if stride), default=1) == self._cols:
            self._new("iota {}", (), (self._cols, frozenset()))

    def _store(self, register: int | None = None) -> None:
        """Store to a separate window, or to a loaded one that repeats in no dimension."""
        choose = self._choose
        if register is None:
            register = choose.choice(list(self._registers))
        cols, axes = self._registers[register]
        everywhere = frozenset(axis for axis in range(3) if self.grid[axis] > 1)
        inside = [
            window
            for window, (width, moves) in self._loaded.items()
            if moves == everywhere and width >= cols and choose.random() < 0.3
        ]
        if inside:
            window = inside[0]
        else:
            wider = choose.random() < 0.2
            also = frozenset(axis for axis in range(3) if choose.random() < 0.3)
            window = self._window(self._cols if wider else cols, axes | also)
        if self.windows[window][0] not in ("f32", "f16", "bf16"):
            if register in self._rough:
                return  # an integer may round to its neighbour
            self._lines.append(_WITHOUT_NAN.format(register))
            register = 8
        self._loaded.pop(window, None)
        self._lines.append(f"st w{window}, v{register}")


_WITHOUT_NAN = "cmpeq v8, v{0}, v{0}\nimm v9, 0\nsel v8, v8, v{0}, v9"
"""Replaces NaN, whose integer value numpy does not define."""


@pytest.mark.long
@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    choose=st.randoms(use_true_random=False),
    isa=st.sampled_from([isa for isa in Isa if isa <= min(native_isa(), Isa.AVX512)]),
)
def test_any_program_agrees_with_the_reference(benches, spec, choose, isa) -> None:
    program = _Program(choose)
    text = program.write()
    windows = [spec(*window[:3], window[3]) for window in program.windows]
    rough = 3e-6 if any(f"\n{name} " in f"\n{text}" for name in _ROUGH) else 0.0
    benches[isa].check(text, program.grid, *windows, fill=_small, rough=rough)


def _small(kind: str, count: int, rng) -> object:
    """Return small integers of any type."""
    values = rng.integers(
        0 if kind in ("u8", "boolean") else -9, 2 if kind == "boolean" else 10, count
    )
    if kind == "bf16":
        return (values.astype("<f4").view("<u4") >> 16).astype("<u2")
    return values.astype(ELEMENT_TYPES[kind].storage)
