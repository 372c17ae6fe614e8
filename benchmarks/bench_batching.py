"""Batching benchmark: total tokens per second of 1, 4 and 8 concurrent requests.

Device time is the cost model's prediction for the simulated NPU, for the blobs that run; host time
is the time of the simulation. Prompts are read before the clock starts.

    python benchmarks/bench_batching.py MODEL [--tokens 32] [--prompt 100] [-c NAME=VALUE]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from timed_device import TimedDevice

from npuw_layer import Core
from npuw_layer.backends.protocols import Array
from npuw_layer.batching import BatchedRequest, ContinuousBatching

T = TypeVar("T")

REQUESTS = (1, 4, 8)
BAR = 2.5
"""Required speedup of device time from the first to the last (issue 5)."""


def measure(
    engine: ContinuousBatching, clock: Callable[[], T], requests: int, prompt: int, tokens: int
) -> tuple[T, T]:
    """Return the time before and after ``tokens`` decode steps of several requests."""
    draw = np.random.default_rng(requests)
    opened = [engine.open() for _ in range(requests)]
    said = {one: one.submit(draw.integers(3, 200, prompt)) for one in opened}
    _finish(engine)
    speak(engine, said)  # assigns caches to slots
    begin = clock()
    for _ in range(tokens):
        speak(engine, said)
    end = clock()
    for one in opened:
        one.close()
    engine.step()
    return begin, end


def speak(engine: ContinuousBatching, said: dict[BatchedRequest, Future[Array]]) -> None:
    """Submit each request's likeliest token, and run all."""
    for request, logits in said.items():
        said[request] = request.submit([int(logits.result().argmax())])
    _finish(engine)


def _finish(engine: ContinuousBatching) -> None:
    while engine.wait(0):
        engine.step()


def main() -> None:
    """Run the benchmark, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path, help="folder with an IR or a checkpoint")
    parser.add_argument("--prompt", type=int, default=100, help="tokens per prompt")
    parser.add_argument("--tokens", type=int, default=32, help="generated tokens per request")
    parser.add_argument("--platform", default="4000")
    parser.add_argument("-c", "--config", action="append", default=[], metavar="NAME=VALUE")
    arguments = parser.parse_args()
    device = TimedDevice(arguments.platform)
    config: dict[str, Any] = {"NPUW_LLM_BATCH_SLOTS": REQUESTS, "NPU_PLATFORM": arguments.platform}
    config |= dict(each.split("=", 1) for each in arguments.config)
    begin = time.perf_counter()
    model = Core(device=device).compile_model(arguments.model, "NPU", config)
    print(f"compiled in {time.perf_counter() - begin:.1f} s")
    engine = model.create_batching()
    print(f"{'requests':>9} {'device tokens/s':>16} {'':>7} {'host tokens/s':>14} {'':>7}")
    first: tuple[float, ...] = ()

    def clock() -> tuple[float, float]:
        return device.seconds, time.perf_counter()

    for requests in REQUESTS:
        times = measure(engine, clock, requests, arguments.prompt, arguments.tokens)
        tokens = requests * arguments.tokens
        found = tuple(tokens / (end - begin) for begin, end in zip(*times, strict=True))
        first = first or found
        ratios = [a / b for a, b in zip(found, first, strict=True)]
        print(f"{requests:9} {found[0]:16.0f} {ratios[0]:6.2f}× {found[1]:14.1f} {ratios[1]:6.2f}×")
        if requests == REQUESTS[-1] and ratios[0] < BAR:
            raise SystemExit(f"bar missed: device time speeds up {ratios[0]:.2f}×, not {BAR}×")


if __name__ == "__main__":
    main()
