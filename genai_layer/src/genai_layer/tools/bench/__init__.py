"""npu-bench: measures a language model, and prints what openvino.genai's llm_bench prints.

Options have llm_bench's names. Tokens are generated greedily, and the end of the text is ignored.
Each prompt runs once to warm up, then -n times; averages and percentiles leave the first run out.

Examples:
    npu-bench -m models/demo -n 5                           llm_bench's prompt, on the NPU
    npu-bench -m models/demo -p "What is a blob?" -ic 64    a prompt, and 64 output tokens
    npu-bench -m models/demo -pf prompts.jsonl -n 3         prompts of a file: {"prompt": "…"}
    npu-bench -m models/demo --prompt-tokens 512 -n 3       512 random tokens
    npu-bench -m models/demo -c MAX_PROMPT_LEN=2048         a property; repeatable
    npu-bench -m models/demo --json | jq .perfdata.results_averaged
    npu-bench -m models/demo -d CPU                         the real OpenVINO, if installed
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from genai_layer import GenAIError
from genai_layer.tools.bench import report
from genai_layer.tools.bench.measure import Prompt, Run, measure, random_prompt, read_prompts
from genai_layer.tools.bench.report import as_json
from genai_layer.tools.pipeline_options import files, folders, load_pipeline, property_option
from genai_layer.tools.terminal import Command, run, set_up_log, shown, utf8

_OUTPUT_TOKENS = 512
"""llm_bench's number of output tokens."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool.

    Returns:
        0; 2 after an error; 130 after an interrupt.
    """
    return run(_bench, argv, GenAIError)


@click.command("npu-bench", cls=Command, help=__doc__)
@click.option("-m", "--model", required=True, shell_complete=folders, help="the model's folder")
@click.option("-d", "--device", default="NPU", help="device (default NPU)")
@click.option("-p", "--prompt", type=utf8, metavar="TEXT", help="the prompt")
@click.option(
    "-pf",
    "--prompt_file",
    metavar="FILE",
    type=Path,
    shell_complete=files,
    multiple=True,
    help="file of prompts, a JSON object per line; repeatable",
)
@click.option("--prompt-tokens", type=click.IntRange(1), help="a prompt of this many random tokens")
@click.option(
    "-ic",
    "--infer_count",
    type=click.IntRange(1),
    default=_OUTPUT_TOKENS,
    help=f"number of output tokens (default {_OUTPUT_TOKENS})",
)
@click.option(
    "-n",
    "--num_iters",
    type=click.IntRange(0),
    default=0,
    help="number of measured runs of each prompt (default 0: only the warm-up)",
)
@click.option("-s", "--seed", type=click.IntRange(0), default=42, help="seed of random tokens")
@click.option("--json", "prints_json", is_flag=True, help="print a JSON object instead")
@property_option()
def _bench(
    model: str,
    device: str,
    prompt: str | None,
    prompt_file: Sequence[Path],
    prompt_tokens: int | None,
    infer_count: int,
    num_iters: int,
    seed: int,
    prints_json: bool,
    config: Sequence[tuple[str, Any]],
) -> None:
    set_up_log()
    if sum((prompt is not None, bool(prompt_file), prompt_tokens is not None)) > 1:
        raise click.UsageError("-p, -pf and --prompt-tokens exclude each other; choose one")
    prompts: list[Prompt] = [*read_prompts(prompt, prompt_file)]
    began = time.perf_counter()
    pipe = load_pipeline(model, device, config)
    seconds = time.perf_counter() - began
    if prompt_tokens is not None:
        prompts = [random_prompt(pipe.get_tokenizer(), prompt_tokens, seed)]
    text: Callable[[Iterable[str]], None] = (lambda _: None) if prints_json else _print
    text(report.beginning(model, seconds, num_iters, len(prompts)))
    runs: list[Run] = []
    for one in measure(pipe, prompts, num_iters, infer_count):
        runs.append(one)
        text(report.run(one))
    text(report.summary(runs))
    if prints_json:
        _print([json.dumps(as_json(runs, model, device, seconds), indent=2)])


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(f"{shown(line)}\n")
    sys.stdout.flush()
