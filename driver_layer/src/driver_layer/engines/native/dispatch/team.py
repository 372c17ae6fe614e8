"""The threads that run tables.

They are Python's, but what they run is native and leaves the interpreter to others meanwhile.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from functools import cache

import numpy as np

from driver_layer.engines.native.dispatch.table import Table
from driver_layer.engines.native.dispatch.worker import WORKER
from driver_layer.engines.native.jit.kernels import Kernels
from driver_layer.errors import EngineError

THREADS_VARIABLE = "NPU_ENGINE_THREADS"
_ALIGNMENT = 64

_LARGE, _HUGE_FROM = 1 << 20, 1 << 22
"""Of 4 MiB, numpy asks the kernel for huge pages; only those are taken that are touched."""

_Worker = Callable[[int, int], int]


class Team:
    """Threads that work on one table at a time.

    Args:
        kernels: of this host.
        threads: how many, the caller's among them.
    """

    def __init__(self, kernels: Kernels, threads: int) -> None:
        # ctypes lets go of the interpreter's lock while the function runs.
        kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
        self._work: _Worker = kind(kernels.address(WORKER))
        self.threads = threads
        self._scratch = [np.zeros(0, np.uint8)] * threads
        self._gather()

    def _gather(self) -> None:
        self._process = os.getpid()
        self._busy = threading.Lock()
        self._helpers = [_Helper(number, self._run) for number in range(1, self.threads)]

    def run(self, table: Table) -> None:
        """Execute a table; ``table.failure`` tells how it went."""
        if self._process != os.getpid():
            self._gather()  # a forked process has none of its parent's threads
        with self._busy:
            self._grow_scratch(table.scratch)
            table.reset()
            for helper in self._helpers:
                helper.start(table)
            self._run(0, table)
            for helper in self._helpers:
                helper.wait()

    def _run(self, number: int, table: Table) -> None:
        scratch = self._scratch[number].ctypes.data
        aligned = -(-scratch // _ALIGNMENT) * _ALIGNMENT
        state = table.states[number % len(table.states)]
        self._work(state.ctypes.data, aligned)

    def _grow_scratch(self, nbytes: int) -> None:
        if self._scratch[0].size < nbytes + _ALIGNMENT:
            size = nbytes + _ALIGNMENT
            if size > _LARGE:
                size = max(size, _HUGE_FROM)
            self._scratch = [np.zeros(size, np.uint8) for _ in self._scratch]


class _Helper:
    """One more thread; it sleeps between runs."""

    def __init__(self, number: int, run: Callable[[int, Table], None]) -> None:
        self._number, self._run = number, run
        self._begin, self._end = threading.Semaphore(0), threading.Semaphore(0)
        self._table: Table | None = None
        threading.Thread(target=self._serve, name=f"npu-{number}", daemon=True).start()

    def start(self, table: Table) -> None:
        """Let it work on a table."""
        self._table = table
        self._begin.release()

    def wait(self) -> None:
        """Wait until it has left the table."""
        self._end.acquire()

    def _serve(self) -> None:
        while True:
            self._begin.acquire()
            table, self._table = self._table, None
            assert table is not None  # start() sets it
            self._run(self._number, table)
            self._end.release()


@cache
def shared_team(kernels: Kernels) -> Team:
    """The process's team: devices that work at the same time take turns."""
    return Team(kernels, thread_count())


def thread_count() -> int:
    """As many as there are cores for this process, or as ``NPU_ENGINE_THREADS`` says.

    Raises:
        EngineError: the variable is no positive number.
    """
    text = os.environ.get(THREADS_VARIABLE)
    if not text:
        available = getattr(os, "sched_getaffinity", None)
        return len(available(0)) if available else os.cpu_count() or 1
    if not text.isdecimal() or not int(text):
        raise EngineError(f"{THREADS_VARIABLE}={text}: not a positive number")
    return int(text)
