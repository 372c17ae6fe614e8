"""Threads that run tables.

The threads are Python's; native code runs in them without the interpreter's lock.
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
"""numpy requests huge pages from 4 MiB on; only touched pages are allocated."""

_CODE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
"""Releases the interpreter's lock during the call."""


class Team:
    """Threads that work on one table at a time.

    The caller is a stream's thread, which no signal handler interrupts with an exception.

    Args:
        kernels: kernels of this host.
        threads: number of threads, including the caller's.
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
        self._process = os.getpid()  # last: an interrupted start is repeated

    def run(self, table: Table) -> None:
        """Execute a table; afterwards ``table.failure`` is its failed row."""
        if self._process != os.getpid():
            self._gather()  # a forked process has no threads of its parent
        with self._busy:
            self._grow_scratch(table.scratch)
            table.reset()
            self._gate[GateWord.STATES, :2] = table.states.ctypes.data, len(table.states)
            self._gate[GateWord.OPEN, 0] = 1  # before waking helpers, as they leave a closed gate
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
    """A thread that sleeps between runs."""

    def __init__(self, code: Callable[[int, None], int], words: Words, gate: Words) -> None:
        self._code, self._words, self._gate = code, words, gate
        self._calls = threading.Semaphore(0)
        name = f"npu-{words[ThreadWord.NUMBER]}"
        threading.Thread(target=self._serve, name=name, daemon=True).start()

    def wake(self) -> None:
        """Let the thread check the gate once; calls are counted."""
        self._calls.release()

    def _serve(self) -> None:
        while True:
            self._calls.acquire()
            self._code(self._words.ctypes.data, None)


@cache
def shared_team(kernels: Kernels) -> Team:
    """Return the process's team; devices that run concurrently take turns."""
    return Team(kernels, thread_count())


def thread_count() -> int:
    """Return ``NPU_ENGINE_THREADS``; by default the number of cores available to this process.

    Raises:
        EngineError: the variable is not a positive number.
    """
    text = os.environ.get(THREADS_VARIABLE)
    if not text:
        available = getattr(os, "sched_getaffinity", None)
        return len(available(0)) if available else os.cpu_count() or 1
    if not text.isdecimal() or not int(text):
        raise EngineError(f"{THREADS_VARIABLE}={text}: not a positive number; correct or unset it")
    return int(text)
