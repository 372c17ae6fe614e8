"""Runs of a benchmark, their prompts and measurements, and statistics of these.

Source: openvino.genai's llm_bench, docs/reference/genai.md#llm_bench; random tokens are ours.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from genai_layer import ConfigError, GenerationConfig, LLMPipeline, PromptError, Tokenizer
from genai_layer.files import is_file, read_text

Prompt = str | list[int]
"""A text, or token ids."""

_DEFAULT = "What is OpenVINO?"


def read_prompts(text: str | None, files: Sequence[Path]) -> list[str]:
    """Return a text, or those of files; without both, llm_bench's default.

    Raises:
        PromptError: a file cannot be read, or has a line that is not an object with a prompt.
    """
    if text is not None:
        return [text]
    return [prompt for path in files for prompt in _read(path)] if files else [_DEFAULT]


def random_prompt(tokenizer: Tokenizer, count: int, seed: int) -> list[int]:
    """Return random token ids without special tokens."""
    special = set(tokenizer.special_tokens.values())
    usable = [id for id in range(tokenizer.vocabulary_size) if id not in special]
    return np.random.default_rng(seed).choice(usable, count).tolist()


def _read(path: Path) -> list[str]:
    """Return the prompts of a file, one per line; empty lines are skipped."""
    if not is_file(path, PromptError):
        raise PromptError(f"{path}: no such file; name a file of JSON lines")
    try:
        lines = read_text(path).splitlines()
    except (OSError, UnicodeError) as error:
        raise PromptError(f"{path}: cannot be read: {error}") from None
    prompts = [_prompt(f"{path}:{n}", line) for n, line in enumerate(lines, 1) if line.strip()]
    if not prompts:
        raise PromptError(f'{path}: no prompts; write lines of {{"prompt": "…"}}')
    return prompts


def _prompt(where: str, line: str) -> str:
    try:
        found: object = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise PromptError(f'{where}: not JSON: {error}; write {{"prompt": "…"}}') from None
    prompt = cast(dict[str, Any], found).get("prompt") if isinstance(found, dict) else None
    if not isinstance(prompt, str) or not prompt:
        raise PromptError(f'{where}: no text under "prompt"; write {{"prompt": "…"}}')
    return prompt


@dataclass(frozen=True, slots=True)
class Run:
    """Measurements of one generation; times are in milliseconds.

    Attributes:
        iteration: number of the run; 0 warms up.
        prompt: number of the prompt.
        input_size: number of prompt tokens.
        output_size: number of generated tokens.
        encoding: time to encode the prompt; 0 for token ids.
        decoding: time to decode the answer.
        generation: time of the generation, from token ids to token ids.
        first_token: time to the first token.
        other_tokens: time of each token after the first.
        inferences: time of each inference that results in a token.
        question: the prompt as text; empty for token ids.
        answer: the generated text.
    """

    iteration: int
    prompt: int
    input_size: int
    output_size: int
    encoding: float
    decoding: float
    generation: float
    first_token: float
    other_tokens: Sequence[float]
    inferences: Sequence[float]
    question: str
    answer: str

    @property
    def digest(self) -> str:
        """MD5 of the answer, by which runs are compared."""
        return hashlib.new("md5", self.answer.encode(), usedforsecurity=False).hexdigest()


def measure(
    pipe: LLMPipeline, prompts: Sequence[Prompt], iterations: int, output_tokens: int
) -> Iterator[Run]:
    """Run all prompts once to warm up, then in each iteration; yield each run as it ends.

    Raises:
        GenAIError: a prompt is empty or too long, or an answer has fewer tokens than requested.
    """
    config = pipe.get_generation_config().updated(
        {"max_new_tokens": output_tokens, "ignore_eos": True, "do_sample": False}
    )
    for iteration in range(iterations + 1):
        for number, prompt in enumerate(prompts):
            yield _run(pipe, prompt, config, (iteration, number))


def _run(
    pipe: LLMPipeline, prompt: Prompt, config: GenerationConfig, place: tuple[int, int]
) -> Run:
    tokenizer = pipe.get_tokenizer()
    began = time.perf_counter()
    ids = tokenizer.encode(prompt).input_ids if isinstance(prompt, str) else [prompt]
    encoded = time.perf_counter()
    results = pipe.generate(ids, config)
    generated = time.perf_counter()
    (tokens,) = results.tokens
    answer = tokenizer.decode(tokens)
    decoded = time.perf_counter()
    if len(tokens) != config.max_new_tokens:
        raise ConfigError(
            f"-ic {config.max_new_tokens}: generation ended after {len(tokens)} tokens "
            f"({results.finish_reasons[0].name}); raise MIN_RESPONSE_LEN by -c, or lower -ic"
        )
    metrics = results.perf_metrics
    raw = metrics.raw_metrics
    return Run(
        *place,
        input_size=metrics.get_num_input_tokens(),
        output_size=len(tokens),
        encoding=(encoded - began) * 1000 if isinstance(prompt, str) else 0.0,
        decoding=(decoded - generated) * 1000,
        generation=(generated - encoded) * 1000,
        first_token=metrics.get_ttft().mean,
        other_tokens=[each / 1000 for each in raw.m_durations],
        inferences=[each / 1000 for each in raw.token_infer_durations],
        question=prompt if isinstance(prompt, str) else "",
        answer=answer,
    )


_PERCENTILES = {"median": 50, "p90": 90, "p95": 95, "p99": 99}


@dataclass(frozen=True, slots=True)
class PromptStatistics:
    """Statistics of a prompt's runs, each from the name of a statistic to its value.

    Attributes:
        first_token: latency in milliseconds, over runs.
        other_tokens: latency in milliseconds, over all tokens after the first.
        throughput: tokens per second after the first, over runs.
    """

    first_token: Mapping[str, float]
    other_tokens: Mapping[str, float]
    throughput: Mapping[str, float]


def measured(runs: Iterable[Run]) -> dict[int, list[Run]]:
    """Return the runs of each prompt by its number, without those that warm up."""
    found: dict[int, list[Run]] = {}
    for run in runs:
        if run.iteration:
            found.setdefault(run.prompt, []).append(run)
    return found


def statistics(runs: Sequence[Run]) -> PromptStatistics:
    """Return the statistics of one prompt's runs, which are at least one."""
    return PromptStatistics(
        first_token=_of([run.first_token for run in runs]),
        other_tokens=_of([each for run in runs for each in run.other_tokens]),
        throughput=_of([1000 / mean for run in runs if (mean := mean_of(run.other_tokens)) > 0]),
    )


def mean_of(values: Sequence[float]) -> float:
    """Return the mean; 0 without values."""
    return sum(values) / len(values) if values else 0.0


def _of(values: Sequence[float]) -> dict[str, float]:
    """Return the statistics of values by name; none without values."""
    if not values:
        return {}
    ranks = dict(zip(_PERCENTILES, np.percentile(values, [*_PERCENTILES.values()]), strict=True))
    inner = {name: float(value) for name, value in ranks.items()}
    return {"avg": mean_of(values), "min": min(values), **inner, "max": max(values)}
