"""Time of the native dispatcher per task: rows that do nothing, on one thread and on two.

python benchmarks/bench_dispatch.py
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from driver_layer.engines.native.dispatch.table import Streams, Table
from driver_layer.engines.native.dispatch.team import Team
from driver_layer.engines.native.jit.emitter import Emitter
from driver_layer.engines.native.jit.host import detect
from driver_layer.engines.native.jit.kernels import Kernels, KernelSpec

ROWS = 16_000
NOTHING = KernelSpec("benchmark nothing", lambda host: Emitter(host).finish())


def microseconds(team: Team, table: Table, runs: int) -> float:
    """Return the shortest time of a row in some runs."""
    best = float("inf")
    for _ in range(runs):
        begin = time.perf_counter()
        team.run(table)
        best = min(best, time.perf_counter() - begin)
    return best / ROWS * 1e6


def main() -> None:
    """Run the benchmark, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    kernels = Kernels(detect())
    rows = np.zeros((ROWS, 2), np.int64)
    rows[:, 0], rows[:, 1] = kernels.address(NOTHING), rows.ctypes.data
    for threads in (1, 2):
        team = Team(kernels, threads)
        for width in (1, 4, 16):
            # Each queue gets an equal share of each phase.
            first = np.arange(0, ROWS, width)[:, None]
            bounds = first + width * np.arange(threads + 1) // threads
            table = Table(rows, np.arange(ROWS + 1), bounds, 64, Streams.none(bounds), None)
            taken = microseconds(team, table, runs)
            print(f"{threads} threads, phases of {width:2} rows: {taken:.3f} µs a row")


if __name__ == "__main__":
    main()
