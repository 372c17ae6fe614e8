"""Speed of the native DPU's kernels, and the machine's limits.

The weights of all tasks together exceed the caches: each task has its own weights, scales and zero
points, as in a model. Arguments are parts of case labels, to run only some of the cases;
``--threads`` and ``--repeat`` set threads and repetitions. Times of one thread are processor time,
those of several are wall time.
"""

from __future__ import annotations

import argparse
import ctypes
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from llvmlite import ir

from driver_layer.abi.dtypes import ELEMENT_TYPES, f32_to_bf16
from driver_layer.abi.layout import Record
from driver_layer.abi.tasks import DPU_REGISTERS
from driver_layer.engines.native.dpu import (
    WORDS,
    MatmulKernel,
    MatmulProblem,
    Reuse,
    Word,
    choose,
    words_of,
)
from driver_layer.engines.native.dpu.flavours import NumberFormat
from driver_layer.engines.native.dpu.tile_registers import add_products, clear_tile, configured
from driver_layer.engines.native.jit.emitter import F32, I8, I32, I64, Emitter, Value
from driver_layer.engines.native.jit.host import Host, detect
from driver_layer.engines.native.jit.kernels import Kernels, KernelSpec

_TRAMPOLINE = """
define i32 @kernel(ptr %args, ptr %scratch) {
entry:
  %count = load i64, ptr %args
  %first = getelementptr i8, ptr %args, i64 8
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %place = getelementptr [2 x ptr], ptr %first, i64 %i
  %code = load ptr, ptr %place
  %words_at = getelementptr i8, ptr %place, i64 8
  %words = load ptr, ptr %words_at
  %status = call i32 %code(ptr %words, ptr %scratch)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret i32 %status
}
"""
"""Kernel that runs a list of kernels."""

_CALL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_SCRATCH = 32 << 20
_TABLES = (Word.SCALE, Word.ZERO)


@dataclass(frozen=True)
class Case:
    """Kind of task."""

    label: str
    kinds: tuple[str, str, str]
    sizes: tuple[int, int, int, int]
    transposed: bool = False
    tables: tuple[str | None, str | None] = (None, None)
    group: int = 0
    shared: int = 1
    """Consecutive tasks with the same weights."""


def _cases() -> list[Case]:
    byte, fine, none = ("f16", "u8"), ("f16", "u8"), ("f16", None)
    cases = [
        Case("decode int8 480x2048", ("f16", "u8", "f16"), (1, 1, 480, 2048), tables=byte),
        Case("decode int8 176x5632", ("f16", "u8", "f16"), (1, 1, 176, 5632), tables=byte),
        Case("decode int8 384x576", ("f16", "u8", "f16"), (1, 1, 384, 576), tables=byte),
        Case("decode int8 288x1536", ("f16", "u8", "f16"), (1, 1, 288, 1536), tables=byte),
        Case("decode i8 480x2048", ("f16", "i8", "f16"), (1, 1, 480, 2048), tables=none),
        Case("lm head int8 2048x576", ("f16", "u8", "f32"), (1, 1, 2048, 576), tables=byte),
        Case("lm head int8 672x2048", ("f16", "u8", "f32"), (1, 1, 672, 2048), tables=byte),
        Case("decode f16 480x2048", ("f16", "f16", "f16"), (1, 1, 480, 2048)),
        Case("decode bf16 480x2048", ("bf16", "bf16", "bf16"), (1, 1, 480, 2048)),
        Case("decode f32 480x2048", ("f32", "f32", "f32"), (1, 1, 480, 2048)),
        Case("decode w8a8 480x2048", ("i8", "i8", "f16"), (1, 1, 480, 2048), tables=none),
        Case("decode attention K m8", ("f16", "f16", "f32"), (1, 8, 1152, 64)),
        Case("decode attention V m8", ("f16", "f16", "f16"), (1, 8, 64, 1152), True),
        Case("decode attention K m1", ("f16", "f16", "f32"), (1, 1, 1152, 64)),
        Case("decode attention V m1", ("f16", "f16", "f16"), (1, 1, 64, 1152), True),
    ]
    for m in (2, 4, 8):
        sizes = (1, m, 480, 2048)
        cases.append(Case(f"few rows int8 m{m}", ("f16", "u8", "f16"), sizes, tables=byte))
        packed = ("f16", "u4", "f16")
        cases.append(Case(f"few rows u4 m{m}", packed, sizes, tables=fine, group=128))
    shapes = (480, 2048, 128), (176, 5632, 128), (480, 2048, 64), (384, 576, 64), (288, 1536, 64)
    for act in ("f16", "bf16"):
        for n, k, group in shapes:
            for weight, tables in (("u4", fine), ("i4", none)):
                label = f"decode {weight} g{group} {n}x{k}" + " bf16" * (act == "bf16")
                kinds, sizes = (act, weight, act), (1, 1, n, k)
                cases.append(Case(label, kinds, sizes, tables=tables, group=group))
    for act in ("f16", "bf16"):
        for weight, group, tables in (("u8", 0, byte), ("u4", 128, byte), (act, 0, (None, None))):
            cases += [
                Case(
                    f"prefill {act} x {weight} {sizes[1]}x{sizes[2]}x{sizes[3]}",
                    (act, weight, act),
                    sizes,
                    tables=tables,
                    group=group,
                    shared=8,
                )
                for sizes in ((1, 512, 512, 2048), (1, 512, 288, 576))
            ]
            sizes = 1, 16, 512, 2048
            label = f"short prefill {act} x {weight} 16x512x2048"
            cases.append(Case(label, (act, weight, act), sizes, tables=tables, group=group))
        cases += [
            Case(f"prefill {act} attention K", (act, act, "f32"), (1, 128, 1024, 64)),
            Case(f"prefill {act} attention V", (act, act, act), (1, 128, 64, 1024), True),
        ]
    cases.append(
        Case("prefill f32 128x176x2048", ("f32", "f32", "f32"), (1, 128, 176, 2048), shared=8)
    )
    cases.append(
        Case("prefill w8a8", ("i8", "i8", "f16"), (1, 128, 176, 2048), tables=none, shared=8)
    )
    return cases


