"""One prompt to generate from, and its results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from genai_layer.batching.handle import Stream
from genai_layer.decoding.generated_sequence import GeneratedSequence, Limits
from genai_layer.decoding.language_model import MakeInputs, token_inputs
from genai_layer.decoding.stopwatch import Stopwatch
from genai_layer.decoding.task import Drafter, Sink
from genai_layer.generation_config import GenerationConfig
from genai_layer.perf_metrics import PerfMetrics
from genai_layer.sampling.constraint import Constraint


def no_drafter() -> Drafter | None:
    """Return no source of candidates."""
    return None


@dataclass(slots=True, eq=False)
class Request:
    """A prompt that waits, generates, or has ended."""

    number: int | None
    """Number that the caller gave; None for prompts of ``generate``."""
    prompt: list[int]
    config: GenerationConfig
    """Validated parameters."""
    limits: Limits
    sink: Sink
    metrics: PerfMetrics
    began: Stopwatch
    inputs: MakeInputs = token_inputs
    """Makes the language model's inputs."""
    drafter: Callable[[], Drafter | None] = no_drafter
    """Makes the source of candidates, once the request runs."""
    constraint: Constraint | None = None
    """Limits the tokens of a text."""
    stream: Stream = field(default_factory=Stream)
    texts: list[GeneratedSequence] = field(default_factory=list[GeneratedSequence])
    """Complete texts, highest score first."""

    @property
    def sequences(self) -> int:
        """Number of sequences that run side by side."""
        if self.config.is_beam_search():
            return self.config.num_beams
        return self.config.num_return_sequences
