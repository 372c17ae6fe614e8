"""Tokens of a request, step by step.

A single text is passed on as it grows, several texts when all are complete.

Source: openvino_genai.GenerationOutput, docs/reference/genai.md#continuous-batching.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from genai_layer.decoding.generated_sequence import GeneratedSequence
from genai_layer.results import GenerationFinishReason
from genai_layer.sampling.candidates import Alternatives


@dataclass(slots=True)
class GenerationOutput:
    """Tokens of one sequence: those of a step, or all."""

    generated_ids: list[int] = field(default_factory=list[int])
    generated_log_probs: list[float] = field(default_factory=list[float])
    """One log-probability for each id; 1 for the first of a prompt."""
    score: float = 0.0
    """Score of the sequence so far."""
    finish_reason: GenerationFinishReason = GenerationFinishReason.NONE
    """NONE until the sequence is complete."""
    alternatives: list[Alternatives] = field(default_factory=list[Alternatives])
    """Likeliest tokens at the place of each id, if logprobs is above 1. Ours."""
    text: str = ""
    """Text that the tokens complete, without an excluded stop string and the prompt. Ours."""
    echoed: int = 0
    """Number of the first ids that are the prompt's. Ours."""

    def extend(self, later: GenerationOutput) -> None:
        """Add the tokens of a later step."""
        self.echoed += later.echoed
        self.generated_ids += later.generated_ids
        self.generated_log_probs += later.generated_log_probs
        self.alternatives += later.alternatives
        self.text += later.text
        self.score, self.finish_reason = later.score, later.finish_reason


Outputs = dict[int, GenerationOutput]
"""Outputs by number of the sequence."""


def joined(steps: Iterable[Outputs]) -> Outputs:
    """Return the outputs of several steps together."""
    whole: Outputs = {}
    for step in steps:
        for number, output in step.items():
            whole.setdefault(number, GenerationOutput()).extend(output)
    return whole


class GrowingText:
    """Outputs of a text in progress.

    Args:
        text: the text.
        hold: True to hold tokens back until their text certainly belongs to the result; tokens of
            an excluded stop string are then never passed on.
        prompt: output of the prompt's tokens, which precede the first ones.
    """

    def __init__(self, text: GeneratedSequence, hold: bool, prompt: GenerationOutput) -> None:
        self._text = text
        self._hold = hold
        self._prompt = prompt
        self._passed = 0
        self._characters = 0

    def step(self) -> Outputs:
        """Return the output since the last step; empty if there is none."""
        text = self._text
        ready = text.certain if self._hold or text.ended else len(text.tokens)
        if ready == self._passed and not text.ended:
            return {}
        begin, self._passed = self._passed, ready
        output = _output(text, begin, ready, self._characters)
        self._prompt, prompt = GenerationOutput(), self._prompt
        self._characters = len(text.text)
        return joined([{0: prompt}, {0: output}])


def complete_outputs(texts: list[GeneratedSequence], prompt: GenerationOutput) -> Outputs:
    """Return the outputs of complete texts; the output of the prompt's tokens begins each."""
    whole = {number: _output(text, 0, text.certain, 0) for number, text in enumerate(texts)}
    return joined([dict.fromkeys(whole, prompt), whole])


def _output(text: GeneratedSequence, begin: int, end: int, characters: int) -> GenerationOutput:
    return GenerationOutput(
        text.tokens[begin:end],
        text.log_probabilities[begin:end],
        text.score,
        text.finish_reason,
        text.alternatives[begin:end],
        text.text[characters:],
    )
