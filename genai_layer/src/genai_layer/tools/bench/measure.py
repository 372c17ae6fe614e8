"""Runs of a benchmark, and their measurements.

Source: openvino.genai's llm_bench, docs/reference/genai.md#llm_bench.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from genai_layer import ConfigError, GenerationConfig, LLMPipeline
from genai_layer.tools.bench.prompts import Prompt


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
