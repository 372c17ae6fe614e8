"""Beams of a group, and the texts that they completed.

Source: docs/reference/genai.md#beam-search.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from genai_layer.decoding.generated_sequence import GeneratedSequence
from genai_layer.generation_config import GenerationConfig
from genai_layer.generation_fields import StopCriteria


@dataclass(frozen=True, slots=True)
class Beam:
    """Text that may still grow."""

    sequence: GeneratedSequence
    score: np.float32
    """Sum of the log-probabilities."""
    row: int
    """Row of the last inference that it continues."""

    def rated(self, length: int, penalty: float) -> float:
        """Return the score of a text of a length: divided by length ** penalty."""
        return float(self.score / np.float32(length) ** np.float32(penalty)) if length else np.nan


@dataclass(slots=True)
class BeamGroup:
    """Beams that are searched together, and their completed texts."""

    size: int
    config: GenerationConfig
    beams: list[Beam]
    """Growing texts, the likeliest first."""
    completed: list[tuple[float, GeneratedSequence]] = field(
        default_factory=list[tuple[float, GeneratedSequence]]
    )
    """The best completed texts, at most ``size``, the best first."""
    done: bool = False

    def complete(self, beam: Beam, length: int) -> None:
        """Add a complete text, in place of the worst if it is better.

        Args:
            beam: the text, with its score.
            length: number of tokens that rates it.
        """
        penalty = self.config.length_penalty
        beam.sequence.score = beam.rated(len(beam.sequence.tokens), penalty)
        self.completed.append((beam.rated(length, penalty), beam.sequence))
        self.completed.sort(key=lambda each: -each[0])
        del self.completed[self.size :]

    def check_done(self, longest: int) -> None:
        """Mark the group as done if no beam can beat its completed texts.

        Args:
            longest: maximum number of tokens.
        """
        if len(self.completed) < self.size:
            return
        criteria, best = self.config.stop_criteria, self.beams[0]
        if criteria is StopCriteria.EARLY:
            self.done = True
            return
        penalty, length = self.config.length_penalty, len(best.sequence.tokens)
        if criteria is StopCriteria.NEVER and penalty > 0:
            length = longest
        self.done = self.completed[-1][0] >= best.rated(length, penalty)
