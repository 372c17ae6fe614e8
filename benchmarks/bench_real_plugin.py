"""Time of a token through OpenVINO's real NPU plugin on this device, beside our own pipeline.

    python benchmarks/bench_real_plugin.py [--model DIR] [--rounds 5] [--into FILE]

Both pipelines read the same IR, in processes of their own, in turns: openvino_genai with NPUW and
the NPU plugin on the C library of ``driver_layer.c_abi``, and genai_layer on npuw_layer. The price
of the C border is the number of Level Zero calls per token, and the time of a call that does
nothing, over C minus directly in Python. Without ``--model`` the demo model is exported.
"""

from __future__ import annotations

import argparse
import base64
import ctypes
import json
import lzma
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from machine import describe
from report import table, write_atomically

from driver_layer import ze
from driver_layer.tools.npu_run import environment

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PACKAGES = ("openvino_genai", "genai_layer")
OPTIONS = {
    "openvino_genai": {"NPUW_ONLINE_PIPELINE": "NONE"},
    "genai_layer": {},
}
"""Options beside the lengths; NPUW's default pipeline needs five equal layers."""
LENGTHS = {"MAX_PROMPT_LEN": 256, "MIN_RESPONSE_LEN": 128}
QUESTION = "What is an NPU?"
NEW, CALLS = 100, 20000


def generate(package: str, folder: str, tokens: int) -> list[Any]:
    """Return the first token's time and the mean of the others in ms, and the text."""
    module = __import__(package)
    pipe = module.LLMPipeline(folder, "NPU", **LENGTHS, **OPTIONS[package])
    config = module.GenerationConfig(max_new_tokens=tokens, ignore_eos=True)
    config.apply_chat_template = False
    pipe.generate([QUESTION], config)  # warms up
    results = pipe.generate([QUESTION], config)
    metrics = results.perf_metrics
    return [metrics.get_ttft().mean, metrics.get_tpot().mean, results.texts[0]]


def call_times() -> list[float]:
    """Return the time of a call over C and in Python, in microseconds."""
    library = ctypes.CDLL("libze_loader.so.1")
    library.zeInit(0)
    count, found, version = ctypes.c_uint32(1), ctypes.c_void_p(), ctypes.c_uint32()
    library.zeDriverGet(ctypes.byref(count), ctypes.byref(found))
    (driver,) = ze.zeInitDrivers(0)

    def over_c() -> None:
        library.zeDriverGetApiVersion(found, ctypes.byref(version))

    return [_microseconds(over_c), _microseconds(lambda: ze.zeDriverGetApiVersion(driver))]


def _microseconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - began) / CALLS * 1e6


def _ask(*job: object, log: bool = False) -> tuple[Any, int]:
    """Run a function of this module in a process with an NPU.

    Returns:
        Its result, and the number of Level Zero calls if they are logged.
    """
    command = [sys.executable, __file__, "--job", json.dumps(job)]
    variables = environment(log_calls=log)
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1]), done.stderr.count(" us\n")


def calls_per_token(folder: Path) -> float:
    """Return the number of calls that a token takes."""
    short, long = (_ask("generate", PACKAGES[0], str(folder), n, log=True)[1] for n in (10, 60))
    return (long - short) / (2 * (60 - 10))  # both generations of a job


def export_demo(folder: Path) -> Path:
    """Export the demo model, with the tokenizer's models of the tests' golden file."""
    npuc = Path(sys.executable).parent / "npuc"
    made = folder / "demo"
    subprocess.run([npuc, "export", ROOT / "models" / "demo", made], check=True)
    golden = ROOT / "tests" / "goldens" / "tokenizers" / "demo.json.xz"
    for name, data in json.loads(lzma.decompress(golden.read_bytes()))["files"].items():
        (made / name).write_bytes(base64.b64decode(data))
    return made


def measure(folder: Path, rounds: int) -> list[tuple[str, ...]]:
    """Measure both pipelines in turns; return the cells of the report.

    Raises:
        SystemExit: the texts differ, or a process fails.
    """
    times: dict[str, list[tuple[float, float]]] = {package: [] for package in PACKAGES}
    for _ in range(rounds):
        texts: set[str] = set()
        for package in PACKAGES:
            (first, other, text), _ = _ask("generate", package, str(folder), NEW)
            times[package].append((first, other))
            texts.add(text)
        if len(texts) > 1:
            raise SystemExit(f"the texts differ: {texts}")
    ratios = [real[1] / ours[1] for real, ours in zip(*times.values(), strict=True)]
    rows: list[tuple[str, ...]] = []
    for package in PACKAGES:
        first, other = (statistics.median(each) for each in zip(*times[package], strict=True))
        rows.append((package, f"{first:.1f}", f"{other:.2f}"))
    rows[0] += (f"{statistics.median(ratios):.2f} ({min(ratios):.2f}..{max(ratios):.2f})",)
    rows[1] += ("1",)
    return rows


def report(folder: Path, rounds: int) -> str:
    """Return the report."""
    rows = measure(folder, rounds)
    (over_c, in_python), _ = _ask("call_times")
    calls = calls_per_token(folder)
    return "\n\n".join(
        (
            "# The real NPU plugin on the simulated device",
            f"{datetime.now(UTC):%Y-%m-%d}; medians (least..greatest) of {rounds} rounds in turns; "
            "written by `bench_real_plugin.py`, which describes the cases.",
            "\n".join(f"- {line}" for line in describe()),
            table(("pipeline", "first token, ms", "other tokens, ms", "ratio"), rows),
            f"The C border: {calls:.0f} calls per token, {over_c - in_python:.1f} µs each "
            f"({over_c:.1f} µs over C, {in_python:.1f} µs in Python): "
            f"{calls * (over_c - in_python) / 1000:.3f} ms per token.",
        )
    )


def main() -> None:
    """Run the benchmark, and write the report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, help="exported folder, with tokenizer models")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--into", type=Path, default=HERE / "RESULTS_REAL_PLUGIN.md")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        name, *given = json.loads(arguments.job)
        result = {"generate": generate, "call_times": call_times}[name](*given)
        sys.stdout.write(json.dumps(result) + "\n")
        sys.stdout.flush()
        os._exit(0)  # what the process ends with is not measured
    with tempfile.TemporaryDirectory() as made:
        text = report(arguments.model or export_demo(Path(made)), arguments.rounds)
    write_atomically(arguments.into, text + "\n")
    print(text)


if __name__ == "__main__":
    main()
