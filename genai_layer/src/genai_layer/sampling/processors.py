"""Logit processors: bias, penalties, forbidden stop tokens, and the interface of a constraint.

Source: order and formulas of openvino_genai, docs/reference/genai.md#sampling. The bias precedes
penalties as in vLLM: docs/reference/openai.md#fields-of-vllm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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


@dataclass(slots=True)
class TokenHistory:
    """The ids of the prompt and of the tokens generated so far."""

    prompt: list[int]
    generated: list[int] = field(default_factory=list[int])


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
        ids = np.unique(np.array([*history.prompt, *history.generated], np.int64))
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
        ids = np.unique(np.array(history.generated, np.int64))
        return _lowered(logits, ids, penalty)

    return process


def frequency_penalty(penalty: float) -> Processor:
    """Subtract ``penalty`` × count from the logit of each generated id; sign as in presence."""

    def process(logits: Logits, history: TokenHistory) -> Logits:
        ids, counts = np.unique(np.array(history.generated, np.int64), return_counts=True)
        return _lowered(logits, ids, penalty * counts)

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
