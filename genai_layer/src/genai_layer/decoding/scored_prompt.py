"""Log-probabilities of a prompt's tokens, as the model predicts each of them.

A runtime returns the logits of the last token alone, so the prompt is read token by token.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from genai_layer.decoding.reads import Decoding, Read, Task
from genai_layer.sampling.candidates import Alternatives, scored
from genai_layer.sampling.sampler import alternatives_of


@dataclass(slots=True)
class PromptScores:
    """Scores of a prompt's tokens so far."""

    log_probabilities: list[float] = field(default_factory=lambda: [1.0])
    """Log-probability of each token; 1 for the first, which nothing predicts, as openvino_genai."""
    alternatives: list[Alternatives] = field(default_factory=lambda: [()])
    """Likeliest tokens at each place; see Sampler.alternatives."""


def score_prompt(decoding: Decoding, task: Task, scores: PromptScores) -> Decoding:
    """Score a prompt, and run a method from its last token on.

    Args:
        decoding: the method, not begun.
        task: the prompt.
        scores: receives the scores.
    """
    count = alternatives_of(task.config)
    for place, token in enumerate(task.prompt[1:]):
        logits = (yield Read([[task.prompt[place]]], place))[0, -1]
        score, alternatives = scored(logits, token, count)
        scores.log_probabilities.append(score)
        scores.alternatives.append(alternatives)
    return (yield from _from_last_token(decoding))


def _from_last_token(decoding: Decoding) -> Decoding:
    """Run a method whose prompt is read up to the last token."""
    try:
        step = next(decoding)
        (prompt,) = step.rows
        logits = yield replace(step, rows=[prompt[-1:]], past=len(prompt) - 1)
        while True:
            logits = yield decoding.send(logits)
    except StopIteration as end:
        return end.value
