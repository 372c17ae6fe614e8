"""Kernel that computes the issue order of ``npu.order``."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from driver_layer.engines.native.jit.emitter import I1, I64, Emitter, Value
from driver_layer.engines.native.jit.host import Host
from driver_layer.engines.native.jit.kernels import Kernels, KernelSpec
from driver_layer.engines.native.lower.arrays import Ints
from driver_layer.engines.native.lower.dataflow import NONE, Array
from driver_layer.npu.order import Order, issue_order
from driver_layer.npu.program import Program

_HALF = (1 << 64) - 1
_STUCK = 1


def find_issue_order(program: Program, physical_barriers: int, kernels: Kernels) -> Order:
    """Return the order in which the barriers let a program's tasks run.

    Raises:
        DeviceFault: as ``npu.order.issue_order``, which runs if the kernel finds a fault.
    """
    total = sum(len(queue) for queue in program.queues)
    queues, tasks = np.zeros(total, np.int64), np.zeros(total, np.int64)
    if not total or not _barriers_are_valid(program, physical_barriers):
        return issue_order(program, physical_barriers)
    arrays = (*_queue_arrays(program), *_barrier_arrays(program), queues, tasks)
    words = np.array([array.ctypes.data for array in arrays], np.int64)
    kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
    if kind(kernels.address(_ORDER))(words.ctypes.data, None):
        return issue_order(program, physical_barriers)
    return Order(queues.tolist(), tasks.tolist())


def _barriers_are_valid(program: Program, physical_barriers: int) -> bool:
    barriers = program.barriers
    following, real = barriers["next_same_id"].astype(np.int64), barriers["real_id"]
    chained = np.flatnonzero(following != NONE)
    ahead = following[chained]
    return bool(
        (real < physical_barriers).all()
        and (ahead > chained).all()
        and (ahead < len(barriers)).all()
        and (real[ahead] == real[chained]).all()
    )


def _queue_arrays(program: Program) -> list[Ints]:
    queues = program.queues
    begins = np.cumsum([0, *(len(queue) for queue in queues)]).astype(np.int64)
    masks = [
        half for of in ("waits", "posts") for half in _halves([getattr(q, of) for q in queues])
    ]
    after, slots = (
        np.array([one for queue in queues for one in getattr(queue, of)], np.int64)
        for of in ("start_after", "slots")
    )
    count = np.array([len(queues)], np.int64)
    return [count, begins, *masks, after, slots, begins[:-1].copy()]


def _halves(lists: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """Split masks of physical barriers into two words each, for barriers 0 to 63 and from 64 on."""
    masks = [mask for one in lists for mask in one]
    low = np.array([mask & _HALF for mask in masks], np.uint64)
    high = np.array([mask >> 64 for mask in masks], np.uint64)
    return low.view(np.int64), high.view(np.int64)


def _barrier_arrays(program: Program) -> list[Ints]:
    barriers = program.barriers
    fields = ("next_same_id", "producers", "consumers", "real_id")
    current = np.full(128, NONE, np.int64)
    state = (current, np.zeros(len(barriers) + 1, np.int64))
    count = np.array([len(barriers), 0], np.int64)
    # One more entry, which is read, but not used, for barriers that are not programmed.
    return [count, *(np.append(barriers[name].astype(np.int64), 0) for name in fields), *state]


class _Issue:
    """Builder of the kernel: ``npu.barriers`` and ``npu.order`` in LLVM IR."""

    def __init__(self, host: Host) -> None:
        self.e = Emitter(host)
        self.b = self.e.b
        arrays = [Array(self.e, word) for word in range(18)]
        self.count, self.begins, *self.masks = arrays[:6]
        self.after, self.slots, self.heads = arrays[6:9]
        # Sizes: the number of barriers, and the number below which all are programmed.
        self.sizes, self.following, self.producers, self.consumers, self.real = arrays[9:14]
        self.current, self.programmed, self.out_queues, self.out_tasks = arrays[14:]
        self.issued = self.e.variable(I64(0))
        self.progress = self.e.variable(I64(1))

    def write(self) -> str:
        """Emit the kernel."""
        b = self.b
        with self.e.loop(0, self.sizes[I64(0)]) as virtual:
            real = self.real[virtual]
            with b.if_then(b.icmp_signed("<", self.current[real], I64(0))):
                self.program(real, virtual)
        with self.e.repeat(lambda: b.icmp_signed("!=", self.progress.get(), I64(0))):
            self.progress.set(I64(0))
            with (
                self.e.loop(0, self.count[I64(0)]) as queue,
                self.e.repeat(partial(self.ready, queue)),
            ):
                self.issue(queue)
        total = self.begins[self.count[I64(0)]]
        self.e.fail(b.icmp_signed("!=", self.issued.get(), total), _STUCK)
        with self.e.loop(0, self.sizes[I64(0)]) as virtual:
            self.e.fail(b.icmp_signed("!=", self.producers[virtual], I64(0)), _STUCK)
        return self.e.finish()

    def ready(self, queue: Value) -> Value:
        """Return whether a queue has a task left whose barriers are open."""
        b = self.b
        task = self.heads[queue]
        last = self.begins[b.add(queue, I64(1))]
        ready = self.e.variable(I1(0))
        ready.set(b.icmp_signed("<", task, last))
        with b.if_then(ready.get()):
            programmed = b.icmp_signed("<=", self.after[task], self.sizes[I64(1)])
            ready.set(programmed)
            self.each_bit(task, 0, lambda real: ready.set(b.and_(ready.get(), self.is_open(real))))
        return ready.get()

    def is_open(self, real: Value) -> Value:
        """Return whether a physical barrier is programmed and all its producers are done."""
        b = self.b
        virtual = self.current[real]
        known = b.icmp_signed(">=", virtual, I64(0))
        left = self.producers[b.select(known, virtual, I64(0))]
        return b.and_(known, b.icmp_signed("==", left, I64(0)))

    def issue(self, queue: Value) -> None:
        """Issue the first task of a queue."""
        b = self.b
        task = self.heads[queue]
        for mask, counters in ((2, self.producers), (0, self.consumers)):
            self.each_bit(task, mask, lambda real, c=counters: self.count_down(c, real, task))
        for mask in (0, 2):
            self.each_bit(task, mask, self.reprogram)
        at = self.issued.get()
        self.out_queues[at] = queue
        self.out_tasks[at] = b.sub(task, self.begins[queue])
        self.issued.set(b.add(at, I64(1)))
        self.heads[queue] = b.add(task, I64(1))
        self.progress.set(I64(1))

    def each_bit(self, task: Value, mask: int, act: Callable[[Value], None]) -> None:
        """Emit code for each physical barrier of a task's wait (0) or post (2) mask."""
        b = self.b
        for half, first in ((self.masks[mask], 0), (self.masks[mask + 1], 64)):
            rest = self.e.variable(I64(0))
            rest.set(half[task])
            with self.e.repeat(lambda rest=rest: b.icmp_signed("!=", rest.get(), I64(0))):
                lowest = self.e.lowest_bit(rest.get())
                rest.set(b.and_(rest.get(), b.sub(rest.get(), I64(1))))
                act(b.add(lowest, I64(first)))

    def count_down(self, counters: Array, real: Value, task: Value) -> None:
        """Count down a barrier that a task uses."""
        b = self.b
        virtual = self.current[real]
        self.e.fail(b.icmp_signed("<", virtual, I64(0)), _STUCK)
        left = b.sub(counters[virtual], self.slots[task])
        self.e.fail(b.icmp_signed("<", left, I64(0)), _STUCK)
        counters[virtual] = left

    def reprogram(self, real: Value) -> None:
        """Replace a consumed virtual barrier by its successor."""
        b = self.b
        virtual = self.current[real]
        following = self.following[virtual]
        open_ends = b.or_(self.producers[virtual], self.consumers[virtual])
        consumed = b.icmp_signed("==", open_ends, I64(0))
        with b.if_then(b.and_(consumed, b.icmp_signed(">=", following, I64(0)))):
            self.program(real, following)

    def program(self, real: Value, virtual: Value) -> None:
        """Program a virtual barrier into a physical one."""
        b = self.b
        self.current[real] = virtual
        self.programmed[virtual] = I64(1)
        # One more entry, which is always zero, ends the search.
        below = self.sizes[I64(1)]
        place = self.e.variable(I64(0))
        place.set(below)
        with self.e.repeat(lambda: b.icmp_signed("!=", self.programmed[place.get()], I64(0))):
            place.set(b.add(place.get(), I64(1)))
        self.sizes[I64(1)] = place.get()


_ORDER = KernelSpec("lower order", lambda host: _Issue(host).write())
