"""Threads that use OpenVINO's real NPU plugin at once; each run is a process of its own.

    npu-run -- python tests/oracle/plugin_threads.py THREADS

All threads do each kind of work, at the same time; then each thread begins with another kind.
Prints "done", and ends at once. ``plugin_threads.cpp`` does the same without Python.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence

import numpy as np
import openvino as ov
from openvino import opset13

core = ov.Core()
X = np.linspace(-1, 1, 3 * 32 * 32, dtype=np.float32).reshape(1, 3, 32, 32)
TURNS = 5


def model(width: int = 32) -> ov.Model:
    x = opset13.parameter([1, 3, 32, width], np.float32)
    eye = opset13.constant(np.eye(width, dtype=np.float32))
    return ov.Model([opset13.relu(opset13.matmul(x, eye, False, False))], [x])


compiled = core.compile_model(model(), "NPU")
EXPECTED = compiled(X)[0].copy()


def create() -> None:
    """Create requests, each with tensors of its own."""
    assert np.array_equal(compiled.create_infer_request().infer({0: X})[0], EXPECTED)


def infer() -> None:
    """Infer with one request of the thread, and read its tensors, for which the binding waits."""
    mine = compiled.create_infer_request()
    for scale in (1, 2, 4):
        mine.get_input_tensor().data[:] = scale * X
        mine.infer()
        assert np.array_equal(mine.get_output_tensor().data, scale * EXPECTED)


def compile_model() -> None:
    """Compile a model while others do."""
    assert np.array_equal(core.compile_model(model(), "NPU")(X)[0], EXPECTED)


def free() -> None:
    """Create and drop requests whose memory the plugin frees at once."""
    for _ in range(3):
        request = compiled.create_infer_request()
        request.get_input_tensor().data[:] = 0
        del request


def remote() -> None:
    """Infer from and to tensors of the device's memory."""
    context = core.get_default_context("NPU")
    request = compiled.create_infer_request()
    x, y = (context.create_host_tensor(ov.Type.f32, ov.Shape(X.shape)) for _ in range(2))
    x.data[:] = X
    request.set_input_tensor(x)
    request.set_output_tensor(y)
    request.infer()
    assert np.array_equal(y.data, EXPECTED)


WORK: tuple[Callable[[], None], ...] = (create, infer, compile_model, free, remote)


def run(count: int, works: Callable[[int], Sequence[Callable[[], None]]]) -> None:
    """Run the works of each thread's number; raise what a thread raised."""
    failures = list[BaseException]()

    def work(number: int) -> None:
        try:
            for one in works(number):
                for _ in range(1 if one is compile_model else TURNS):
                    one()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def main(count: int) -> None:
    for one in WORK:
        run(count, lambda _, one=one: (one,))
    run(count, lambda number: WORK[number % len(WORK) :] + WORK[: number % len(WORK)])
    os.write(1, b"done\n")
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
