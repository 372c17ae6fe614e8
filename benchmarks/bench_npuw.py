"""Costs of npuw itself: from prefill to generate, and by number of variants.

    python benchmarks/bench_npuw.py MODEL [--prompt 1000] [--rounds 5]

Times are host times of this machine; bytes are exact. Starts, concurrent requests and offloaded
weights have separate programs: bench_starts.py, bench_batching.py, bench_offload.py.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from npuw_layer import Core
from npuw_layer.backends.compiler_layer import StaticCompiler
from npuw_layer.backends.level_zero import LevelZeroDevice
from npuw_layer.kinds.llm.compiled_model import CompiledModel
from npuw_layer.llm.request.infer_request import InferRequest

_MB = 1e6


def compiled(model: Path, options: Mapping[str, Any], device: LevelZeroDevice) -> CompiledModel:
    """Compile a language model on a device."""
    found = Core(device=device).compile_model(model, "NPU", options)
    assert isinstance(found, CompiledModel)  # static models have no KV cache
    return found


def tell(request: InferRequest, ids: Sequence[int], said: int) -> float:
    """Run tokens after ``said`` others; return the seconds of the inference."""
    count = len(ids)
    began = time.perf_counter()
    request.infer(
        {
            "input_ids": np.array([ids], np.int64),
            "attention_mask": np.ones((1, said + count), np.int64),
            "position_ids": np.arange(said, said + count)[None],
        }
    )
    return time.perf_counter() - began


def switchover(model: Path, prompt: int, rounds: int, cache: Path) -> None:
    """Measure the steps after a prompt, with copied and with shared KV rows."""
    print(f"From prefill to generate, after {prompt} tokens (median of {rounds}):")
    print("  {:<10} {:>12} {:>12} {:>13} {:>13}".format("", "copied", "prompt", "1st step", "next"))
    ids = np.random.default_rng(0).integers(3, 1000, prompt).tolist()
    for way in ("COPY", "ZERO_COPY"):
        options = {"NPUW_LLM_KV_SWITCHOVER": way, "CACHE_DIR": str(cache)}
        options["NPUW_LLM_MAX_PROMPT_LEN"] = prompt
        device = LevelZeroDevice(StaticCompiler(), "4000")
        request = compiled(model, options, device).create_infer_request()
        spent: list[tuple[float, ...]] = []
        copied = ""
        for _ in range(rounds + 1):
            request.reset_state()
            read, first = tell(request, ids, 0), tell(request, [5], prompt)
            copied = request.execution_report()["KV copied"]
            spent.append((read, first, tell(request, [6], prompt + 1)))
        read, first, later = (statistics.median(each) for each in zip(*spent[1:], strict=True))
        nbytes = int(copied.split()[0])
        if nbytes and way == "ZERO_COPY":
            raise SystemExit(f"bar missed: {way} copied {nbytes} bytes")
        print(
            f"  {way:<10} {nbytes / _MB:9.2f} MB {1e3 * read:9.1f} ms {1e3 * first:10.2f} ms "
            f"{1e3 * later:10.2f} ms"
        )


def short_prompts(model: Path, rounds: int, cache: Path) -> None:
    """Measure a prompt of 20 tokens, with prefill models of several sizes and with one."""
    print("\nA prompt of 20 tokens:")
    for pyramid in ("NO", "YES"):
        options = {"NPUW_LLM_PREFILL_PYRAMID": pyramid, "CACHE_DIR": str(cache)}
        device = LevelZeroDevice(StaticCompiler(), "4000")
        request = compiled(model, options, device).create_infer_request()
        times: list[float] = []
        for _ in range(rounds + 1):
            request.reset_state()
            times.append(tell(request, list(range(5, 25)), 0))
        took = 1e3 * statistics.median(times[1:])
        name = request.execution_report()["prefill"]
        print(f"  NPUW_LLM_PREFILL_PYRAMID={pyramid:<4} {name:<14} {took:9.1f} ms")


def variants(model: Path, cache: Path) -> None:
    """Print the device memory by number of generate variants."""
    print("\nDevice memory by generate variants (weights and caches are shared by all):")
    print("  {:<22} {:>12} {:>12} {:>14}".format("capacities", "KV cache", "weights", "all else"))
    kept: set[tuple[int, int]] = set()
    for steps in ("", "1024", "512,1024", "256,512,1024"):
        options: dict[str, Any] = {"CACHE_DIR": str(cache)}
        if steps:
            options["NPUW_LLM_GENERATE_PYRAMID_STEPS"] = steps
        else:
            options["NPUW_LLM_GENERATE_PYRAMID"] = "NO"
        device = LevelZeroDevice(StaticCompiler(), "4000")
        made = compiled(model, options, device)
        request = made.create_infer_request()
        memory = request.memory()
        rest = device.allocated_bytes - memory.kv_cache - memory.weights
        names = ",".join(filter(None, (steps, "1152")))
        kept.add((memory.kv_cache, memory.weights))
        cells = (memory.kv_cache, memory.weights, rest)
        print(f"  {names:<22}" + "".join(f" {nbytes / _MB:9.2f} MB" for nbytes in cells))
    if len(kept) != 1:
        raise SystemExit("bar missed: weights or caches take more memory with more variants")


def main() -> None:
    """Run all parts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path, help="folder with a model")
    parser.add_argument("--prompt", type=int, default=1000, help="tokens of the long prompt")
    parser.add_argument("--rounds", type=int, default=5, help="repetitions")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        switchover(given.model, given.prompt, given.rounds, Path(folder))
        short_prompts(given.model, given.rounds, Path(folder))
        variants(given.model, Path(folder))


if __name__ == "__main__":
    main()
