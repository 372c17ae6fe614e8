"""Fields of a GenerationConfig that change the choice of tokens, beside a greedy choice."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from genai_layer import GenerationConfig
from genai_layer.sampling.processors import TokenHistory
from genai_layer.sampling.sampler import Sampler
from sweep.figures import Figure, Table, beside_first
from sweep.subject import Subject

GREEDY = "greedy"

BY_SAMPLER: dict[str, dict[str, Any]] = {
    "min_new_tokens": {"min_new_tokens": 32, "stop_token_ids": [2]},
    "logit_bias": {"logit_bias": {7: 1.0, 8: -1.0}},
    "repetition_penalty": {"repetition_penalty": 1.2},
    "presence_penalty": {"presence_penalty": 0.5},
    "frequency_penalty": {"frequency_penalty": 0.5},
    "logprobs = 1": {"logprobs": 1},
    "logprobs = 5": {"logprobs": 5},
    "do_sample": {"do_sample": True, "rng_seed": 1},
    "temperature": {"do_sample": True, "temperature": 0.7},
    "top_k": {"do_sample": True, "top_k": 50},
    "min_p": {"do_sample": True, "min_p": 0.05},
    "top_p": {"do_sample": True, "top_p": 0.9},
    "top_k, top_p": {"do_sample": True, "top_k": 50, "top_p": 0.9},
}
"""Fields that one sampler reads, by setting."""

_JSON = '{"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}'

BY_DECODING: dict[str, dict[str, Any]] = {
    "structured_output_config, json_schema": {"structured_output_config": {"json_schema": _JSON}},
    "structured_output_config, regex": {"structured_output_config": {"regex": "[a-z ]{400}"}},
    "num_return_sequences": {"do_sample": True, "num_return_sequences": 2},
    "num_beams": {"num_beams": 4},
    "num_beam_groups, diversity_penalty": {
        **{"num_beams": 4, "num_beam_groups": 2, "diversity_penalty": 1.0}
    },
    "length_penalty": {"num_beams": 4, "length_penalty": 2.0},
    "stop_criteria": {"num_beams": 4, "stop_criteria": "EARLY"},
    "no_repeat_ngram_size": {"num_beams": 4, "no_repeat_ngram_size": 3},
}
"""Fields that need a tokenizer, or several sequences, by setting."""

VOCABULARIES = (49_152, 150_000, 262_144)
"""Sizes of vocabularies for which samplers run alone: SmolLM2's, Qwen's, Gemma's."""

_TOKENS, _NEW = 64, 33

GENERATED = 24
"""Generated tokens before the choices of samplers alone: fewer than min_new_tokens, which acts."""


def sweep(subject: Subject) -> Table:
    """Measure samplers on the model, then alone on larger vocabularies."""
    prompts = subject.prompts(_TOKENS, subject.effort.rounds)
    every = {GREEDY: {}, **BY_SAMPLER, **BY_DECODING}
    on_model = [_on_model(subject, setting, fields, prompts) for setting, fields in every.items()]
    token = sum(on_model[0].values)  # none if the model refuses all
    return Table(
        "Samplers",
        f"Time of a token after {_TOKENS}, with some fields of a GenerationConfig. Of a larger "
        "vocabulary, the time that the sampler alone takes is added to a greedy token's. "
        "Neighbour: the greedy token.",
        ("a token",),
        beside_first([*on_model, *_alone(token, 4 * subject.effort.rounds)]),
    )


def _on_model(
    subject: Subject, setting: str, fields: dict[str, Any], prompts: Sequence[list[int]]
) -> Figure:
    rounds = ({"prompt": prompt, "new": _NEW, "fields": fields} for prompt in prompts)
    return subject.measure([setting], "sample", *rounds)[0]


def _alone(token: float, choices: int) -> Iterator[Figure]:
    """Yield figures of samplers alone, added to the time of a model's greedy token."""
    for vocabulary in VOCABULARIES:
        for setting, fields in {GREEDY: {}, **BY_SAMPLER}.items():
            added = sampler_seconds(fields, vocabulary, choices)
            yield Figure(f"{setting}, {vocabulary:,} ids", (token + added,))


def sampler_seconds(fields: dict[str, Any], vocabulary: int, choices: int) -> float:
    """Return the shortest time of some choices, after a prompt of 512 tokens and generated ones."""
    draw = np.random.default_rng(vocabulary)
    logits = (3 * draw.standard_normal(vocabulary)).astype(np.float32)
    past = draw.integers(0, vocabulary, 512 + GENERATED).tolist()
    history = TokenHistory(past[:512], past[512:])
    sampler = Sampler(GenerationConfig(**fields))
    times: list[float] = []
    for _ in range(choices):
        began = time.perf_counter()
        sampler.next_token(logits, history)
        times.append(time.perf_counter() - began)
    return min(times)
