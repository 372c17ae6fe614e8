"""The sampler of one request: the sampling steps in order.

stop tokens forbidden → constraint → logit bias → repetition → presence → frequency → greedy, or:
top_k → temperature → min_p → top_p → draw.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Self

import numpy as np

from genai_layer.generation_config import GenerationConfig
from genai_layer.sampling.candidates import (
    Alternatives,
    Candidates,
    Draw,
    all_of,
    likeliest,
    min_p,
    scored,
    softmax,
    top_k,
    top_p,
)
from genai_layer.sampling.processors import (
    Constraint,
    Logits,
    Processor,
    TokenHistory,
    frequency_penalty,
    logit_bias,
    min_new_tokens,
    presence_penalty,
    repetition_penalty,
)

Choose = Callable[[Logits], tuple[int, float]]
"""Returns a token and its log-probability."""


_CLOSE = 1 / 256
"""Share of the largest logit within which two are close: 8 units of f16's last place."""


class Sampler:
    """Sampler of one request's tokens.

    Args:
        config: validated.
        constraint: limits the tokens, e.g. to those of a grammar; the sampler advances it.
    """

    def __init__(self, config: GenerationConfig, constraint: Constraint | None = None) -> None:
        self._stops = min_new_tokens(config.min_new_tokens, config.stop_token_ids)
        self._constraint = constraint
        self._changes = _changes(config)
        self._choose = _multinomial(config) if config.do_sample else _greedy
        self._raw_scores = config.logprobs > 0
        self._alternatives = alternatives_of(config)
        self.score = 0.0
        """Sum of the log-probabilities of the chosen tokens; see GenerationConfig.logprobs."""
        self.alternatives: Alternatives = ()
        """Likeliest tokens at the last choice; empty unless logprobs is above 1."""

    def fork(self) -> Self:
        """Return a sampler of another sequence, which takes its turns at the same draws."""
        forked = copy(self)
        forked._constraint = self._constraint and self._constraint.fork()
        return forked

    def prepare(self) -> None:
        """Do the part of the next choice that needs no logits, while the device runs."""
        if self._constraint is not None:
            self._constraint.prepare()

    def next_token(self, logits: Logits, history: TokenHistory) -> int:
        """Choose a token.

        Args:
            logits: f32 [vocabulary].
            history: prompt and generated tokens so far.
        """
        token, log_probability = self._choose(self._processed(logits, history))
        if self._raw_scores:
            log_probability, self.alternatives = scored(logits, token, self._alternatives)
        self.score += log_probability
        if self._constraint is not None:
            self._constraint.advance(token)
        return token

    def is_close(self, logits: Logits, history: TokenHistory) -> bool:
        """Return whether other rounding of the logits could change a greedy choice.

        Args:
            logits: f32 [vocabulary].
            history: prompt and generated tokens so far.
        """
        if self._choose is not _greedy:
            return False
        processed = self._processed(logits, history)
        first, second = processed[likeliest(processed, 2)].tolist()
        return first - second <= _CLOSE * float(np.abs(logits).max())

    def _processed(self, logits: Logits, history: TokenHistory) -> Logits:
        """Return the logits that a token is chosen from."""
        processed = self._stops(logits, history)
        if self._constraint is not None:
            processed = self._constraint.process(processed)
        for change in self._changes:
            processed = change(processed, history)
        return processed


def alternatives_of(config: GenerationConfig) -> int:
    """Return the number of alternatives at each place."""
    return config.logprobs if config.logprobs > 1 else 0


def _changes(config: GenerationConfig) -> list[Processor]:
    """Return the bias and the penalties that parameters request."""
    steps = (
        (bool(config.logit_bias), logit_bias(config.logit_bias)),
        (config.repetition_penalty != 1.0, repetition_penalty(config.repetition_penalty)),
        (config.presence_penalty != 0.0, presence_penalty(config.presence_penalty)),
        (config.frequency_penalty != 0.0, frequency_penalty(config.frequency_penalty)),
    )
    return [step for wanted, step in steps if wanted]


def _greedy(logits: Logits) -> tuple[int, float]:
    """Return the first of the highest logits; the score is 0, as it is not a draw."""
    return int(logits.argmax()), 0.0


def _multinomial(config: GenerationConfig) -> Choose:
    draw = Draw(config.rng_seed)

    def choose(logits: Logits) -> tuple[int, float]:
        candidates = softmax(top_k(Candidates.of(logits), config.top_k), config.temperature)
        if config.min_p > 0:
            candidates = min_p(candidates, config.min_p)
        whole = config.top_p >= 1
        return draw(all_of(candidates) if whole else top_p(candidates, config.top_p))

    return choose
