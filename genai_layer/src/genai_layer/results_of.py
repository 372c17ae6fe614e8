"""Results of texts that were generated."""

from __future__ import annotations

from itertools import chain

from genai_layer.decoding.generated_sequence import GeneratedSequence
from genai_layer.parsers.streamer import parse_texts
from genai_layer.perf_metrics import PerfMetrics
from genai_layer.results import DecodedResults, EncodedResults
from genai_layer.text_generator import Call

Generated = list[list[GeneratedSequence]]
"""Texts of each prompt."""


def decoded_results(generated: Generated, call: Call) -> DecodedResults:
    """Return the texts of all prompts, and parse them."""
    metrics = call.metrics
    sequences = list(chain.from_iterable(generated))
    texts = [one.text for one in sequences]
    return DecodedResults(
        texts,
        [one.score for one in sequences],
        [one.finish_reason for one in sequences],
        metrics,
        metrics.by_model,
        parsed=parse_texts(texts, call.config.parsers, call.streamer),
    )


def encoded_results(generated: Generated, metrics: PerfMetrics) -> EncodedResults:
    """Return the tokens of all prompts."""
    sequences = list(chain.from_iterable(generated))
    return EncodedResults(
        [[*one.echoed, *one.tokens] for one in sequences],
        [one.score for one in sequences],
        [one.finish_reason for one in sequences],
        metrics,
        metrics.by_model,
    )