def main() -> None:
    """Run the cases; print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("labels", nargs="*")
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--total", type=int, default=256, help="MiB of weights")
    options = parser.parse_args()
    host = detect()
    kernels = Kernels(host)
    bench = _Bench(kernels, options)
    bench.peaks()
    for case in _cases():
        if not options.labels or any(label in case.label for label in options.labels):
            bench.case(case)


class _Bench:
    def __init__(self, kernels: Kernels, options: argparse.Namespace) -> None:
        self.kernels, self.threads, self.repeat = kernels, options.threads, options.repeat
        threads = self.threads
        self.total = options.total << 20
        self.memory = _aligned(self.total)
        self.memory[:] = 0x11
        self.scratch = [_aligned(_SCRATCH) for _ in range(max(threads))]
        self.trampoline = self.function(KernelSpec("trampoline", lambda _: _TRAMPOLINE))

    def function(self, spec: KernelSpec) -> Callable[[int, int], int]:
        return _CALL(self.kernels.address(spec))

    def best(self, work: list[Callable[[], None]]) -> float:
        """Return the shortest time of the parallel work, in seconds."""
        return min(_together(work) for _ in range(self.repeat))

    def peaks(self) -> None:
        """Print the read bandwidth, and the peak rates of dot products."""
        read = self.function(KernelSpec("bench read", _write_read))
        for threads in self.threads:
            share = self.total // threads // 512 * 512
            begins = [self.memory.ctypes.data + i * share for i in range(threads)]
            words = [np.array([begin, share, 0], np.int64) for begin in begins]
            for place, scratch in zip(words, self.scratch, strict=False):
                place[2] = scratch.ctypes.data
            work = [lambda w=w: read(w.ctypes.data, 0) and None for w in words]
            print(f"{'read':36} {threads} threads {self.total / self.best(work) / 1e9:8.1f} GB/s")
        count = 4_000_000
        for name, (dot, macs) in _dots(self.kernels.host).items():
            loop = self.function(KernelSpec(f"bench {name}", lambda h, d=dot: _write_peak(h, d)))
            for threads in self.threads:
                words = [np.array([count, s.ctypes.data]) for s in self.scratch[:threads]]
                work = [lambda w=w, f=loop: f(w.ctypes.data, 0) and None for w in words]
                rate = count * 16 * macs * threads / self.best(work)
                print(f"{name:36} {threads} threads {2 * rate / 1e9:8.1f} GFLOP/s")
        for name, (flavour, macs) in _tile_dots(self.kernels.host).items():
            spec = KernelSpec(f"bench {name}", lambda h, f=flavour: _write_tile_peak(h, f))
            loop = self.function(spec)
            for threads in self.threads:
                words = [np.array([count]) for _ in range(threads)]
                work = [lambda w=w, f=loop: f(w.ctypes.data, 0) and None for w in words]
                rate = count * 4 * macs * threads / self.best(work)
                print(f"{name:36} {threads} threads {2 * rate / 1e9:8.1f} GFLOP/s")

    def case(self, case: Case) -> None:
        for threads in self.threads:
            work, size, macs, choice = self._work(case, threads)
            taken = self.best(work)
            rate, flops = size / taken / 1e9, 2 * macs / taken / 1e9
            print(
                f"{case.label:36} {threads} threads {rate:8.1f} GB/s {flops:8.1f} GFLOP/s"
                f"  {choice.spec.key.split()[1]}"
            )

    def _work(
        self, case: Case, threads: int
    ) -> tuple[list[Callable[[], None]], int, int, MatmulKernel]:
        batch, m, n, k = case.sizes
        registers, operands, weight_bytes = _operands(case)
        problem = MatmulProblem.of(registers, m)
        choice = choose(problem, self.kernels.host)
        code = self.kernels.address(choice.spec)
        assert choice.scratch(m, n, k) <= _SCRATCH
        fit = max(1, self.total // weight_bytes // threads)
        few = max(1, int(1e9 / (batch * m * n * k)) // case.shared)
        distinct = fit if m <= 16 else min(fit, few)
        table_bytes = {word: operands[word].nbytes for word in _TABLES if word in operands}
        operands |= {word: np.tile(operands[word], distinct * threads) for word in table_bytes}
        pointers = {word: raw.ctypes.data for word, raw in operands.items()}
        shape = words_of(registers, {**pointers, Word.WEIGHT: self.memory.ctypes.data})
        work: list[Callable[[], None]] = []
        kept: list[Any] = [operands]
        for thread in range(threads):
            words = np.tile(shape, (distinct * case.shared, 1))
            index = np.arange(distinct * case.shared) // case.shared + thread * distinct
            for word, size in {**table_bytes, Word.WEIGHT: weight_bytes}.items():
                words[:, word] += index * size
            first = np.arange(distinct * case.shared) % case.shared == 0
            words[:, Word.REUSE] = np.where(first, Reuse.KEEP, Reuse.PRESENT)
            if case.shared == 1:
                words[:, Word.REUSE] = Reuse.NONE
            listed = np.zeros(1 + 2 * len(words), np.int64)
            listed[0], listed[1::2] = len(words), code
            listed[2::2] = words.ctypes.data + 8 * WORDS * np.arange(len(words))
            kept += [words, listed]
            at = (listed.ctypes.data, self.scratch[thread].ctypes.data)
            work.append(lambda at=at, _=kept: self.trampoline(*at) and None)
        tasks = threads * distinct * case.shared
        return work, tasks // case.shared * weight_bytes, tasks * batch * m * n * k, choice


def _operands(case: Case) -> tuple[Any, dict[Word, Any], int]:
    """Return registers, all operands but the weights, and the bytes of one task's weights."""
    random = np.random.default_rng(0)
    batch, m, n, k = case.sizes
    act, weight, out = (ELEMENT_TYPES[kind] for kind in case.kinds)
    sizes = [kind.storage.itemsize for kind in (act, weight, out)]
    along = k // 2 if weight.bits == 4 else k
    strides = (n * along * sizes[1], along * sizes[1], sizes[1])
    if case.transposed:
        strides = (n * k * sizes[1], sizes[1], n * sizes[1])
    fields: dict[str, Any] = {
        "act_type": act.code,
        "weight_type": weight.code,
        "out_type": out.code,
        "alpha": 1.0,
        "batch": batch,
        "m": m,
        "n": n,
        "k": k,
        "act_strides": (m * k * sizes[0], k * sizes[0], sizes[0]),
        "weight_strides": strides,
        "out_strides": (m * n * sizes[2], n * sizes[2], sizes[2]),
        "group": case.group,
    }
    operands: dict[Word, Any] = {
        Word.ACT: _stored(random.standard_normal(batch * m * k), case.kinds[0]),
        Word.OUT: np.zeros(batch * m * n * sizes[2], np.uint8),
    }
    groups = k // (case.group or k)
    for name, kind in zip(("scale", "zero"), case.tables, strict=True):
        if kind is None:
            continue
        size = ELEMENT_TYPES[kind].storage.itemsize
        fields[f"{name}_type"] = ELEMENT_TYPES[kind].code
        fields[f"{name}_strides"] = (groups * size, size)
        operands[Word[name.upper()]] = _stored(np.full(n * groups, 1.0), kind)
    return _record(DPU_REGISTERS, fields), operands, batch * n * along * sizes[1]


