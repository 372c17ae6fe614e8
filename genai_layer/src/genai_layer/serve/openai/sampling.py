"""Parameters of a generation, from a request and the model's defaults."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from genai_layer.generation_config import GenerationConfig
from genai_layer.serve.openai.schemas.base import Choosing, Sampled
from genai_layer.structured.config import StructuredOutputConfig
from genai_layer.structured.formats import StructuralFormat


@dataclass(frozen=True, slots=True)
class Bounds:
    """Parameters that each endpoint names in its own way."""

    max_tokens: int | None = None
    alternatives: int | None = None
    """Number of likeliest tokens at each place; None for no log-probabilities."""
    grammar: StructuralFormat | None = None
    echo: bool = False
    """Score the prompt's tokens, too."""
    calls_only: bool = False
    """The answer is calls alone; stop texts end texts beside calls, so none is searched."""


def configs_of(
    given: Sampled, bounds: Bounds, defaults: GenerationConfig, count: int = 1
) -> list[GenerationConfig]:
    """Return the parameters of each choice; choice i draws with the seed + i.

    Raises:
        ConfigError: a value is not supported.
    """
    seed = given.seed if isinstance(given, Choosing) else None
    first = secrets.randbits(32) if seed is None else seed
    base = defaults.updated(_sampling(given) | _bounds(bounds))
    return [base.updated({"rng_seed": (first + i) % (1 << 32)}) for i in range(count)]


_DRAWS = {"temperature", "top_p", "top_k", "min_p"}
"""Parameters of draws: one of them requests draws, unless the temperature is 0."""
_KEPT = _DRAWS | {"presence_penalty", "frequency_penalty", "repetition_penalty", "ignore_eos"}
"""Parameters that have the same names and values here."""


def _sampling(given: Sampled) -> dict[str, Any]:
    values = given.model_dump(include=_KEPT, exclude_none=True)
    if values.keys() & _DRAWS:
        values["do_sample"] = given.temperature != 0
    if given.temperature == 0:
        del values["temperature"]
    if isinstance(given, Choosing):
        values |= _choosing(given)
    return values


def _choosing(given: Choosing) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if given.top_k is not None:
        values["top_k"] = max(given.top_k, 0)
    if given.stop is not None:
        values["stop_strings"] = {given.stop} if isinstance(given.stop, str) else set(given.stop)
    if given.logit_bias is not None:
        values["logit_bias"] = {int(token): bias for token, bias in given.logit_bias.items()}
    return values


def _bounds(bounds: Bounds) -> dict[str, Any]:
    values: dict[str, Any] = {"echo": bounds.echo}
    if bounds.calls_only:
        values["stop_strings"] = set[str]()
    if bounds.max_tokens is not None:
        values["max_new_tokens"] = bounds.max_tokens
    if bounds.alternatives is not None:
        # 1 requests the chosen tokens alone; more also alternatives.
        values["logprobs"] = 1 if bounds.alternatives == 0 else max(bounds.alternatives, 2)
    if bounds.grammar is not None:
        values["structured_output_config"] = StructuredOutputConfig(compound_grammar=bounds.grammar)
    return values
