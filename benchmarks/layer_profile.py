"""Time of a token by layer of the stack: ``make profile``.

    python benchmarks/layer_profile.py models/demo
    python benchmarks/layer_profile.py …/ir/llama-1b-int8 --prompt 512 --new 128

Time is measured at the interfaces between layers, by wrapping one method at each; the time between
two interfaces belongs to the layer. The device is measured at ``Device.run_inference``; everything
above it is Python.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
from models import draw_prompts

from driver_layer.npu.device import Device
from genai_layer import GenerationConfig, LLMPipeline
from npuw_layer.backends.level_zero import LevelZeroDevice
from npuw_layer.backends.level_zero_programs import RecordedProgram
from npuw_layer.llm.request.infer_request import InferRequest

DEMO = Path(__file__).resolve().parent.parent / "models" / "demo"
PYTHON_BAR_MS = 1.0
"""Limit of the time that Python above the device takes per token."""

_BAR_WIDTH = 40


@dataclass(frozen=True, slots=True)
class Step:
    """Seconds of each layer for one inference and the time before it."""

    genai: float
    npuw: float
    compiler: float
    driver: float
    device: float

    @property
    def total(self) -> float:
        """Time of all layers."""
        return self.python + self.device

    @property
    def python(self) -> float:
        """Time above the device."""
        return self.genai + self.npuw + self.compiler + self.driver


class Seams:
    """Measurement by wrapped methods, as a context manager; each ``infer`` ends a step."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._spent = {"compile": 0.0, "program": 0.0, "device": 0.0}
        self._last = 0.0
        self._methods: list[tuple[type, str, Callable[..., Any]]] = []

    def begin(self) -> None:
        """Begin to measure a generation."""
        self._last = time.perf_counter()

    def __enter__(self) -> Self:
        self._replace(InferRequest, "infer", self._stepping)
        self._replace(LevelZeroDevice, "compile", self._adding("compile"))
        self._replace(RecordedProgram, "_execute", self._adding("program"))
        self._replace(Device, "run_inference", self._adding("device"))
        return self

    def __exit__(self, *_: object) -> None:
        for owner, name, method in self._methods:
            setattr(owner, name, method)

    def _replace(
        self, owner: type, name: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]
    ) -> None:
        method = getattr(owner, name)
        self._methods.append((owner, name, method))
        setattr(owner, name, wrap(method))

    def _adding(self, seam: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Return a wrapper that adds up the time spent in a method."""
        spent, clock = self._spent, time.perf_counter

        def wrap(method: Callable[..., Any]) -> Callable[..., Any]:
            def timed(*arguments: Any) -> Any:
                began = clock()
                try:
                    return method(*arguments)
                finally:
                    spent[seam] += clock() - began

            return timed

        return wrap

    def _stepping(self, infer: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap ``infer``: each call ends a step."""
        spent, clock = self._spent, time.perf_counter

        def timed(*arguments: Any) -> Any:
            began = clock()
            before = dict(spent)
            result = infer(*arguments)
            ended = clock()
            below = {seam: spent[seam] - before[seam] for seam in spent}
            self.steps.append(
                Step(
                    genai=began - self._last,
                    npuw=ended - began - below["compile"] - below["program"],
                    compiler=below["compile"],
                    driver=below["program"] - below["device"],
                    device=below["device"],
                )
            )
            self._last = ended
            return result

        return timed


def cost_of_measuring(repetitions: int = 10_000) -> float:
    """Return the seconds that wrapping adds to a step: three wrappers around an empty function."""

    def nothing() -> None:
        return

    seams = Seams()
    wrapped = seams._stepping(seams._adding("program")(seams._adding("device")(nothing)))
    began = time.perf_counter()
    for _ in range(repetitions):
        wrapped()
    return (time.perf_counter() - began) / repetitions


def profile(
    folder: Path, prompts: Sequence[list[int]], new: int, config: dict[str, str]
) -> tuple[list[Step], list[Step]]:
    """Generate after each prompt; the first prompt warms up.

    Args:
        folder: a model's folder.
        prompts: token ids, all of one length.
        new: tokens to generate after each prompt.
        config: properties of the pipeline.

    Returns:
        The steps that read a prompt, and the steps that decode a token.
    """
    lengths = {"MAX_PROMPT_LEN": len(prompts[0]), "MIN_RESPONSE_LEN": new}
    pipeline = LLMPipeline(folder, "NPU", **lengths, **config)
    parameters = GenerationConfig(max_new_tokens=new, ignore_eos=True)
    prefill: list[Step] = []
    decode: list[Step] = []
    with Seams() as seams:
        for number, prompt in enumerate(prompts):
            seams.steps.clear()
            seams.begin()
            pipeline.generate(np.array([prompt], np.int64), parameters)
            if number:
                prefill.append(seams.steps[0])
                decode += seams.steps[1:]
    return prefill, decode


def steps_table(title: str, steps: Sequence[Step]) -> str:
    """Return the medians by layer, with a bar for each share."""
    medians = {
        layer.name: statistics.median(getattr(step, layer.name) for step in steps)
        for layer in fields(Step)
    }
    total = statistics.median(step.total for step in steps)
    lines = [f"{title}, medians of {len(steps)}"]
    for layer, seconds in medians.items():
        share = seconds / total
        bar = "█" * round(share * _BAR_WIDTH)
        lines.append(f"  {layer:9} {1e3 * seconds:9.3f} ms {share:6.1%}  {bar}")
    lines.append(f"  {'all':9} {1e3 * total:9.3f} ms")
    return "\n".join(lines)


def verdict(decode: Sequence[Step]) -> str:
    """Return the time of Python above the device, and the verdict on its bar."""
    cost = 1e3 * statistics.median(step.python for step in decode)
    met = "met" if cost < PYTHON_BAR_MS else "missed"
    bar = f"bar: under {PYTHON_BAR_MS:g} ms, {met}"
    return f"Python above the device: {cost:.3f} ms a token ({bar})"


def main() -> None:
    """Profile a model, and print the result."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("model", type=Path, nargs="?", default=DEMO, help="model folder (default: the demo model)")
    add("--prompt", type=int, default=128, help="tokens per prompt")
    add("--new", type=int, default=64, help="generated tokens, at least 2")
    add("--rounds", type=int, default=3, help="number of prompts")
    add("-c", "--config", action="append", default=[], metavar="KEY=VALUE", help="property")
    arguments = parser.parse_args()
    if not (arguments.model / "config.json").is_file():
        parser.error(f"{arguments.model}: no config.json; pass a model's folder")
    if arguments.prompt < 1 or arguments.new < 2 or arguments.rounds < 1:
        parser.error("--prompt and --rounds must be at least 1, --new at least 2")
    config = dict(option.partition("=")[::2] for option in arguments.config)
    prompts = draw_prompts(arguments.model, arguments.prompt, arguments.rounds + 1, seed=1)
    prefill, decode = profile(arguments.model, prompts, arguments.new, config)
    print(f"{arguments.model.name}, {arguments.prompt} prompt tokens, {arguments.new} new\n")
    print(steps_table(f"Prefill, per prompt of {arguments.prompt} tokens", prefill), "\n")
    print(steps_table("Decode, per token", decode), "\n")
    print(verdict(decode))
    print(f"Measuring adds {1e3 * cost_of_measuring():.4f} ms a token.")


if __name__ == "__main__":
    main()
