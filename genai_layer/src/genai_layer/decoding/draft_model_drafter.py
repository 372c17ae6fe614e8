"""Drafter that runs a second, smaller language model."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from genai_layer.decoding.candidate_count import CandidateCount
from genai_layer.decoding.language_model import LanguageModel
from genai_layer.perf_metrics import RawPerfMetrics
from genai_layer.sampling.processors import Logits


class DraftModelDrafter:
    """Drafter of the likeliest tokens of a draft model.

    Args:
        model: the draft model.
        raw: its measurements.
        count: number of candidates.
        room: maximum number of tokens that it stores.
        threshold: probability below which a candidate is the last one; 0 for none.
        stops: tokens after which no candidate follows.
    """

    def __init__(
        self,
        model: LanguageModel,
        raw: RawPerfMetrics,
        count: CandidateCount,
        *,
        room: int,
        threshold: float = 0.0,
        stops: AbstractSet[int] = frozenset(),
    ) -> None:
        self.raw = raw
        self.count = count
        self._model = model
        self._room = room
        self._threshold = threshold
        self._stops = stops
        self._read: list[int] = []
        """Tokens that the model stores."""

    def begin(self) -> None:
        """Forget all tokens.

        Raises:
            RuntimeFailure: the runtime failed.
        """
        self._read = []
        self._model.reset()

    def draft(self, tokens: Sequence[int], most: int) -> list[int]:
        """Return candidates, of which the model has read all but the last.

        Raises:
            RuntimeFailure: the runtime failed.
        """
        # The last candidate is not stored.
        most = min(most, self.count.value, self._room - len(tokens) + 1)
        candidates: list[int] = []
        if most <= 0:
            return candidates
        logits = self._catch_up(list(tokens))
        while True:
            candidate = int(logits.argmax())
            candidates.append(candidate)
            unsure = self._threshold > 0 and _probability(logits) < self._threshold
            if len(candidates) == most or unsure or candidate in self._stops:
                return candidates
            logits = self._next(candidate)

    def finish(self) -> None:
        """Note the duration of all inferences."""
        self._model.finish()

    def _catch_up(self, tokens: list[int]) -> Logits:
        """Forget rejected candidates, and read the tokens that the model lacks."""
        kept = min(len(self._read), len(tokens) - 1)
        while self._read[:kept] != tokens[:kept]:
            kept -= 1
        del self._read[kept:]
        if not kept:  # the first token belongs to the text already
            first = tokens[:-1] or tokens
            logits = self._model.read([first], 0)[0, -1]
            self._read = list(first)
            if first is tokens:
                return logits
        # One by one: devices with static programs take one token at a time.
        for token in tokens[len(self._read) : -1]:
            self._next(token)
        return self._next(tokens[-1])

    def _next(self, token: int) -> Logits:
        logits = self._model.read([[token]], len(self._read))[0, -1]
        self._read.append(token)
        return logits


def _probability(logits: Logits) -> float:
    """Return the largest probability."""
    return float(1 / np.exp(logits - logits.max(), dtype=np.float64).sum())
