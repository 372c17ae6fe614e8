"""Bench that compares native SHAVE kernels with the reference, in guarded memory."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from driver_layer.abi.dtypes import BY_CODE, ELEMENT_TYPES, widened
from driver_layer.abi.platforms import PLATFORMS, tile_base
from driver_layer.abi.shave import KERNEL_ARGS, WINDOW, Access, Op
from driver_layer.abi.shave_text import assemble
from driver_layer.engines.native.jit.cache import ObjectCache
from driver_layer.engines.native.jit.host import Isa, detect, native_isa
from driver_layer.engines.native.jit.kernels import Kernels
from driver_layer.engines.native.shave import Translated, translate
from driver_layer.engines.reference.shave import prepare_shave
from driver_layer.npu.bus import Bus
from driver_layer.npu.cmx import Cmx
from driver_layer.npu.memory import AddressSpace

ISAS = [isa for isa in Isa if isa <= min(native_isa(), Isa.AVX512)]
_WORKSPACE = 0x2000
_PLACES = 20
_PLACE_BYTES = 1 << 21
_NONE, _READ_WRITE = 0, 3

_ROUGH = {Op.EXP, Op.LOG, Op.SIN, Op.COS, Op.TANH, Op.ERF, Op.POW, Op.RSUM}
"""Opcodes that may differ from numpy in the last places; all others give equal bits."""


class GuardedMemory:
    """Memory with places that end at an inaccessible page."""

    def __init__(self) -> None:
        page = mmap.PAGESIZE
        self._map = mmap.mmap(-1, _PLACES * (_PLACE_BYTES + 2 * page))
        self._bytes = np.frombuffer(self._map, np.uint8)
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        self._ends: list[int] = []
        for place in range(_PLACES):
            begin = place * (_PLACE_BYTES + 2 * page)
            end = begin + page + _PLACE_BYTES
            for border in (begin, end):
                assert protect(self._bytes.ctypes.data + border, page, _NONE) == 0
            self._ends.append(end)

    def take(self, place: int, size: int, at_begin: bool = False) -> np.ndarray:
        """Return bytes that end, or begin, at an inaccessible page."""
        end = self._ends[place]
        begin = end - _PLACE_BYTES if at_begin else end - size
        return self._bytes[begin : begin + size]


@dataclass
class Spec:
    """A window of a test: element type, columns, strides, and address (None: separate)."""

    kind: str
    cols: int
    strides: tuple[int, int, int] = (0, 0, 0)
    col_stride: int | None = None
    address: int | None = None


def dense(
    kind: str, grid: Sequence[int], cols: int, axes: Sequence[int] = (0, 1, 2), gap: int = 0
) -> Spec:
    """Return a window with contiguous rows in the given grid dimensions; it repeats in others."""
    strides, row = [0, 0, 0], cols * ELEMENT_TYPES[kind].storage.itemsize + gap
    for axis in sorted(axes, reverse=True):
        strides[axis] = row
        row *= grid[axis]
    return Spec(kind, cols, tuple(strides))


def block(grid: Sequence[int], windows: Sequence[Spec]) -> bytes:
    """Return an argument block; windows without an address get separate ones."""
    head = np.zeros(1, KERNEL_ARGS)
    head["window_count"], head["grid"] = len(windows), tuple(grid)
    records = np.zeros(len(windows), WINDOW)
    at = tile_base(0) + _WORKSPACE
    for record, window in zip(records, windows, strict=True):
        element = ELEMENT_TYPES[window.kind]
        record["type"], record["cols"], record["strides"] = (
            element.code,
            window.cols,
            window.strides,
        )
        record["col_stride"] = (
            element.storage.itemsize if window.col_stride is None else window.col_stride
        )
        record["access"] = Access.READ | Access.WRITE
        record["address"] = at if window.address is None else window.address
        if window.address is None:
            at += -(-_extent(record, grid) // 64) * 64 + 64
    return head.tobytes() + records.tobytes()


def _dims(record: Any, grid: Sequence[int]) -> tuple[list[int], list[int]]:
    strides = [int(s) for s in (*record["strides"], record["col_stride"])]
    counts = [*grid, int(record["cols"])]
    return [c if s else 1 for c, s in zip(counts, strides, strict=True)], strides


def _extent(record: Any, grid: Sequence[int]) -> int:
    shape, strides = _dims(record, grid)
    reach = sum((c - 1) * s for c, s in zip(shape, strides, strict=True))
    return reach + BY_CODE[int(record["type"])].storage.itemsize


def _elements(record: Any, grid: Sequence[int], memory: np.ndarray) -> np.ndarray:
    shape, strides = _dims(record, grid)
    return np.ndarray(shape, BY_CODE[int(record["type"])].storage, memory, 0, strides)


def ordinary(kind: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return random values distributed like activations."""
    storage = ELEMENT_TYPES[kind].storage
    if kind == "bf16":
        return (rng.standard_normal(count).astype(np.float32).view(np.uint32) >> 16).astype("<u2")
    if storage.kind == "f":
        return (rng.standard_normal(count) * 2).astype(storage)
    if kind == "boolean":
        return rng.integers(0, 2, count).astype(storage)
    return rng.integers(0 if kind == "u8" else -100, 100, count).astype(storage)


