"""Compile time of llama-1b int4: one prefill (1,024 tokens) and four generate variants.

Ours is compared to the real NPUW, which reads the same IR with the same options (its submodels run
on OpenVINO's CPU plugin, as there is no NPU). Runs are separate processes that alternate, as the
machine's speed changes from minute to minute: compare the ratio.

    make bench-compile            # or: python benchmarks/bench_compile.py --model llama-135m
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

from random_model import CONFIGS, llama_config, write_model

ROOT = Path(__file__).resolve().parent.parent
LENGTHS = {"NPUW_LLM_MAX_PROMPT_LEN": 1024, "NPUW_LLM_MIN_RESPONSE_LEN": 128}
STEPS = "256,512,768,1152"

OURS = """
import json, sys, time
begin = time.perf_counter()
from npuw_layer import Core
config = json.loads(sys.argv[2])
model = Core().compile_model(sys.argv[1], "NPU", config)
print(time.perf_counter() - begin)
"""

NPUW = """
import json, sys, time
import openvino
begin = time.perf_counter()
config = json.loads(sys.argv[2])
openvino.Core().compile_model(sys.argv[1], "NPU", config)
print(time.perf_counter() - begin)
"""


def seconds(program: str, xml: Path, config: dict[str, object]) -> float:
    """Run one of the programs in a separate process; return its output."""
    done = subprocess.run(
        [sys.executable, "-c", program, str(xml), json.dumps(config)],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout.strip().splitlines()[-1])


def prepare(cache: Path, name: str, layers: int | None) -> Path:
    """Create the model and its IR by npuc, unless both exist; return the path of the ``.xml``."""
    title = name if layers is None else f"{name}-{layers}-layers"
    folder = write_model(cache / title, llama_config(name, layers))
    ir = cache / f"{title}-int4"
    if not (ir / "openvino_model.xml").exists():
        npuc = Path(sys.executable).with_name("npuc")
        options = ["--weight-format", "int4", "--group-size", "64", "--sym"]
        subprocess.run([npuc, "export", folder, ir, *options], check=True)
    return ir / "openvino_model.xml"


def main() -> None:
    """Run the benchmark, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=list(CONFIGS), default="llama-1b")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--cache", type=Path, default=ROOT / ".venv" / "benchmark-models")
    arguments = parser.parse_args()
    xml = prepare(arguments.cache, arguments.model, None)
    small = prepare(arguments.cache, arguments.model, 2)
    ours = LENGTHS | {"NPUW_LLM_GENERATE_PYRAMID_STEPS": STEPS}
    theirs = {key: str(value) for key, value in LENGTHS.items()}
    theirs |= {"NPU_USE_NPUW": "YES", "NPUW_LLM": "YES", "NPUW_DEVICES": "CPU"}
    columns: dict[str, list[float]] = {"ours": [], "ours, 2 layers": [], "real NPUW": []}
    for _ in range(arguments.runs):
        columns["ours"].append(seconds(OURS, xml, ours))
        columns["real NPUW"].append(seconds(NPUW, xml, theirs))
        columns["ours, 2 layers"].append(seconds(OURS, small, ours))
    print(f"{arguments.model} int4, prefill 1024 and generate {STEPS}, {arguments.runs} runs each")
    print(f"  {'':24} {'median':>8} {'best':>8}")
    medians = {name: statistics.median(times) for name, times in columns.items()}
    bests = {name: min(times) for name, times in columns.items()}
    for name in columns:
        print(f"  {name:24} {medians[name]:6.1f} s {bests[name]:6.1f} s")
    for title, one, other in (
        ("ours / real NPUW", "ours", "real NPUW"),
        ("all layers / 2 layers", "ours", "ours, 2 layers"),
    ):
        ratios = [times[one] / times[other] for times in (medians, bests)]
        print(f"  {title:24} {ratios[0]:8.2f} {ratios[1]:8.2f}")


if __name__ == "__main__":
    main()
