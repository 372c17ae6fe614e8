"""The simulated device: connects CMX, the engines' lock, the management core and streams."""

from __future__ import annotations

import os
import threading
import time
import weakref
from contextlib import suppress

from driver_layer.abi.platforms import Platform
from driver_layer.engines.choose import choose_executor
from driver_layer.engines.executor import Executor
from driver_layer.errors import DriverFault
from driver_layer.npu.bus import Bus
from driver_layer.npu.cmx import Cmx
from driver_layer.npu.counters import Counters
from driver_layer.npu.doorbell import Doorbell
from driver_layer.npu.management import ManagementCore
from driver_layer.npu.memory import AddressSpace
from driver_layer.npu.program import Footprint
from driver_layer.npu.stream import Stream
from driver_layer.npu.turns import Turns


class _Work:
    """Locks, threads and doorbell of one process; a forked process needs new ones."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.engines = Turns()
        """Held while CMX and the engines are used: inferences run one at a time."""
        self.core = threading.Lock()
        """Held while the management core is used. A plain lock, as programs are prepared in the
        caller's thread, where a signal handler may raise (see ``turns``)."""
        self.doorbell = Doorbell()
        self.streams: weakref.WeakSet[Stream] = weakref.WeakSet()


class Device:
    """One NPU.

    Args:
        platform: generation of the device.
        executor: executor of programs; the one that ``NPU_ENGINE`` names if not given.

    Raises:
        EngineError: ``NPU_ENGINE`` names an unknown engine, or one that cannot run here.
    """

    def __init__(self, platform: Platform, executor: Executor | None = None) -> None:
        self.platform = platform
        self.cmx = Cmx(platform)
        barriers = platform.barriers_per_tile * platform.tiles
        self._core = ManagementCore(executor or choose_executor(), barriers)
        self._born = time.monotonic_ns()
        self.counters = Counters()
        self._begin()

    def _begin(self) -> None:
        work = _Work()
        # Also called at the end of the process, if the device still exists then.
        weakref.finalize(self, _shut_down, work)
        self._in_process = work

    @property
    def _work(self) -> _Work:
        if self._in_process.process != os.getpid():
            self._begin()
        return self._in_process

    @property
    def doorbell(self) -> Doorbell:
        """Doorbell at which streams and the host wait for each other."""
        return self._work.doorbell

    @property
    def engines(self) -> Turns:
        """Lock of CMX and the engines."""
        return self._work.engines

    def stream(self, kind: str) -> Stream:
        """Create a stream.

        Args:
            kind: kind of its work, for the name of its thread.
        """
        made = Stream(f"npu-{self.platform.name}-{kind}")
        self._work.streams.add(made)
        return made

    def prepare(self, space: AddressSpace, hpi_address: int, footprint: Footprint) -> None:
        """Prepare a loaded program before its first run.

        Problems of the program are reported when it runs.

        Args:
            space: the memory of the context that loaded the program.
            hpi_address: address of the HOST_PARSED_INFERENCE record.
            footprint: the memory it accesses; a program of the same blob is rebased onto it.
        """
        with self._work.core, suppress(DriverFault):
            self._core.prepare(Bus(self.cmx, space), hpi_address, footprint)

    def timestamp(self) -> int:
        """Return the time since the device was created, in ticks of the profiling clock."""
        return (time.monotonic_ns() - self._born) * self.platform.timer_khz // 1_000_000

    def run_inference(self, space: AddressSpace, hpi_address: int) -> None:
        """Execute a loaded program to its end, on the calling thread, which is a stream's.

        Args:
            space: the memory of the context that loaded the program.
            hpi_address: address of the HOST_PARSED_INFERENCE record.

        Raises:
            DeviceFault: the program is malformed, deadlocks, or a task fails.
            OutOfMemory: the host has no memory left.
        """
        with self.engines, self._work.core, self.counters.running():
            space.scratch_in_use = True
            self._core.run_inference(Bus(self.cmx, space), hpi_address)

    def forget(self, space: AddressSpace, hpi_address: int) -> None:
        """Drop cached data of a program that is being unloaded."""
        self._core.forget(space, hpi_address)

    def release(self, space: AddressSpace) -> None:
        """Drop all prepared programs of a context, and its scratch; the next run renews its own."""
        with self._work.core:
            self._core.release(space)
            space.release_scratch()

    def release_scratch(self, space: AddressSpace) -> None:
        """Return a context's scratch memory to the host until the next inference."""
        with self._work.core:
            space.release_scratch()


def _shut_down(work: _Work) -> None:
    """End all streams: running jobs complete, jobs that wait for a signal fail."""
    if work.process != os.getpid():
        return
    work.doorbell.close()
    for stream in tuple(work.streams):
        stream.join()