Fill = Callable[[str, int, np.random.Generator], np.ndarray]


class NativeBench:
    """Bench that runs programs natively and by the reference, and compares all bytes."""

    def __init__(self, isa: Isa, memory: GuardedMemory, cache: ObjectCache) -> None:
        self.kernels = Kernels(detect(isa), cache)
        self._memory = memory
        self._turn = 0

    def call(self, kernel: Translated, scratch: np.ndarray | None = None) -> None:
        """Run a kernel once, with exactly the scratch memory that it needs."""
        kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
        if scratch is None:
            scratch = self._memory.take(_PLACES - 1, kernel.scratch_bytes)
            scratch[:] = 0xFF
        words = np.array(kernel.words, np.int64)
        assert kind(self.kernels.address(kernel.spec))(words.ctypes.data, scratch.ctypes.data) == 0

    def check(
        self,
        text: str,
        grid: Sequence[int],
        *windows: Spec,
        fill: Fill | Sequence[np.ndarray | None] = ordinary,
        rough: float | None = None,
    ) -> Translated:
        """Run a program in both engines, and compare the bytes.

        Args:
            text: the program.
            grid: its grid.
            windows: its windows.
            fill: initial contents of memory, or the elements of each window.
            rough: allowed relative difference, or units in the last place of element types coarser
                than f32; 0 requires equal bits. None: 0 unless an opcode is in ``_ROUGH``.
        """
        program, args = assemble(text), block(grid, windows)
        records = np.frombuffer(args, WINDOW, len(windows), KERNEL_ARGS.itemsize)
        rng = np.random.default_rng(len(text))
        bus = Bus(Cmx(PLATFORMS["4000"]), AddressSpace())
        for record in records:
            memory = bus.cmx.view(int(record["address"]), _extent(record, grid))
            memory[:] = rng.integers(0, 256, memory.size)
        for number, record in enumerate(records):
            memory = bus.cmx.view(int(record["address"]), _extent(record, grid))
            elements = _elements(record, grid, memory)
            name = BY_CODE[int(record["type"])].name
            values = fill(name, elements.size, rng) if callable(fill) else fill[number]
            if values is not None:
                elements[...] = np.resize(values, elements.size).reshape(elements.shape)
        sizes: dict[int, int] = {}
        for record in records:
            address = int(record["address"])
            sizes[address] = max(sizes.get(address, 0), _extent(record, grid))
        self._turn += 1
        places: dict[int, np.ndarray] = {}
        for address, size in sizes.items():
            places[address] = self._memory.take(len(places), size, at_begin=bool(self._turn % 2))
            places[address][:] = bus.cmx.view(address, size)
        kernel = translate(tuple(program), args)
        assert kernel is not None
        kernel = at_hosts(kernel, lambda address: places[address].ctypes.data)
        assert kernel.scratch_bytes % 64 == 0
        self.call(kernel)
        prepare_shave(program, args, 0, bus)()
        if rough is None:
            rough = 2e-6 if any(i.op in _ROUGH for i in program) else 0.0
        for record in records:
            extent = _extent(record, grid)
            expected = bus.cmx.view(int(record["address"]), extent)
            found = places[int(record["address"])][:extent].copy()
            _compare(record, grid, found, expected, rough)
        return kernel


