"""Workloads for DPU kernels: drawn, run by the reference engine, and run by native code.

Every operand of native code ends at an inaccessible page: an access beyond it is a segmentation
fault.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from driver_layer.abi.dtypes import ELEMENT_TYPES, FLOAT8, DType, narrowed, unpack_4bit, widened
from driver_layer.abi.platforms import tile_base
from driver_layer.abi.tasks import DPU_REGISTERS, DPU_VARIANT, DpuFlag, DpuWorkload
from driver_layer.engines.native.dpu import (
    MatmulKernel,
    MatmulProblem,
    Reuse,
    Word,
    choose,
    part_of,
    words_of,
)
from driver_layer.engines.native.jit.cache import ObjectCache
from driver_layer.engines.native.jit.host import Host, Isa, detect, native_isa
from driver_layer.engines.native.jit.kernels import Kernels
from driver_layer.engines.reference import ReferenceEngines
from driver_layer.testing.check_engines.bench import Bench, one

LEVELS = [isa for isa in Isa if isa <= native_isa()]
KERNELS: dict[Isa, Kernels] = {}

_PLACES = {"act": 0x0, "weight": 0x40000, "out": 0xC0000, "scale": 0x100000, "zero": 0x110000}
_ROW_SCALES = 0x120000
_FILL = 0xA5


class Guarded:
    """Memory that ends before an inaccessible page."""

    def __init__(self, size: int = 1 << 19) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._pages = mmap.mmap(-1, size + mmap.PAGESIZE)
        self._bytes = np.frombuffer(self._pages, np.uint8)[:size]
        self._end = self._bytes.ctypes.data + size
        assert libc.mprotect(ctypes.c_void_p(self._end), mmap.PAGESIZE, 0) == 0

    def place(self, content: np.ndarray) -> int:
        """Store bytes at the end and the filler before them; return the bytes' address."""
        self._bytes[:] = _FILL
        self._bytes[self._bytes.size - content.size :] = content
        return self._end - content.size

    def take(self, size: int) -> tuple[np.ndarray, bool]:
        """Return the last ``size`` bytes, and whether the filler before them is unchanged."""
        rest = self._bytes.size - size
        return self._bytes[rest:].copy(), bool((self._bytes[:rest] == _FILL).all())


_MEMORY = {name: Guarded() for name in ("act", "weight", "out", "scale", "zero", "row_scales")}


Choose = Callable[[MatmulProblem, Host], MatmulKernel | None]
"""Returns a kernel, as ``dpu.choose`` and each family do."""


