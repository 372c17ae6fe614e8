"""The dispatcher: what each thread does during a run, in LLVM IR.

A thread takes units of the present phase until there are none, and goes on to the next phase when
all of them are done, whoever did them. So a thread that comes late, or that the host's scheduler
holds back between two units, makes nobody wait.
"""

from __future__ import annotations

from llvmlite import ir

from driver_layer.engines.native.dispatch.table import COUNTER_BYTES, StateWord
from driver_layer.engines.native.jit.emitter import I32, I64, PTR, Emitter, Value
from driver_layer.engines.native.jit.host import Host
from driver_layer.engines.native.jit.kernels import KernelSpec

_SPINS_BEFORE_YIELD = 2000
"""Looks at a counter, some ten nanoseconds each, before the thread offers its core to others."""

_ROW_BYTES = 16

_KERNEL = ir.FunctionType(I32, [PTR, PTR])


def _write(host: Host) -> str:
    """A kernel as any other: its arguments are the state, its scratch is the thread's."""
    e = Emitter(host)
    b = e.b
    with e.loop(0, e.word(StateWord.COUNT)) as phase:
        units = e.pointer(StateWord.PHASES)
        begin = e.load(e.at(units, b.mul(phase, I64(8))), I64)
        end = e.load(e.at(units, b.mul(b.add(phase, I64(1)), I64(8))), I64)
        count = b.sub(end, begin)
        taken, done = (
            e.at(e.pointer(word), b.mul(phase, I64(COUNTER_BYTES)))
            for word in (StateWord.TAKEN, StateWord.DONE)
        )
        _take_units(e, begin, count, taken, done)
        _wait(e, done, count)
        _stop_if_failed(e)
    return e.finish()


WORKER = KernelSpec("dispatch worker", _write)


def _take_units(e: Emitter, begin: Value, count: Value, taken: Value, done: Value) -> None:
    b = e.b
    head, body, after = (e.function.append_basic_block(name) for name in ("take", "run", "none"))
    b.branch(head)
    b.position_at_end(head)
    mine = b.atomic_rmw("add", taken, I64(1), "acq_rel")
    b.cbranch(b.icmp_signed("<", mine, count), body, after)
    b.position_at_end(body)
    _run_unit(e, b.add(begin, mine))
    b.atomic_rmw("add", done, I64(1), "acq_rel")
    b.branch(head)
    b.position_at_end(after)


def _run_unit(e: Emitter, unit: Value) -> None:
    b = e.b
    rows = e.pointer(StateWord.UNITS)
    first = e.load(e.at(rows, b.mul(unit, I64(8))), I64)
    last = e.load(e.at(rows, b.mul(b.add(unit, I64(1)), I64(8))), I64)
    with e.loop(first, last) as row:
        place = e.at(e.pointer(StateWord.ROWS), b.mul(row, I64(_ROW_BYTES)))
        kernel, arguments = e.load_function(place, _KERNEL), e.load(e.at(place, 8), PTR)
        status = b.call(kernel, [arguments, e.scratch])
        with b.if_then(b.icmp_signed("!=", status, I32(0)), likely=False):
            failed = e.at(e.args, 8 * StateWord.FAILED_ROW)
            b.atomic_rmw("xchg", failed, b.add(row, I64(1)), "acq_rel")


def _wait(e: Emitter, done: Value, count: Value) -> None:
    """Look at a counter until it says that all is done."""
    b = e.b
    spins = e.variable(I64(0))
    head, again, tired, after = (
        e.function.append_basic_block(name) for name in ("look", "again", "tired", "through")
    )
    b.branch(head)
    b.position_at_end(head)
    seen = b.load_atomic(done, "acquire", 8, typ=I64)
    b.cbranch(b.icmp_signed("<", seen, count), again, after)
    b.position_at_end(again)
    spins.set(b.add(spins.get(), I64(1)))
    _pause(e)
    b.cbranch(b.icmp_signed("<", spins.get(), I64(_SPINS_BEFORE_YIELD)), head, tired)
    b.position_at_end(tired)
    e.external("sched_yield", result=I32)
    spins.set(I64(0))
    b.branch(head)
    b.position_at_end(after)


def _pause(e: Emitter) -> None:
    """Tell the core that this thread waits."""
    if "x86" in e.host.triple or "i686" in e.host.triple:
        e.external("llvm.x86.sse2.pause", result=ir.VoidType())
    elif e.host.triple.startswith(("aarch64", "arm64")):
        e.external("llvm.aarch64.hint", I32(1), result=ir.VoidType())


def _stop_if_failed(e: Emitter) -> None:
    failed = e.b.load_atomic(e.at(e.args, 8 * StateWord.FAILED_ROW), "acquire", 8, typ=I64)
    e.fail(e.b.icmp_signed("!=", failed, I64(0)), 1)
