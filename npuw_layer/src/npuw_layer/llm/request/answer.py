"""What tokens are run for, and prompts that are read with breaks: others may run then."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from npuw_layer.backends.protocols import Array
from npuw_layer.llm.request.submodel import Submodel


@dataclass(frozen=True, slots=True)
class Answer:
    """What tokens were run for: logits, which are not computed yet."""

    submodel: Submodel
    """What took the last tokens."""
    rows: int
    """For how many of them logits are wanted."""


Reading = Generator[int, None, Array]
"""Tokens that are read piece by piece; logits at the end."""

Answering = Generator[int, None, Answer]
"""The same without the logits."""


def finished(answering: Answering) -> Answer:
    """Read on to the end."""
    while True:
        try:
            next(answering)
        except StopIteration as end:
            return end.value
