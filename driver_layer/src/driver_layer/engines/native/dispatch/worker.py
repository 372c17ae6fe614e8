"""Dispatcher that each thread runs, in LLVM IR.

A thread takes units of the current phase until none is left, from its own queue first. It enters
the next phase when all units of the current one are done, by any thread. So a thread that is late,
or is descheduled between two units, delays nobody.

A waiting thread leaves memory bandwidth idle, so it prefetches the operands that its queue streams
in later phases.
"""

from __future__ import annotations

from llvmlite import ir

from driver_layer.engines.native.dispatch.table import COUNTER_BYTES, StateWord
from driver_layer.engines.native.jit.emitter import I32, I64, PTR, Emitter, Value, Variable
from driver_layer.engines.native.jit.host import Host
from driver_layer.engines.native.jit.kernels import KernelSpec

_SPINS_BEFORE_YIELD = 2000
"""Polls of a counter, about ten nanoseconds each, before the thread yields its core."""

_PAIR = 16
"""Bytes of a pair of words."""

_LINE = 64
_LINES = 4
"""Cache lines to prefetch between two polls of a counter."""

_KERNEL = ir.FunctionType(I32, [PTR, PTR])


def _write(host: Host) -> str:
    """Write a kernel whose arguments are a thread's state, and whose scratch is the thread's."""
    e = Emitter(host)
    _Worker(e).write()
    return e.finish()


WORKER = KernelSpec("dispatch worker", _write)


class _Worker:
    """Writer of the dispatcher's kernel."""

    def __init__(self, e: Emitter) -> None:
        self.e, self.b = e, e.b
        self.queues, self.queue = e.word(StateWord.QUEUES), e.word(StateWord.QUEUE)
        self.stream, self.fetched = e.variable(I64(0)), e.variable(I64(0))
        """Stream being prefetched, and its bytes prefetched so far."""

    def write(self) -> None:
        """Write the kernel's body."""
        e, b = self.e, self.b
        row_bytes = b.mul(b.add(self.queues, I64(1)), I64(8))
        with e.loop(0, e.word(StateWord.COUNT)) as phase:
            bounds = e.at(e.pointer(StateWord.BOUNDS), b.mul(phase, row_bytes))
            with e.loop(0, self.queues) as number:
                # The thread's own queue, then the next queue, and so on.
                queue = b.urem(b.add(self.queue, number), self.queues)
                self._take_units(phase, queue, bounds)
            begin = e.load(bounds, I64)
            end = e.load(e.at(bounds, b.mul(self.queues, I64(8))), I64)
            done = e.at(e.pointer(StateWord.DONE), b.mul(phase, I64(COUNTER_BYTES)))
            self._wait(phase, done, b.sub(end, begin))
            failed = b.load_atomic(e.pointer(StateWord.FAILED), "acquire", 8, typ=I64)
            e.fail(b.icmp_signed("!=", failed, I64(0)), 1)

    # Work

    def _take_units(self, phase: Value, queue: Value, bounds: Value) -> None:
        """Take units of a queue until none is left, and run them."""
        e, b = self.e, self.b
        begin = e.load(e.at(bounds, b.mul(queue, I64(8))), I64)
        end = e.load(e.at(bounds, b.mul(b.add(queue, I64(1)), I64(8))), I64)
        number = b.add(b.mul(phase, self.queues), queue)
        taken = e.at(e.pointer(StateWord.TAKEN), b.mul(number, I64(COUNTER_BYTES)))
        done = e.at(e.pointer(StateWord.DONE), b.mul(phase, I64(COUNTER_BYTES)))
        count = b.sub(end, begin)
        # A plain load before the atomic add leaves the counter in other cores' caches.
        with e.repeat(
            lambda: b.icmp_signed("<", b.load_atomic(taken, "monotonic", 8, typ=I64), count)
        ):
            mine = b.atomic_rmw("add", taken, I64(1), "acq_rel")
            with b.if_then(b.icmp_signed("<", mine, count)):
                self._run_unit(b.add(begin, mine))
                b.atomic_rmw("add", done, I64(1), "acq_rel")

    def _run_unit(self, unit: Value) -> None:
        e, b = self.e, self.b
        rows = e.pointer(StateWord.UNITS)
        first = e.load(e.at(rows, b.mul(unit, I64(8))), I64)
        last = e.load(e.at(rows, b.mul(b.add(unit, I64(1)), I64(8))), I64)
        with e.loop(first, last) as row:
            place = e.at(e.pointer(StateWord.ROWS), b.mul(row, I64(_PAIR)))
            kernel, arguments = e.load_function(place, _KERNEL), e.load(e.at(place, 8), PTR)
            status = b.call(kernel, [arguments, e.scratch])
            with b.if_then(b.icmp_signed("!=", status, I32(0)), likely=False):
                b.atomic_rmw("xchg", e.pointer(StateWord.FAILED), b.add(row, I64(1)), "acq_rel")

    # Waiting

    def _wait(self, phase: Value, done: Value, count: Value) -> None:
        """Poll a counter until all units are done, prefetching meanwhile."""
        e, b = self.e, self.b
        last = self._streams_behind(phase)
        spins = e.variable(I64(0))
        with e.repeat(
            lambda: b.icmp_signed("<", b.load_atomic(done, "acquire", 8, typ=I64), count)
        ):
            streams_left = b.icmp_signed("<", self.stream.get(), last)
            with b.if_else(streams_left) as (fetch, idle):
                with fetch:
                    self._fetch()
                with idle:
                    yield_after(e, spins)

    def _streams_behind(self, phase: Value) -> Value:
        """Skip streams that are already read after a phase; return the end of those to prefetch."""
        e, b = self.e, self.b
        number = b.add(b.mul(phase, self.queues), self.queue)
        span = e.at(e.pointer(StateWord.AHEAD), b.mul(number, I64(_PAIR)))
        first, last = e.load(span, I64), e.load(e.at(span, 8), I64)
        with b.if_then(b.icmp_signed("<", self.stream.get(), first)):
            self.stream.set(first)
            self.fetched.set(I64(0))
        return last

    def _fetch(self) -> None:
        """Prefetch some lines of the current stream; at its end, switch to the next."""
        e, b = self.e, self.b
        place = e.at(e.pointer(StateWord.STREAMS), b.mul(self.stream.get(), I64(_PAIR)))
        address, size = e.load(place, PTR), e.load(e.at(place, 8), I64)
        first = e.at(address, self.fetched.get())
        for line in range(_LINES):
            e.prefetch(e.at(first, _LINE * line), near=False)
        self.fetched.set(b.add(self.fetched.get(), I64(_LINES * _LINE)))
        with b.if_then(b.icmp_signed(">=", self.fetched.get(), size)):
            self.stream.set(b.add(self.stream.get(), I64(1)))
            self.fetched.set(I64(0))


def yield_after(e: Emitter, spins: Variable) -> None:
    """Pause; after many calls, yield the core to other threads."""
    b = e.b
    _pause(e)
    spins.set(b.add(spins.get(), I64(1)))
    with b.if_then(b.icmp_signed(">=", spins.get(), I64(_SPINS_BEFORE_YIELD)), likely=False):
        e.external("sched_yield", result=I32)
        spins.set(I64(0))


def _pause(e: Emitter) -> None:
    """Hint to the core that this thread is spinning."""
    if "x86" in e.host.triple or "i686" in e.host.triple:
        e.external("llvm.x86.sse2.pause", result=ir.VoidType())
    elif e.host.triple.startswith(("aarch64", "arm64")):
        e.external("llvm.aarch64.hint", I32(1), result=ir.VoidType())
