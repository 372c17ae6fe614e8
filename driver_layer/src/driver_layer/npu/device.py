"""The simulated device: wires its blocks together, and decides nothing."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

from driver_layer.abi.platforms import Platform
from driver_layer.engines import choose_executor
from driver_layer.engines.contract import Executor
from driver_layer.errors import DeviceFault
from driver_layer.npu.bus import Bus
from driver_layer.npu.cmx import Cmx
from driver_layer.npu.management import ManagementCore
from driver_layer.npu.memory import AddressSpace


class Device:
    """One NPU.

    Args:
        platform: its generation.
        executor: what runs programs; the one that ``NPU_ENGINE`` names if not given.

    Raises:
        EngineError: ``NPU_ENGINE`` names none, or one that this machine cannot run.
    """

    def __init__(self, platform: Platform, executor: Executor | None = None) -> None:
        self.platform = platform
        self.cmx = Cmx(platform)
        barriers = platform.barriers_per_tile * platform.tiles
        self._core = ManagementCore(executor or choose_executor(), barriers)
        self._worker: ThreadPoolExecutor | None = None
        self._starting = threading.Lock()
        self._process = os.getpid()

    def submit(self, job: Callable[[], object]) -> Future[object]:
        """Queue work for the device; jobs run one after the other, in the order of submission."""
        if self._process != os.getpid():
            # A forked process has none of its parent's threads.
            self._process, self._worker, self._starting = os.getpid(), None, threading.Lock()
        with self._starting:  # one worker, whoever submits first
            if self._worker is None:
                self._worker = ThreadPoolExecutor(1, f"npu-{self.platform.name}")
        return self._worker.submit(job)

    def prepare(self, space: AddressSpace, hpi_address: int) -> None:
        """Do now what the first run of a loaded program would do before it begins.

        The device does it when it is done with what was submitted before. What is wrong with the
        program is said when it runs.
        """
        job = self.submit(lambda: self._core.prepare(Bus(self.cmx, space), hpi_address))
        with suppress(DeviceFault):
            job.result()

    def run_inference(self, space: AddressSpace, hpi_address: int) -> None:
        """Execute a loaded program to its end, on the calling thread.

        Args:
            space: the memory of the context that loaded it.
            hpi_address: where its HOST_PARSED_INFERENCE record lies.

        Raises:
            DeviceFault: the program is malformed, deadlocks, or a task fails.
        """
        self._core.run_inference(Bus(self.cmx, space), hpi_address)

    def forget(self, space: AddressSpace, hpi_address: int) -> None:
        """Drop what the device remembers of a program that is being unloaded."""
        self._core.forget(Bus(self.cmx, space), hpi_address)
