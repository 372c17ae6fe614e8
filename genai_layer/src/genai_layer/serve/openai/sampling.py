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


def _sampling(given: Sampled) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if given.temperature is not None or given.top_p is not None:
        values["do_sample"] = given.temperature != 0
    if given.temperature:
        values["temperature"] = given.temperature
    if given.top_p is not None:
        values["top_p"] = given.top_p
    if isinstance(given, Choosing):
        for name in ("presence_penalty", "frequency_penalty"):
            if getattr(given, name) is not None:
                values[name] = getattr(given, name)
        if given.stop is not None:
            stops = [given.stop] if isinstance(given.stop, str) else given.stop
            values["stop_strings"] = set(stops)
    return values


def _bounds(bounds: Bounds) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if bounds.max_tokens is not None:
        values["max_new_tokens"] = bounds.max_tokens
    if bounds.alternatives is not None:
        # 1 requests the chosen tokens alone; more also alternatives.
        values["logprobs"] = 1 if bounds.alternatives == 0 else max(bounds.alternatives, 2)
    if bounds.grammar is not None:
        values["structured_output_config"] = StructuredOutputConfig(compound_grammar=bounds.grammar)
    return values
