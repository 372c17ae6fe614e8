"""Device time by kernel: ``make profile-kernels``.

    python benchmarks/kernel_profile.py models/demo
    python benchmarks/kernel_profile.py …/ir/llama-1b-int8 -c INFERENCE_PRECISION_HINT=bf16

One thread runs the tables of a prefill and of decode steps row by row, and times each row (which
costs about 0.3 µs per row). Shares refer to this time: with more threads, phases of few rows take a
larger share. The last line is the number of phases, between which threads wait for each other.
"""

from __future__ import annotations

import argparse
import collections
import ctypes
import time
from pathlib import Path

import numpy as np
from models import draw_prompts

from driver_layer.engines.native.dispatch.table import Table
from driver_layer.engines.native.dispatch.team import Team
from driver_layer.engines.native.executor import host_kernels
from driver_layer.engines.native.jit.host import detect
from genai_layer import GenerationConfig, LLMPipeline

_DEMO = Path(__file__).resolve().parent.parent / "models" / "demo"
_KERNEL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


class Profile:
    """Row times of every table that is run."""

    def __init__(self) -> None:
        self.seconds: dict[int, float] = collections.defaultdict(float)
        self.rows: dict[int, int] = collections.defaultdict(int)
        self.phases = 0
        self.tables = 0

    def run(self, team: Team, table: Table) -> None:
        """Run a table on one thread, in place of ``Team.run``."""
        scratch = np.zeros(table.scratch + 64, np.uint8)
        aligned = -(-scratch.ctypes.data // 64) * 64
        clock, functions = time.perf_counter, {}
        for address, arguments in table.rows.tolist():
            kernel = functions.get(address)
            if kernel is None:
                kernel = functions[address] = _KERNEL(address)
            began = clock()
            kernel(arguments, aligned)
            self.seconds[address] += clock() - began
            self.rows[address] += 1
        self.phases += len(table.bounds)
        self.tables += 1

    def print(self, title: str, times: int) -> None:
        """Print the kernels by time, per repetition if the work was done ``times`` times."""
        total = sum(self.seconds.values())
        keys = host_kernels(detect()).keys()
        print(f"\n{title}: {1e3 * total / times:.2f} ms on one thread")
        for address in sorted(self.seconds, key=lambda one: -self.seconds[one])[:25]:
            taken, rows = self.seconds[address], self.rows[address]
            print(
                f"  {taken / total:6.1%} {1e3 * taken / times:9.3f} ms"
                f" {rows // times:7} rows {1e6 * taken / rows:9.1f} µs each"
                f"  {keys.get(address, 'in Python')}"
            )
        print(f"  {sum(self.rows.values()) // times} rows, {self.phases // times} phases")


def main() -> None:
    """Profile a model, and print the result."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path, nargs="?", default=_DEMO)
    parser.add_argument("--prompt", type=int, default=512, help="tokens of the prompt")
    parser.add_argument("--new", type=int, default=8, help="tokens to decode")
    parser.add_argument("-c", "--config", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    config = dict(one.split("=", 1) for one in options.config)
    lengths = {"MAX_PROMPT_LEN": options.prompt, "MIN_RESPONSE_LEN": max(options.new, 128)}
    pipeline = LLMPipeline(options.model, "NPU", **lengths, **config)
    prompts = draw_prompts(options.model, options.prompt, 2, seed=1)
    parameters = GenerationConfig(max_new_tokens=options.new, ignore_eos=True)
    pipeline.generate(np.array([prompts[0]], np.int64), parameters)  # prepares all programs
    prefill, decode = Profile(), Profile()
    now = [prefill]

    def run(team: Team, table: Table) -> None:
        now[0].run(team, table)

    def streamer(_: str) -> None:
        now[0] = decode  # the first token ends the prefill

    Team.run = run
    pipeline.generate(np.array([prompts[1]], np.int64), parameters, streamer)
    prefill.print("prefill", 1)
    if decode.tables:
        decode.print("a token", decode.tables)


if __name__ == "__main__":
    main()
