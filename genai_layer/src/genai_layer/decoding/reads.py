"""Decoding in steps: a method yields the tokens to read, and receives their logits.

One method thus serves callers that run it alone and callers that run several in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

from genai_layer.decoding.generated_sequence import GeneratedSequence
from genai_layer.decoding.language_model import LanguageModel, Rows
from genai_layer.sampling.processors import Logits


@dataclass(frozen=True, slots=True)
class Read:
    """Tokens that the model has to read next; see ``LanguageModel.read``."""

    rows: Rows
    past: int
    sources: Sequence[int] = (0,)
    meanwhile: Callable[[], None] | None = None
    last: int = 1


Decoding = Generator[Read, Logits, list[GeneratedSequence]]
"""Method in progress: it receives logits f32 [rows, last, vocabulary] for a Read."""


def complete(decoding: Decoding, model: LanguageModel) -> list[GeneratedSequence]:
    """Run all steps of a method, and return its texts.

    Raises:
        RuntimeFailure: the runtime failed.
    """
    try:
        step = next(decoding)
        while True:
            logits = model.read(
                step.rows, step.past, step.sources, last=step.last, meanwhile=step.meanwhile
            )
            step = decoding.send(logits)
    except StopIteration as end:
        return end.value
