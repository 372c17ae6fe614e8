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

from driver_layer.engines.native.dispatch.gate import HELP, LEAD, GateWord, ThreadWord
from driver_layer.engines.native.dispatch.table import COUNTER_BYTES, Table, Words
from driver_layer.engines.native.dispatch.worker import WORKER
from driver_layer.engines.native.jit.kernels import Kernels
from driver_layer.errors import EngineError

THREADS_VARIABLE = "NPU_ENGINE_THREADS"
_ALIGNMENT = 64

_LARGE, _HUGE_FROM = 1 << 20, 1 << 22
"""Of 4 MiB, numpy asks the kernel for huge pages; only those are taken that are touched."""

_CODE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
"""ctypes lets go of the interpreter's lock while the function runs."""


class Team:
    """Threads that work on one table at a time.

    Threads of streams call it, where no signal's handler raises.

    Args:
        kernels: of this host.
        threads: how many, the caller's among them.
    """

    def __init__(self, kernels: Kernels, threads: int) -> None:
        self._lead, self._help = _CODE(kernels.address(LEAD)), _CODE(kernels.address(HELP))
        self._code = kernels.address(WORKER)
        self.threads = threads
        self._gather()

    def _gather(self) -> None:
        self._busy = threading.Lock()
        self._gate = np.zeros((GateWord.WORDS, COUNTER_BYTES // 8), np.int64)
        self._words = np.zeros((self.threads, ThreadWord.WORDS), np.int64)
        self._words[:, ThreadWord.GATE] = self._gate.ctypes.data
        self._words[:, ThreadWord.WORK] = self._code
        self._words[:, ThreadWord.NUMBER] = np.arange(self.threads)
        self._scratch: list[np.ndarray] = []
        self._grow_scratch(0)
        numbers = range(1, self.threads)
        self._helpers = [_Helper(self._help, self._words[i], self._gate) for i in numbers]
        self._process = os.getpid()  # last: what is interrupted before begins anew

    def run(self, table: Table) -> None:
        """Execute a table; ``table.failure`` tells how it went."""
        if self._process != os.getpid():
            self._gather()  # a forked process has none of its parent's threads
        with self._busy:
            self._grow_scratch(table.scratch)
            table.reset()
            self._gate[GateWord.STATES, :2] = table.states.ctypes.data, len(table.states)
            self._gate[GateWord.OPEN, 0] = 1  # before a helper is awake, who would go away again
            for helper in self._helpers:
                helper.wake()
            self._lead(self._words.ctypes.data, None)

    def _grow_scratch(self, nbytes: int) -> None:
        size = nbytes + _ALIGNMENT
        if self._scratch and self._scratch[0].size >= size:
            return
        if size > _LARGE:
            size = max(size, _HUGE_FROM)
        self._scratch = [np.zeros(size, np.uint8) for _ in range(self.threads)]
        for words, scratch in zip(self._words, self._scratch, strict=True):
            words[ThreadWord.SCRATCH] = -(-scratch.ctypes.data // _ALIGNMENT) * _ALIGNMENT


class _Helper:
    """One more thread; it sleeps between runs."""

    def __init__(self, code: Callable[[int, None], int], words: Words, gate: Words) -> None:
        self._code, self._words, self._gate = code, words, gate
        self._calls = threading.Semaphore(0)
        name = f"npu-{words[ThreadWord.NUMBER]}"
        threading.Thread(target=self._serve, name=name, daemon=True).start()

    def wake(self) -> None:
        """Let it look whether the gate is open, as often as it is called."""
        self._calls.release()

    def _serve(self) -> None:
        while True:
            self._calls.acquire()
            self._code(self._words.ctypes.data, None)


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
