"""Wrong calls, whose exceptions are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

REFUSALS: dict[str, Callable[[Any], Any]] = {
    "ChatHistory().pop()": lambda genai: genai.ChatHistory().pop(),
    "GenerationConfig().unknown = 1": lambda genai: setattr(genai.GenerationConfig(), "unknown", 1),
    "GenerationConfig(unknown=1)": lambda genai: genai.GenerationConfig(unknown=1),
    "GenerationConfig('missing.json')": lambda genai: genai.GenerationConfig("missing.json"),
    "GenerationConfig().validate()": lambda genai: genai.GenerationConfig().validate(),
    "SchedulerConfig().unknown = 1": lambda genai: setattr(genai.SchedulerConfig(), "unknown", 1),
    "CacheEvictionConfig(…, kvcrush_config=None)": lambda genai: genai.CacheEvictionConfig(
        8, 8, 32, genai.AggregationMode.SUM, kvcrush_config=None
    ),
    "LLMPipeline()": lambda genai: genai.LLMPipeline(),
    "LLMPipeline('missing', 'CPU')": lambda genai: genai.LLMPipeline("missing", "CPU"),
    "VLMPipeline('missing', 'CPU')": lambda genai: genai.VLMPipeline("missing", "CPU"),
    "WhisperPipeline('missing', 'CPU')": lambda genai: genai.WhisperPipeline("missing", "CPU"),
    "Tokenizer('missing')": lambda genai: genai.Tokenizer("missing"),
    "Adapter('missing.safetensors')": lambda genai: genai.Adapter("missing.safetensors"),
    "AdapterConfig().get_alpha(Adapter())": lambda genai: genai.AdapterConfig().get_alpha(
        genai.Adapter()
    ),
    "Parser().parse({})": lambda genai: genai.Parser().parse({}),
    "StreamerBase().write([1])": lambda genai: genai.StreamerBase().write([1]),
    "StructuralTagItem(unknown='')": lambda genai: genai.StructuralTagItem(unknown=""),
    "TextRerankPipeline.Config(unknown=1)": lambda genai: genai.TextRerankPipeline.Config(
        unknown=1
    ),
    "PerfMetrics() + 1": lambda genai: genai.PerfMetrics() + 1,
}
"""Calls by their text, on a package."""
