"""Offload benchmark, for weights that exceed device memory: copies ahead of layers, or waited for.

    python benchmarks/bench_offload.py MODEL
    python benchmarks/bench_offload.py MODEL --budgets 0 64MiB --new 64 --link 7877

Each line is the model without offload, or with a mode and a budget: weights in device memory, times
of a prompt and of a token on this host (the median, and a token's wait for copies), and the same
times on the simulated device. The tokens of all lines must be equal; otherwise the number of
differing tokens is printed: with f16, hidden values are rounded between layers that run one by one.

On this host, copies and kernels share cores and memory, so host times show the stack's overhead and
not a device's gain; the simulated times show the gain. With ``--link`` the simulated device has
separate memory behind a link of that many MB/s (7877: PCIe 4.0 x4).
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np

from npuw_layer import Core
from npuw_layer.execution.offload.report import OffloadReport
from npuw_layer.execution.offload.timeline import PassTime
from npuw_layer.kinds.llm.compiled_model import CompiledModel

MIB = 1 << 20
_ROW = "{:<22} {:>9} {:>9} {:>10} {:>9} {:>9} {:>11} {:>10}"


@dataclass(frozen=True, slots=True)
class Line:
    """Results of one way to run the model; seconds on the host."""

    name: str
    tokens: tuple[int, ...]
    load: float
    prompt: float
    token: float
    waited: float
    """Seconds per token of waiting for copies."""
    report: OffloadReport | None


def measure(model: Path, name: str, options: dict[str, object], prompt: int, new: int) -> Line:
    """Generate greedily, and measure the times."""
    began = time.perf_counter()
    compiled = Core().compile_model(model, "NPU", options)
    request = compiled.create_infer_request()
    load = time.perf_counter() - began
    ids = np.random.default_rng(1).integers(3, 1000, (1, prompt))
    told: list[int] = []
    spent: list[float] = []
    said, waited = 0, 0.0
    for number in range(new + 1):
        count = ids.shape[1]
        inputs = {
            "input_ids": ids,
            "attention_mask": np.ones((1, said + count), np.int64),
            "position_ids": np.arange(said, said + count)[None],
        }
        if number == 1:
            waited = _waited(compiled)
        began = time.perf_counter()
        logits = request.infer(inputs)["logits"]
        spent.append(time.perf_counter() - began)
        said += count
        told.append(int(logits[0, -1].argmax()))
        ids = np.array([[told[-1]]])
    waited = (_waited(compiled) - waited) / new
    token = statistics.median(spent[1:])
    return Line(name, tuple(told), load, spent[0], token, waited, compiled.offload_report())


def _waited(compiled: CompiledModel) -> float:
    report = compiled.offload_report()
    return report.wait_seconds if report is not None else 0.0


def show(line: Line, first: Line) -> None:
    """Print a line of the table."""
    report, simulated = line.report, ("-", "-")
    memory = "all" if report is None else f"{report.device_bytes / MIB:.1f}"
    if report is not None:
        # Prefill models ascend; the largest reads the whole prompt.
        *_, prompt, last = report.stages
        ways = [
            stage.asynchronous if report.mode == "ASYNC" else stage.synchronous
            for stage in (prompt, last)
        ]
        simulated = (_ms(ways[0]), _ms(ways[1]))
    cells = (f"{line.prompt * 1e3:.1f}", f"{line.token * 1e3:.2f}", f"{line.waited * 1e3:.2f}")
    print(_ROW.format(line.name, memory, f"{line.load:.1f}", *cells, *simulated))
    different = sum(a != b for a, b in zip(line.tokens, first.tokens, strict=True))
    if different:
        print(f"{'':22} {different} of {len(line.tokens)} tokens differ from the first line's")


def _ms(found: PassTime) -> str:
    return f"{found.ns / 1e6:.3f}"


def explain(report: OffloadReport) -> None:
    """Print the components of the simulated times."""
    print(
        f"\n{report.layers} layers of {report.layer_bytes / MIB:.2f} MiB, "
        f"{report.weight_bytes / MIB:.1f} MiB of weights in all. Simulated passes, ms:"
    )
    for stage in report.stages[-2:]:
        print(f"  {stage}; stalled {stage.asynchronous.stall_ns / 1e6:.2f}")


def check(report: OffloadReport) -> None:
    """Check the bar: on the device, copies ahead save more than half of the waiting time.

    Raises:
        SystemExit: the bar is missed.
    """
    token = report.stages[-1]
    waiting = token.synchronous.ns - token.resident.ns
    ahead = token.asynchronous.ns - token.resident.ns
    if not waiting:
        print("the budget holds all weights, so nothing waits for a copy")
        return
    print(f"copies ahead save {1 - ahead / waiting:.0%} of a token's waiting time")
    if ahead > waiting / 2:
        raise SystemExit("bar missed: copies ahead must save at least half")


def _platform_with_link(folder: Path, platform: str, megabytes: int) -> str:
    """Write a platform file with memory behind a link."""
    content = (files("driver_layer.abi.platforms") / f"{platform}.toml").read_text()
    path = folder / f"{platform}_link.toml"
    path.write_text(
        content.replace("host_link_mb_per_s = 0 ", f"host_link_mb_per_s = {megabytes} ")
    )
    return str(path)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", type=Path, help="folder with an IR or a checkpoint")
    parser.add_argument(
        "--budgets", nargs="+", default=["0"], help="bytes, or e.g. 64MiB; 0: the smallest"
    )
    parser.add_argument("--reserved", type=int, default=1, help="number of layers copied ahead")
    parser.add_argument("--prompt", type=int, default=256, help="tokens of the prompt")
    parser.add_argument("--new", type=int, default=32, help="tokens to generate")
    parser.add_argument("--precision", default="f16", help="f16, bf16, or f32 (exact)")
    parser.add_argument("--link", type=int, default=0, help="MB/s of a link to host memory")
    given = parser.parse_args()
    common: dict[str, object] = {
        "NPUW_LLM_MAX_PROMPT_LEN": given.prompt,
        "NPUW_LLM_MIN_RESPONSE_LEN": given.new,
        "NPUW_LLM_GENERATE_PYRAMID": "NO",
        "INFERENCE_PRECISION_HINT": given.precision,
    }
    with tempfile.TemporaryDirectory() as folder:
        if given.link:
            common["NPU_PLATFORM"] = _platform_with_link(Path(folder), "4000", given.link)
        ways = [("all weights there", dict[str, object]())]
        for budget in given.budgets:
            for mode in ("SYNC", "ASYNC"):
                options: dict[str, object] = {
                    "NPUW_WEIGHTS_OFFLOAD": mode,
                    "NPUW_WEIGHTS_BUDGET": budget,
                    "NPUW_WEIGHTS_RESERVED": given.reserved,
                }
                ways.append((f"{mode} {'least' if budget == '0' else budget}", options))
        print(
            _ROW.format(
                "", "weights", "load", "prompt", "token", "waited", "sim prompt", "sim token"
            )
        )
        print(_ROW.format("", "MiB", "s", "ms", "ms", "ms/token", "ms", "ms"))
        lines: list[Line] = []
        for name, options in ways:
            lines.append(measure(given.model, name, common | options, given.prompt, given.new))
            show(lines[-1], lines[0])
        last = lines[-1].report
        assert last is not None  # the last way offloads
        explain(last)
        check(last)


if __name__ == "__main__":
    main()
