"""Logit processors: bias, penalties, forbidden stop tokens, and the interface of a constraint.

Source: order and formulas of openvino_genai, docs/reference/genai.md#sampling. The bias precedes
penalties as in vLLM: docs/reference/openai.md#fields-of-vllm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

Logits = npt.NDArray[np.float32]
"""f32 [vocabulary]; -inf where a token is impossible."""

_LARGEST = float(np.finfo(np.float32).max)


def rounded(values: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Round f64 values to f32; those beyond its range become its limits, and -inf stays.

    An infinite score would make others NaN, and a possible token impossible.
    """
    exact = np.asarray(values, np.float64)
    return np.where(np.isneginf(exact), exact, exact.clip(-_LARGEST, _LARGEST)).astype(np.float32)


class Tally:
    """Counts of different ids: those of some first tokens, and of a list that grows.

    Args:
        first: tokens before those of the list.
    """

    def __init__(self, first: Sequence[int] = ()) -> None:
        self._places: dict[int, int] = {}
        self._ids = np.zeros(64, np.int64)
        self._counts = np.zeros(64, np.int64)
        self._seen = 0
        self._add(first)

    def update(self, tokens: Sequence[int]) -> Self:
        """Count the tokens that the list has gained."""
        self._add(tokens[self._seen :])
        self._seen = len(tokens)
        return self

    @property
    def ids(self) -> npt.NDArray[np.int64]:
        """The ids, in the order of their first occurrences."""
        return self._ids[: len(self._places)]

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """The count of each id."""
        return self._counts[: len(self._places)]

    def _add(self, tokens: Sequence[int]) -> None:
        for token in tokens:
            place = self._places.setdefault(token, len(self._places))
            if place == len(self._ids):
                self._ids = np.append(self._ids, np.zeros_like(self._ids))
                self._counts = np.append(self._counts, np.zeros_like(self._counts))
            self._ids[place] = token
            self._counts[place] += 1


@dataclass(slots=True)
class TokenHistory:
    """The ids of the prompt and of the tokens generated so far, a list that only grows."""

    prompt: list[int]
    generated: list[int] = field(default_factory=list[int])
    _all: Tally | None = field(default=None, init=False, repr=False, compare=False)
    _generated: Tally = field(default_factory=Tally, init=False, repr=False, compare=False)

    def tally(self) -> Tally:
        """Return the counts of all ids."""
        if self._all is None:
            self._all = Tally(self.prompt)
        return self._all.update(self.generated)

    def generated_tally(self) -> Tally:
        """Return the counts of the generated ids."""
        return self._generated.update(self.generated)


Processor = Callable[[Logits, TokenHistory], Logits]
"""Returns new logits; its argument stays unchanged."""


def min_new_tokens(count: int, stop_token_ids: AbstractSet[int]) -> Processor:
    """Forbid stop tokens before ``count`` tokens are generated."""
    stops = np.array(sorted(stop_token_ids), np.int64)

    def process(logits: Logits, history: TokenHistory) -> Logits:
        if len(history.generated) >= count:
            return logits
        masked = logits.copy()
        masked[stops[stops < len(logits)]] = -np.inf
        return masked

    return process


def logit_bias(bias: Mapping[int, float]) -> Processor:
    """Add to the logits of some ids; an impossible token stays impossible."""
    ids = np.array(list(bias), np.int64)
    amounts = np.array(list(bias.values()), np.float32)

    def process(logits: Logits, history: TokenHistory) -> Logits:
        known = ids < len(logits)
        biased = logits.copy()
        biased[ids[known]] += amounts[known]
        return biased

    return process


def repetition_penalty(penalty: float) -> Processor:
    """Divide the logit of each id of the history by ``penalty``; multiply negative ones by it."""
    factor = float(np.float32(penalty))

    def process(logits: Logits, history: TokenHistory) -> Logits:
        ids = history.tally().ids
        penalised = logits.copy()
        chosen = logits[ids].astype(np.float64)
        penalised[ids] = rounded(np.where(chosen >= 0, chosen / factor, chosen * factor))
        return penalised

    return process


def presence_penalty(penalty: float) -> Processor:
    """Subtract ``penalty`` from the logit of each generated id; add it to negative ones.

    The sign for negative logits is openvino_genai's, not that of other engines.
    """

    def process(logits: Logits, history: TokenHistory) -> Logits:
        return _lowered(logits, history.generated_tally().ids, penalty)

    return process


def frequency_penalty(penalty: float) -> Processor:
    """Subtract ``penalty`` × count from the logit of each generated id; sign as in presence."""

    def process(logits: Logits, history: TokenHistory) -> Logits:
        tally = history.generated_tally()
        return _lowered(logits, tally.ids, penalty * tally.counts)

    return process


def _lowered(
    logits: Logits, ids: npt.NDArray[np.int64], amount: float | npt.NDArray[np.floating[Any]]
) -> Logits:
    penalised = logits.copy()
    penalised[ids] -= np.where(logits[ids] >= 0, amount, -amount).astype(np.float32)
    return penalised


class Constraint(Protocol):
    """Constraint of one text; it learns every chosen token."""

    def prepare(self) -> None:
        """Compute the mask of the next token, while the device computes its logits."""
        ...

    def process(self, logits: Logits) -> Logits:
        """Return new logits, -inf for forbidden tokens."""
        ...

    def advance(self, token: int) -> None:
        """Continue the text with a token."""
        ...

    def fork(self) -> Self:
        """Return an independent constraint of an equal text."""
        ...
