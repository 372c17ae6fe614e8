"""Ctrl-C at many moments of a program that uses OpenVINO's real NPU plugin.

    npu-run -- python tests/oracle/plugin_interrupts.py PHASE COUNT

PHASE is start, compile, infer or asynchronous. In each of COUNT turns, SIGINT arrives a little
later than in the turn before; for start, there is one turn, and COUNT is its delay in ms. Prints
the number of turns in which KeyboardInterrupt reached ``except``; afterwards an inference must give
its result. Any other error ends the program.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable

import numpy as np
import openvino as ov
from openvino import opset13

X = np.ones((1, 3, 32, 32), np.float32)


def model() -> ov.Model:
    x = opset13.parameter([1, 3, 32, 32], np.float32)
    eye = opset13.constant(np.eye(32, dtype=np.float32))
    return ov.Model([opset13.relu(opset13.matmul(x, eye, False, False))], [x])


def interrupted(work: Callable[[], object], delay: float) -> bool:
    """Repeat work until the interrupt of this process reaches it."""
    sender = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
    try:
        sender.start()
        while sender.is_alive():
            work()
        for _ in range(1000):
            pass
    except KeyboardInterrupt:
        sender.join()
        return True
    return False


def turns(phase: str, count: int) -> int:
    core = ov.Core()
    if phase == "start":
        return interrupted(lambda: core.available_devices, count / 1000)
    compiled = core.compile_model(model(), "NPU")
    request = compiled.create_infer_request()

    def wait() -> None:
        request.wait()  # an interrupt between the next two calls left it running
        request.start_async({0: X})
        request.wait()

    work: dict[str, tuple[Callable[[], object], float]] = {
        "compile": (lambda: core.compile_model(model(), "NPU"), 0.3),
        "infer": (lambda: request.infer({0: X}), 0.01),
        "asynchronous": (wait, 0.01),
    }
    run, longest = work[phase]
    run()
    caught = sum(interrupted(run, longest * turn / count) for turn in range(count))
    if phase != "compile":
        request.wait()
    assert np.array_equal(compiled.create_infer_request().infer({0: X})[0], X)
    return caught


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    sys.stdout.write(f"{int(turns(sys.argv[1], int(sys.argv[2])))}\n")