def at_hosts(kernel: Translated, host: Callable[[int], int]) -> Translated:
    """Replace the device addresses of a kernel's windows by the host's."""
    words = list(kernel.words)
    for operand in kernel.operands:
        words[operand.word] = host(words[operand.word])
    return replace(kernel, words=tuple(words))


def _compare(
    record: Any, grid: Sequence[int], found: np.ndarray, expected: np.ndarray, rough: float
) -> None:
    """Check that elements are close (NaN equals NaN), and all other bytes equal."""
    ours, theirs = (_elements(record, grid, memory) for memory in (found, expected))
    element = BY_CODE[int(record["type"])]
    one, other = (_widened(element.name, values) for values in (ours, theirs))
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    if rough:
        place = {"f16": 2.0**-10, "bf16": 2.0**-7}.get(element.name, 0.0)
        least = {"f16": 2.0**-24, "f32": 1e-7}.get(element.name, 1.0 if not place else 0.0)
        with np.errstate(all="ignore"):
            same |= np.abs(one - other) <= least + (rough + place) * np.abs(other)
    if not same.all():
        where = tuple(np.argwhere(~same)[0])
        raise AssertionError(f"{element.name} at {where}: {one[where]!r}, not {other[where]!r}")
    ours[...] = theirs
    assert np.array_equal(found, expected), "bytes between elements were changed"


def _widened(kind: str, values: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # signaling NaNs
        floats = kind in ("bf16", "f8e4m3", "f8e5m2")
        return (widened(ELEMENT_TYPES[kind].code, values) if floats else values).astype(np.float64)


@pytest.fixture(scope="session")
def memory() -> GuardedMemory:
    return GuardedMemory()


@pytest.fixture(scope="session")
def benches(memory: GuardedMemory, kernel_cache: ObjectCache) -> dict[Isa, NativeBench]:
    """A bench for each level of this machine."""
    return {isa: NativeBench(isa, memory, kernel_cache) for isa in ISAS}


@pytest.fixture(params=ISAS, ids=lambda isa: isa.name.lower())
def native(request: pytest.FixtureRequest, benches: dict[Isa, NativeBench]) -> NativeBench:
    return benches[request.param]


@pytest.fixture(scope="session")
def hosted() -> Callable[[Translated, Callable[[int], int]], Translated]:
    """Return ``at_hosts``."""
    return at_hosts


@pytest.fixture(scope="session")
def spec() -> type[Spec]:
    return Spec


@pytest.fixture(scope="session")
def rows() -> Callable[..., Spec]:
    """Return a function that makes windows with dense rows: (kind, grid, cols, axes, gap)."""
    return dense


@pytest.fixture(scope="session")
def make_block() -> Callable[..., bytes]:
    return block


@pytest.fixture
def apply(native: NativeBench) -> Callable[..., np.ndarray]:
    """Return a function that applies instructions to v0, v1 natively: ("exp v0, v0", x)."""

    def run(text: str, *operands: np.ndarray) -> np.ndarray:
        loads = "\n".join(f"ld v{n}, w{n}" for n in range(len(operands)))
        program = assemble(f"{loads}\n{text}\nst w{len(operands)}, v0\nend")
        result = np.empty_like(operands[0])
        arrays = [*operands, result]
        windows = [Spec("f32", x.size, address=x.ctypes.data & 0xFFFFFFFF) for x in arrays]
        if "rsum" in text:
            windows[-1] = Spec("f32", 1, address=windows[-1].address)
        hosts = {w.address: x.ctypes.data for w, x in zip(windows, arrays, strict=True)}
        kernel = translate(tuple(program), block((1, 1, 1), windows))
        assert kernel is not None
        native.call(at_hosts(kernel, hosts.__getitem__))
        return result

    return run
