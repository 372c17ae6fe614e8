"""One call of ``VLMPipeline.generate``: its parameters, measurements and results."""

from __future__ import annotations

from dataclasses import dataclass

from genai_layer.decoding.generated_sequence import GeneratedSequence
from genai_layer.decoding.stopwatch import Stopwatch
from genai_layer.errors import ConfigError
from genai_layer.generation_config import GenerationConfig
from genai_layer.sinks import Streamer
from genai_layer.text_generator import Call, decoded_results
from genai_layer.vision.results import VLMDecodedResults, VLMPerfMetrics, with_vision_metrics


@dataclass(frozen=True, slots=True)
class Generation:
    """One call."""

    config: GenerationConfig
    streamer: Streamer
    began: Stopwatch
    metrics: VLMPerfMetrics

    @property
    def call(self) -> Call:
        """The call, as the language model sees it."""
        return Call(self.config, self.streamer, self.began, self.metrics)

    def results(self, sequences: list[GeneratedSequence]) -> VLMDecodedResults:
        """Return the results of its sequences."""
        return with_vision_metrics(decoded_results([sequences], self.call))


def checked(config: GenerationConfig) -> GenerationConfig:
    """Return validated parameters.

    Raises:
        ConfigError: they contradict each other, or a method is not supported.
    """
    config.validate()
    if config.pruning_ratio:
        raise ConfigError(
            f"pruning_ratio = {config.pruning_ratio}: image tokens are not pruned; set it to 0"
        )
    return config