@dataclass
class Workload:
    """A DPU_REGISTERS record with the bytes of its operands."""

    registers: Any
    operands: dict[str, np.ndarray]
    row_scales: np.ndarray | None = None
    parts: list[tuple[tuple[int, int], tuple[int, int]]] = field(default_factory=list)

    def reference(self) -> np.ndarray:
        """Return the bytes of the output after the reference engine's run."""
        bench = Bench.make(ReferenceEngines())
        for name, content in self.operands.items():
            bench.cmx(_PLACES[name], content)
        if self.row_scales is not None:
            bench.cmx(_ROW_SCALES, self.row_scales)
        variants = [
            one(DPU_VARIANT, m_begin=m[0], m_end=m[1], n_begin=n[0], n_end=n[1])
            for m, n in self.parts
        ]
        bench.engines.dpu(self.registers, variants, 0, bench.bus)()
        size = self.operands["out"].size
        return bench.read(tile_base(0) + _PLACES["out"], "u1", size).copy()

    def native(self, isa: Isa, choose: Choose = choose) -> tuple[np.ndarray, str]:
        """Return the bytes of the output after native code's run, and the kernels' keys."""
        kernels = KERNELS[isa]
        words, used = words_of(self.registers, _pointers(self)), []
        for rows, columns in self.parts:
            part = part_of(words, rows, columns)
            m, n, k = (int(part[word]) for word in (Word.M, Word.N, Word.K))
            choice = choose(MatmulProblem.of(self.registers, m), kernels.host)
            assert choice is not None
            used.append(choice.spec.key)
            run(kernels, choice, part, scratch(choice.scratch(m, n, k)))
        found, untouched = _MEMORY["out"].take(self.operands["out"].size)
        assert untouched
        return found, " + ".join(used)

    def values(self, name: str) -> np.ndarray:
        """Return an operand's elements in f64, 4-bit ones unpacked."""
        r = self.registers
        batch, m, n, k = (int(r[dim]) for dim in ("batch", "m", "n", "k"))
        groups = -(-k // (int(r["group"]) or k))
        shape = {"act": (batch, m, k), "weight": (batch, n, k), "out": (batch, m, n)}.get(
            name, (n, groups)
        )
        return elements(self.operands[name], int(r[f"{name}_type"]), shape, r[f"{name}_strides"])

    def magnitude(self) -> np.ndarray:
        """Return sums over k of |act * weight|, times the scales of the output."""
        r = self.registers
        act = self.values("act") - int(r["act_zero"])
        weight, k = self.values("weight"), int(r["k"])
        group = int(r["group"]) or k
        if r["zero_type"]:
            weight = weight - np.repeat(self.values("zero"), group, -1)[:, :k]
        if r["scale_type"]:
            weight = weight * np.repeat(self.values("scale"), group, -1)[:, :k]
        sums = np.abs(act) @ np.abs(weight).swapaxes(1, 2)
        if self.row_scales is not None:
            sums = sums * self.row_scales[:, None]
        return sums * abs(float(r["alpha"]))


def elements(raw: np.ndarray, code: int, shape: Any, strides: Any) -> np.ndarray:
    """Return strided elements of a byte array, in f64."""
    kind = next(t for t in ELEMENT_TYPES.values() if t.code == code)
    packed = kind.bits == 4
    stored = (*shape[:-1], -(-shape[-1] // 2)) if packed else shape
    values = np.ndarray(stored, kind.storage, raw, strides=[int(s) for s in strides])
    if packed:
        values = unpack_4bit(values, signed=kind.code is DType.I4)[..., : shape[-1]]
    if kind.code is DType.BFP16 or kind.code in FLOAT8:
        values = widened(kind.code, values)
    return values.astype(np.float64)


def scratch(size: int) -> np.ndarray:
    """Return memory aligned to 64 bytes, filled with NaNs."""
    raw = np.full(size + 64 + 4096, 0xFF, np.uint8)
    begin = -raw.ctypes.data % 64
    return raw[begin : begin + size + 4096]


def run(kernels: Kernels, choice: Any, words: np.ndarray, memory: np.ndarray) -> None:
    """Run a kernel, and check that it stays within its scratch memory."""
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    memory[-4096:] = 0x5A
    status = kind(kernels.address(choice.spec))(words.ctypes.data, memory.ctypes.data)
    assert status == 0
    assert (memory[-4096:] == 0x5A).all()


def assert_agrees(workload: Workload, isa: Isa, choose: Choose = choose) -> str:
    """Check that native code agrees with the reference, up to the order of sums."""
    r = workload.registers
    expected_raw = workload.reference()
    found_raw, used = workload.native(isa, choose)
    shape = tuple(int(r[dim]) for dim in ("batch", "m", "n"))
    code, strides = int(r["out_type"]), r["out_strides"]
    with np.errstate(all="ignore"):
        expected = elements(expected_raw, code, shape, strides)
        found = elements(found_raw, code, shape, strides)
        finite = np.isfinite(expected)
        assert np.array_equal(np.isnan(found), np.isnan(expected)), used
        infinite = np.isinf(expected)
        assert np.array_equal(found[infinite], expected[infinite]), used
        bound = 1e-5 * workload.magnitude() + _rounding(code) * np.abs(expected) + 1e-37
        if code == DType.FP16:
            bound = bound + 2.0**-24
        worst = (np.abs(found - expected) / bound)[finite].max(initial=0)
    assert worst <= 1, (used, worst)
    gaps = np.ones(found_raw.size, bool)
    size = ELEMENT_TYPES[_NAMES[code]].storage.itemsize
    for index in np.ndindex(*shape):
        begin = sum(int(i) * int(s) for i, s in zip(index, strides, strict=True))
        gaps[begin : begin + size] = False
    assert np.array_equal(found_raw[gaps], expected_raw[gaps]), used
    return used


_NAMES = {int(t.code): name for name, t in ELEMENT_TYPES.items()}


def _rounding(code: int) -> float:
    """Return one unit in the last place, as slightly different sums may round differently."""
    return {DType.FP32: 2.0**-22, DType.FP16: 2.0**-10, DType.BFP16: 2.0**-7}[DType(code)]


def random_elements(kind: str, count: int, random: np.random.Generator) -> np.ndarray:
    """Return raw bytes of random elements of a type."""
    info = ELEMENT_TYPES[kind]
    if kind in _FLOATS or info.code in FLOAT8:
        values = random.standard_normal(count).astype(np.float32)
        return narrowed(info.code, values).view(np.uint8)
    return random.integers(0, 256, count * info.storage.itemsize, np.uint8)


def _strides(
    shape: tuple[int, ...], size: int, order: tuple[int, ...], padding: tuple[int, ...]
) -> tuple[list[int], int]:
    """Return strides for an order of dimensions, innermost last, and the extent in bytes."""
    strides, step = [0] * len(shape), size
    for place in reversed(order):
        strides[place] = step
        step = step * shape[place] + padding[place] * size
    return strides, sum((d - 1) * s for d, s in zip(shape, strides, strict=True)) + size


SIZES = st.sampled_from([1, 2, 3, 5, 8, 15, 16, 17, 31, 48, 63, 64, 65, 100, 130])
DEPTHS = st.sampled_from([1, 2, 15, 16, 17, 32, 63, 64, 65, 128, 130, 192, 256, 300])


_FLOATS = ("f16", "bf16", "f32")

_TABLES: dict[str, list[str | None]] = {
    "scale": [None, "f16", "f16", "f32", "bf16"],
    "zero": [None, "u8", "u8", "i8", "f16"],
}


def _tables_of(weight: str) -> dict[str, list[str | None]]:
    """Return the table types that weights may have; 8-bit floats have no zero points."""
    none = ELEMENT_TYPES[weight].code in FLOAT8
    return {name: kinds for name, kinds in _TABLES.items() if not (none and name == "zero")}


@st.composite
def workloads(draw: Any, kinds: tuple[str, str, str], **fixed: Any) -> Workload:
    """Draw a workload of given operand types.

    ``fixed`` has values for some of the drawn properties: m, layout, group, scale, zero, ...; with
    ``common_scales``, all columns share the scales.
    """

    def pick(name: str, strategy: st.SearchStrategy[Any]) -> Any:
        return fixed[name] if name in fixed else draw(strategy)

    random = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    act, weight, out = kinds
    simple, common = "plain" in fixed, "common_scales" in fixed
    batch = pick("batch", st.sampled_from([1, 1, 2]))
    m, n, k = pick("m", st.integers(1, 40)), pick("n", SIZES), pick("k", DEPTHS)
    integers = act in ("i8", "u8")
    packed = weight in ("i4", "u4")
    along = -(-k // 2) if packed else k
    fields = _sizes_and_types(kinds, (batch, m, n, k)) | {
        "alpha": pick("alpha", st.sampled_from([1.0, 1.0, 0.125, -3.0])),
        "flags": DpuFlag.ACCUMULATE * (out == "f32" and pick("accumulate", st.booleans())),
        "act_zero": integers * pick("act_zero", st.sampled_from([0, 7, 255])),
    }

    operands: dict[str, np.ndarray] = {}

    def operand(name: str, kind: str, shape: tuple[int, ...], order: tuple[int, ...]) -> None:
        size = ELEMENT_TYPES[kind].storage.itemsize
        padding = tuple(0 if simple else draw(st.sampled_from([0, 0, 1, 3])) for _ in shape)
        strides, reach = _strides(shape, size, order, padding)
        if name != "out" and not simple and draw(st.integers(0, 9)) == 0:
            repeated = draw(st.integers(0, len(shape) - 1))
            if not (name in ("act", "weight") and repeated == 2):
                strides[repeated] = 0
                reach = size + sum((d - 1) * s for d, s in zip(shape, strides, strict=True))
        fields[f"{name}_strides"] = strides
        fields[f"{name}_address"] = tile_base(0) + _PLACES[name]
        operands[name] = random_elements(kind, -(-reach // size), random)[:reach].copy()

    plain = (0, 1, 2)
    orders = [plain] if simple else [plain, plain, (1, 0, 2), (0, 2, 1)]
    layout = pick("layout", st.sampled_from(["k", "k", "k", "n", "other"]))
    layout = "k" if packed and layout == "n" else layout
    order = {"k": plain, "n": (0, 2, 1), "other": (1, 2, 0)}[layout]
    operand("act", act, (batch, m, k), draw(st.sampled_from(orders)))
    operand("weight", weight, (batch, n, along), order)
    operand("out", out, (batch, m, n), draw(st.sampled_from(orders)))
    if weight not in _FLOATS:
        group = 0 if integers else pick("group", st.sampled_from([0, 0, k, 128, 64, 32, 16, 5]))
        fields["group"] = group
        for name, kinds_of_table in _tables_of(weight).items():
            kind = pick(name, st.sampled_from(kinds_of_table))
            if kind is not None:
                fields[f"{name}_type"] = ELEMENT_TYPES[kind].code
                shape = 1 if common else n, -(-k // (group or k))
                operand(name, kind, shape, draw(st.sampled_from([(0, 1), (1, 0)])))
                fields[f"{name}_strides"][0] *= not common
    scaled = integers and pick("row_scales", st.booleans())
    row_scales = random.uniform(0.1, 2, m).astype(np.float32) if scaled else None
    fields["act_scale_address"] = scaled * (tile_base(0) + _ROW_SCALES)
    fields["act_scale_stride"] = 4
    return Workload(
        one(DPU_REGISTERS, **fields),
        operands,
        row_scales,
        [((0, m), (0, n))] if simple else _parts(draw, m, n),
    )


def _sizes_and_types(
    kinds: tuple[str, str, str], sizes: tuple[int, int, int, int]
) -> dict[str, Any]:
    codes = (ELEMENT_TYPES[kind].code for kind in kinds)
    types = zip(("act_type", "weight_type", "out_type"), codes, strict=True)
    named = zip(("batch", "m", "n", "k"), sizes, strict=True)
    return {"workload": DpuWorkload.MATMUL, **dict(types), **dict(named)}


def _parts(draw: Any, m: int, n: int) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Draw one variant that covers the output, or two."""
    cut = draw(st.integers(0, 3))
    if cut == 2 and n > 1:
        middle = draw(st.integers(1, n - 1))
        return [((0, m), (0, middle)), ((0, m), (middle, n))]
    if cut == 3 and m > 1:
        middle = draw(st.integers(1, m - 1))
        return [((0, middle), (0, n)), ((middle, m), (0, n))]
    return [((0, m), (0, n))]


def runs_again_without_weights(workload: Workload, isa: Isa) -> bool:
    """Return whether a second run with ``PRESENT`` agrees after the weights are overwritten."""
    kernels, words = KERNELS[isa], words_of(workload.registers, _pointers(workload))
    m, n, k, group = (int(words[word]) for word in (Word.M, Word.N, Word.K, Word.GROUP))
    choice = choose(MatmulProblem.of(workload.registers, m), kernels.host)
    assert choice.keeps_weights(n, k, group)
    memory = scratch(choice.scratch(m, n, k))
    words[Word.REUSE] = Reuse.KEEP
    run(kernels, choice, words, memory)
    size = workload.operands["out"].size
    expected, _ = _MEMORY["out"].take(size)
    _MEMORY["out"].place(workload.operands["out"])
    _MEMORY["weight"].place(np.zeros_like(workload.operands["weight"]))
    words[Word.REUSE] = Reuse.PRESENT
    run(kernels, choice, words, memory)
    return np.array_equal(_MEMORY["out"].take(size)[0], expected)


def in_parts(workload: Workload, isa: Isa, borders: list[int], paddings: list[int]) -> np.ndarray:
    """Return the bytes of the output for weights along n that are stored in several parts.

    Args:
        workload: a plain workload, with weights along n.
        isa: instruction set to run with.
        borders: begins of the parts along k, followed by k.
        paddings: bytes between the rows of each part; each part has separate memory.
    """
    kernels, whole = KERNELS[isa], words_of(workload.registers, _pointers(workload))
    m, n, k = (int(whole[word]) for word in (Word.M, Word.N, Word.K))
    choice = choose(MatmulProblem.of(workload.registers, m), kernels.host)
    assert choice.takes_parts
    rows = workload.operands["weight"].reshape(k, -1)
    words = np.tile(whole, (len(paddings), 1))
    words[:, Word.PARTS] = len(paddings)
    memories = [Guarded(1 << 17) for _ in paddings]
    spans = pairwise(borders)
    for part, (begin, end), padding, memory in zip(words, spans, paddings, memories, strict=True):
        spread = np.pad(rows[begin:end], ((0, 0), (0, padding)))
        part[Word.WEIGHT] = memory.place(spread.reshape(-1)[: spread.size - padding])
        part[Word.WEIGHT_K], part[Word.PART_K] = spread.shape[1], end - begin
        for table, stride in ((Word.SCALE, Word.SCALE_GROUP), (Word.ZERO, Word.ZERO_GROUP)):
            part[table] += begin // int(part[Word.GROUP]) * part[stride]
    run(kernels, choice, words.reshape(-1), scratch(choice.scratch(m, n, k)))
    return _MEMORY["out"].take(workload.operands["out"].size)[0]


def sprinkle(workload: Workload, random: np.random.Generator) -> None:
    """Insert infinite, NaN, huge and tiny numbers into the operands' floats."""
    for name in ("act", "weight"):
        kind = _NAMES[int(workload.registers[f"{name}_type"])]
        code = ELEMENT_TYPES[kind].code
        if kind not in _FLOATS and code not in FLOAT8:
            continue
        # Not so huge that the order of sums decides whether they stay finite.
        largest = 65504.0 if kind == "f16" else 1e36
        values = np.array([np.inf, -np.inf, np.nan, largest, 6e-8, -0.0], np.float32)
        raw = narrowed(code, values)
        stored = workload.operands[name].view(raw.dtype)
        places = random.integers(0, stored.size, 3)
        stored[places] = random.choice(raw, 3)


def _pointers(workload: Workload) -> dict[Word, int]:
    """Store operands at the end of memory; return their addresses."""
    found = {
        Word[name.upper()]: _MEMORY[name].place(content)
        for name, content in workload.operands.items()
    }
    if workload.row_scales is not None:
        raw = workload.row_scales.view(np.uint8)
        found[Word.ACT_SCALE] = _MEMORY["row_scales"].place(raw)
    return found


class Dpu:
    """Strategies and checks for the tests of kernels."""

    levels = LEVELS
    workloads = staticmethod(workloads)
    assert_agrees = staticmethod(assert_agrees)
    runs_again_without_weights = staticmethod(runs_again_without_weights)
    in_parts = staticmethod(in_parts)
    sprinkle = staticmethod(sprinkle)

    @staticmethod
    def plain(kinds: tuple[str, str, str], **fixed: Any) -> st.SearchStrategy[Workload]:
        """Draw workloads of fixed size, with contiguous operands and one variant."""
        return workloads(kinds, plain=True, batch=1, layout="k", **fixed)


@pytest.fixture(scope="session")
def dpu(kernel_cache: ObjectCache) -> Dpu:
    KERNELS.update({isa: Kernels(detect(isa), kernel_cache) for isa in LEVELS})
    return Dpu()
