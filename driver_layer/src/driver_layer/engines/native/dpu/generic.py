"""Matmuls of any operands, element by element, summed in f64, if no faster kernel supports them.

f64 sums are exact for products of integers, and more precise than f32 sums for f32.
"""

from __future__ import annotations

from functools import partial

from driver_layer.abi.dtypes import DType
from driver_layer.engines.native.dpu.finish import row_factor
from driver_layer.engines.native.dpu.problem import BYTES, NIBBLES, MatmulKernel, MatmulProblem
from driver_layer.engines.native.dpu.task import KernelArguments
from driver_layer.engines.native.dpu.words import Word
from driver_layer.engines.native.jit.emitter import F32, F64, I8, I64, Emitter, Value
from driver_layer.engines.native.jit.host import Host
from driver_layer.engines.native.jit.kernels import KernelSpec
from driver_layer.engines.native.jit.memory_types import load_f32, store_f32


def choose(problem: MatmulProblem) -> MatmulKernel:
    """Return the kernel for a problem; every problem has one."""
    return MatmulKernel(
        KernelSpec(f"dpu generic {problem.key}", partial(_write, problem)), _no_scratch
    )


def _no_scratch(m: int, n: int, k: int) -> int:
    return 0


def _write(problem: MatmulProblem, host: Host) -> str:
    e = Emitter(host)
    task = KernelArguments(problem, e)
    with (
        e.loop(0, task[Word.BATCH]) as batch,
        e.loop(0, task[Word.M]) as m,
        e.loop(0, task[Word.N]) as n,
    ):
        total = e.variable(F64(0.0))
        with e.loop(0, task[Word.K]) as k:
            act = _act(task, (batch, m, k))
            weight = _weight(task, (batch, n, k))
            product = e.b.fmul(e.b.fpext(act, F64), e.b.fpext(weight, F64))
            total.set(e.b.fadd(total.get(), product))
        value = e.b.fptrunc(total.get(), F32)
        _store(task, value, (batch, m, n))
    return e.finish()


_Place = tuple[Value, Value, Value]


def _act(task: KernelArguments, place: _Place) -> Value:
    problem, e, (batch, m, k) = task.problem, task.e, place
    steps = ((batch, Word.ACT_B), (m, Word.ACT_M), (k, Word.ACT_K))
    value = load_f32(e, task.address(Word.ACT, *steps), problem.act, 1)
    if problem.act in BYTES:
        value = e.b.fsub(value, e.b.sitofp(task[Word.ACT_ZERO], F32))
    return value


def _weight(task: KernelArguments, place: _Place) -> Value:
    """Return the weight less its zero point, and scaled, unless sums of integers are scaled."""
    problem, b, (_, n, k) = task.problem, task.e.b, place
    group = b.udiv(k, task[Word.GROUP])
    value = _stored(task, place)
    if problem.zero is not DType.UNSET:
        value = b.fsub(value, task.number(Word.ZERO, n, group))
    if problem.scale is not DType.UNSET and problem.act not in BYTES:
        value = b.fmul(value, task.number(Word.SCALE, n, group))
    return value


def _stored(task: KernelArguments, place: _Place) -> Value:
    problem, e, (batch, n, k) = task.problem, task.e, place
    b = e.b
    packed = problem.weight in NIBBLES
    element = b.lshr(k, I64(1)) if packed else k
    steps = ((batch, Word.WEIGHT_B), (n, Word.WEIGHT_N), (element, Word.WEIGHT_K))
    address = task.address(Word.WEIGHT, *steps)
    if not packed:
        return load_f32(e, address, problem.weight, 1)
    both = e.load(address, I8)
    upper = b.trunc(b.and_(k, I64(1)), I8)
    if problem.weight is DType.U4:
        nibble = b.lshr(both, b.mul(upper, I8(4)))
        return b.uitofp(b.and_(nibble, I8(15)), F32)
    # The chosen nibble becomes the upper half: its sign is the byte's.
    nibble = b.shl(both, b.mul(b.sub(I8(1), upper), I8(4)))
    return b.sitofp(b.ashr(nibble, I8(4)), F32)


def _store(task: KernelArguments, value: Value, place: _Place) -> None:
    problem, e, (batch, m, n) = task.problem, task.e, place
    b = e.b
    if problem.act in BYTES:
        if problem.scale is not DType.UNSET:
            value = b.fmul(value, task.number(Word.SCALE, n, I64(0)))
        factor = row_factor(task, m)
        if factor is not None:
            value = b.fmul(value, factor)
    value = b.fmul(value, task.alpha)
    steps = ((batch, Word.OUT_B), (m, Word.OUT_M), (n, Word.OUT_N))
    address = task.address(Word.OUT, *steps)
    if problem.accumulate:
        value = b.fadd(value, e.load(address, F32))
    store_f32(e, value, address, problem.out, 1)
