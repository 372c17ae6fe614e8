"""Drafters of candidates for the next tokens, and the number of candidates of each step.

Prompt lookup: the last tokens are searched in the earlier ones, and what follows is a candidate.
A draft model: a second, smaller language model is run.

Source: docs/reference/genai.md#prompt-lookup.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from genai_layer.decoding.language_model import LanguageModel
from genai_layer.decoding.payoff import AlwaysPays
from genai_layer.perf_metrics import RawPerfMetrics
from genai_layer.sampling.processors import Logits

_ALWAYS = AlwaysPays()


class CandidateCount:
    """Number of candidates to draft next.

    Args:
        first: the first number.
        most: the largest number.
        adapts: whether the number follows the accepted ones: it grows by 2 if all were, else it
            shrinks by 1 (docs/reference/genai.md#speculative-decoding).
        payoff: decides whether a step has candidates at all.
    """

    def __init__(
        self,
        first: int,
        most: int,
        adapts: bool = False,
        payoff: AlwaysPays = _ALWAYS,
    ) -> None:
        self.value = min(first, most)
        """Candidates of the next step, 0 only if no step may have any."""
        self.drafted = 0
        """Candidates so far."""
        self.accepted = 0
        """Accepted candidates so far."""
        self.payoff = payoff
        self._most = most
        self._adapts = adapts

    def note(self, drafted: int, accepted: int) -> None:
        """Count a step's candidates."""
        self.drafted += drafted
        self.accepted += accepted
        if not self._adapts or not drafted:
            return
        grown = accepted >= self.value
        self.value = min(self.value + 2, self._most) if grown else max(self.value - 1, 1)


class PromptLookup:
    """Drafter from the prompt and the text so far.

    Args:
        longest: maximum number of last tokens that are searched.
        count: number of candidates.
    """

    def __init__(self, longest: int, count: CandidateCount) -> None:
        self._longest = longest
        self.count = count

    def begin(self) -> None:
        """Do nothing: all tokens are given each time."""

    def reads(self, tokens: Sequence[int]) -> int:
        """Return 0: no model is run."""
        del tokens
        return 0

    def foretold(self, tokens: Sequence[int]) -> bool:
        """Return whether candidates would have been the last tokens."""
        size = self.count.value
        earlier = tokens[:-size]
        begin = following(earlier, self._longest)
        return list(earlier[begin : begin + size]) == list(tokens[-size:])

    def draft(self, tokens: Sequence[int], most: int) -> list[int]:
        """Return the tokens after the first place of the longest run that ends the text."""
        begin = following(tokens, self._longest)
        return list(tokens[begin : begin + min(self.count.value, most)])

    def finish(self) -> None:
        """Do nothing: there are no inferences."""


def following(tokens: Sequence[int], longest: int) -> int:
    """Return the place after the first earlier occurrence of the last tokens.

    Args:
        tokens: the text.
        longest: maximum number of last tokens; half of the text if it is shorter.

    Returns:
        The place; the length of the text if even the last token occurs only there.
    """
    text, total = list(tokens), len(tokens)
    if longest >= total:
        longest = total // 2
    for size in range(longest, 0, -1):
        run, begin = text[total - size :], -1
        while run[0] in text[begin + 1 : total - size]:
            begin = text.index(run[0], begin + 1)
            if text[begin : begin + size] == run:
                return begin + size
    return total


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
        """Begin another text, whose first tokens the model may have stored."""
        self._read = []

    def reads(self, tokens: Sequence[int]) -> int:
        """Return the number of inferences that drafting takes."""
        missing = len(tokens) - len(self._read) if self._read else 1
        return max(missing, 1) + self.count.value - 1

    def foretold(self, tokens: Sequence[int]) -> bool:
        """Return False: the model would have to run."""
        del tokens
        return False

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
