"""Pipeline of one language model: default parameters, and results of its generations."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any, TypeVar

from genai_layer.checked import checked
from genai_layer.exclusive import KeepsChat
from genai_layer.generation_config import GenerationConfig
from genai_layer.parsers.streamer import parse_texts
from genai_layer.perf_metrics import PerfMetrics
from genai_layer.results import DecodedResults, EncodedResults
from genai_layer.text_generator import Call, Generated, TextGenerator
from genai_layer.tokenizer import Tokenizer

Results = TypeVar("Results", bound=DecodedResults)


def decoded_results(
    generated: Generated, call: Call[PerfMetrics], kind: type[Results] = DecodedResults
) -> Results:
    """Return the texts of all prompts, and parse them."""
    metrics = call.metrics
    sequences = list(chain.from_iterable(generated))
    texts = [one.text for one in sequences]
    return kind(
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


class TextPipeline(KeepsChat):
    """Pipeline of one language model, with default parameters."""

    _tokenizer: Tokenizer
    _config: GenerationConfig
    _generator: TextGenerator

    def get_tokenizer(self) -> Tokenizer:
        """Return the tokenizer."""
        return self._tokenizer

    def get_generation_config(self) -> GenerationConfig:
        """Return a copy of the default parameters."""
        return self._config.updated({})

    @checked
    def set_generation_config(self, config: GenerationConfig) -> None:
        """Set the default parameters; missing stop tokens are taken from the previous ones.

        Raises:
            ConfigError: the parameters contradict each other; the previous ones stay.
        """
        self._config = self._effective(config, {})

    def execution_report(self) -> Mapping[str, str]:
        """Return the runtime's facts on the last generation; empty if it reports none."""
        return self._generator.execution_report()

    def _forget_tokens(self) -> None:
        self._generator.forget_tokens()

    def _effective(self, config: GenerationConfig, changes: Mapping[str, Any]) -> GenerationConfig:
        """Return validated parameters, with the default stop tokens if they have none.

        Raises:
            ConfigError: the parameters contradict each other, or a method is not supported.
        """
        effective = config.with_stops_of(self._config).updated(changes)
        effective.validate()
        return effective