def _stored(values: Any, kind: str) -> Any:
    if kind == "bf16":
        return f32_to_bf16(values.astype(np.float32))
    return values.astype(ELEMENT_TYPES[kind].storage)


def _record(kind: Record, fields: dict[str, Any]) -> Any:
    record = np.zeros(1, kind)
    for name, value in fields.items():
        record[name] = value
    return record[0]


def _aligned(size: int) -> Any:
    raw = np.zeros(size + 64, np.uint8)
    begin = -raw.ctypes.data % 64
    return raw[begin : begin + size]


def _together(work: list[Callable[[], None]]) -> float:
    if len(work) == 1:
        begin = time.thread_time()
        work[0]()
        return time.thread_time() - begin
    threads = [threading.Thread(target=one) for one in work]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - begin


# Loops that only read or only multiply


def _write_read(host: Host) -> str:
    e = Emitter(host)
    begin, size, out = e.pointer(0), e.word(1), e.pointer(2)
    lanes = max(host.lanes, 4)
    sums = [e.variable(e.splat(I32(0), lanes)) for _ in range(8)]
    with e.loop(0, size, 8 * 4 * lanes) as offset:
        for number, total in enumerate(sums):
            place = e.at(begin, e.b.add(offset, I64(4 * lanes * number)))
            total.set(e.b.xor(total.get(), e.load(place, I32, lanes)))
    for total in sums[1:]:
        sums[0].set(e.b.xor(sums[0].get(), total.get()))
    e.store(sums[0].get(), out)
    return e.finish()


_Dot = tuple[Callable[[Emitter, Value, Value], Value], tuple[Any, int], Any]


class _BFloat(ir.Type):
    """bf16 type, which llvmlite lacks."""

    def _to_string(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _BFloat)

    def __hash__(self) -> int:
        return hash(_BFloat)


def _dots(host: Host) -> dict[str, tuple[_Dot, int]]:
    lanes = host.lanes

    def fma(e: Emitter, total: Value, x: Value) -> Value:
        return e.fma(x, x, total)

    def bf16(e: Emitter, total: Value, x: Value) -> Value:
        return e.external("llvm.x86.avx512bf16.dpbf16ps.512", total, x, x, result=total.type)

    def vnni(e: Emitter, total: Value, x: Value) -> Value:
        return e.external("llvm.x86.avx512.vpdpbusd.512", total, x, x, result=total.type)

    found: dict[str, tuple[_Dot, int]] = {"f32 fma": ((fma, (F32, lanes), F32), lanes)}
    if host.dots_bf16:
        found["bf16 dot"] = ((bf16, (_BFloat(), 32), F32), 32)
    if host.dots_bytes:
        found["byte dot"] = ((vnni, (I8, 64), I32), 64)
    return found


def _write_peak(host: Host, dot: _Dot) -> str:
    e = Emitter(host)
    count, place = e.word(0), e.pointer(1)
    step, operand, kind = dot
    x = e.load(place, *operand)
    sums = [e.variable(e.load(e.at(place, 64), kind, host.lanes)) for _ in range(16)]
    with e.loop(0, count):
        for total in sums:
            total.set(step(e, total.get(), x))
    for number, total in enumerate(sums):
        e.store(total.get(), e.at(place, 64 * number))
    return e.finish()


def _tile_dots(host: Host) -> dict[str, tuple[NumberFormat, int]]:
    """Return flavours of matmuls in tile registers, and the multiplications of each."""
    if not host.has_tiles:
        return {}
    return {
        "bf16 tiles": (NumberFormat.BF16, 16**3 * 2),
        "byte tiles": (NumberFormat.BYTES, 16**3 * 4),
    }


def _write_tile_peak(host: Host, flavour: NumberFormat) -> str:
    e = Emitter(host)
    with configured(e):
        for tile in range(8):
            clear_tile(e, tile)
        with e.loop(0, e.word(0)):
            for i, j in product((0, 1), repeat=2):
                add_products(e, flavour, 2 * i + j, 4 + i, 6 + j)
    return e.finish()


if __name__ == "__main__":
    main()
