"""Candidates of the last step, and the path that the caller accepts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from npuw_layer.backends.protocols import Array
from npuw_layer.backends.tensor import Tensor
from npuw_layer.errors import StateError, TensorError
from npuw_layer.execution.host_attention.masks import ATTENDED
from npuw_layer.llm.kv.kv_strategy import KVStrategy
from npuw_layer.llm.request.history import History
from npuw_layer.llm.request.new_tokens import NewTokens
from npuw_layer.llm.request.variable_state import PartState
from npuw_layer.llm.trait import ConversationPart
from npuw_layer.remote.tensor import AnyTensor, values_of
from npuw_layer.traits.trees.names import HEADER, MOST_CANDIDATES, SAMPLING_RESULT, TREE_MASK
from npuw_layer.traits.trees.tree_mask import fill

if TYPE_CHECKING:
    from npuw_layer.llm.request.conversation import Conversation


class Candidates(ConversationPart):
    """Candidates in a conversation's cache.

    An accepted path takes effect immediately: from then on the conversation has only the tokens of
    that path.

    Args:
        cache: the conversation's K and V.
        history: the conversation's tokens.
        most: maximum tokens of a step.
    """

    shown_last = True

    def __init__(self, cache: KVStrategy, history: History, most: int) -> None:
        self._most = most
        self._cache = cache
        self._history = history
        self._step = NewTokens.none()
        """Candidates of the last step; empty without a step, or once a path is accepted."""
        self.result_set: Array = _nothing()
        """Sampling result since the last step, i64 [2 + 512]; zeros if not set."""

    def check(self, tokens: NewTokens, keep: int, prompt: bool) -> None:
        """Reject a tree in a prompt, whose tokens attend to all tokens before them.

        Raises:
            TensorError: the tokens are candidates.
        """
        if prompt and TREE_MASK in tokens.pairs:
            raise TensorError(
                f"{TREE_MASK}: {len(tokens)} tokens are read as a prompt, whose tokens attend to "
                f"all earlier ones; candidates follow stored tokens, at most {self._most} in one "
                "step (NPUW_LLM_MAX_GENERATION_TOKEN_LEN)"
            )

    def fill(self, inputs: Mapping[str, Array], tokens: NewTokens, past: int) -> None:
        """Fill the mask of a step; prompts have no mask."""
        if TREE_MASK in inputs:
            fill(inputs[TREE_MASK], tokens.pairs.get(TREE_MASK), past)

    def note(self, step: NewTokens) -> None:
        """Record a step; its tokens are the last stored ones."""
        self.forget()
        self._step = step

    def forget(self) -> None:
        """Forget the step, so that no path can be accepted."""
        self._step, self.result_set = NewTokens.none(), _nothing()

    def rewind(self, tokens: int) -> None:
        """Forget the step: its tokens are no longer the last ones."""
        self.forget()

    def hold(self, tokens: int) -> None:
        """Forget the step."""
        self.forget()

    def variable_states(
        self, talk: Conversation, check_idle: Callable[[], None]
    ) -> Sequence[SamplingState]:
        """Return the variable by which a path is accepted."""
        return [SamplingState(SAMPLING_RESULT, talk, check_idle, self)]

    def settle(self, result: Array) -> bool:
        """Keep only the accepted candidates.

        Args:
            result: i64, in the format of the variable. Zeros have no effect. Candidates beyond the
                result's number are not accepted.

        Returns:
            True if the result is not zeros.

        Raises:
            StateError: the result contradicts the last step, or itself; nothing has changed.
        """
        if not result[0]:
            return False
        accepted = _accepted(result)
        self._check_step(accepted)
        self._keep(np.flatnonzero(accepted))
        self._step = NewTokens.none()
        self.result_set[: HEADER + len(accepted)] = result[: HEADER + len(accepted)]
        return True

    def _check_step(self, accepted: Array) -> None:
        """Check the accepted candidates against the last step.

        Raises:
            StateError: there are no such candidates, or they are not a path: K and V rows depend
                on the candidates that each one attended to.
        """
        count = len(self._step)
        if not count:
            raise StateError(
                f"{SAMPLING_RESULT}: there are no candidates; set the state once after each "
                "inference of candidates, before anything else changes the conversation"
            )
        if len(accepted) > count:
            raise StateError(
                f"{SAMPLING_RESULT} states {len(accepted)} candidates, but the last inference had "
                f"{count}; set it for these"
            )
        stays = np.pad(accepted != 0, (0, count - len(accepted)))
        wrong = stays[:, None] & np.tril(self._seen() != stays)
        if wrong.any():
            one, other = np.argwhere(wrong)[0].tolist()
            raise StateError(
                f"{SAMPLING_RESULT} accepts candidate {one}, which "
                + (
                    f"does not attend to the accepted candidate {other}"
                    if stays[other]
                    else f"attends to the rejected candidate {other}"
                )
                + f"; accept a path, each attending to those before alone ({TREE_MASK})"
            )

    def _seen(self) -> Array:
        """Return the candidates that each one attended to, boolean [candidates, candidates]."""
        count, tree = len(self._step), self._step.pairs.get(TREE_MASK)
        return np.ones((count, count), np.bool_) if tree is None else tree[:, -count:] > ATTENDED

    def _keep(self, kept: Array) -> None:
        """Move the rows of kept candidates together, and forget the others.

        Args:
            kept: indices of the kept candidates in the step, ascending, from 0 on.
        """
        cache = self._cache
        begin, end = cache.rows.tokens - len(self._step), cache.rows.tokens
        solid = int((kept == np.arange(len(kept))).sum())
        moved = kept[solid:] - solid
        behind = cache.between(begin + solid, end) if len(moved) else []
        rows = [each[:, moved] for each in behind]  # copies: source and target overlap
        cache.truncate(begin + solid)
        if rows:
            cache.restore(rows, len(moved))
        self._history.keep(begin, kept)


def _accepted(result: Array) -> Array:
    """Return a flag for each candidate, i64 [candidates]: 1 if accepted, else 0.

    Raises:
        StateError: the numbers contradict one another.
    """
    total, count = int(result[0]), int(result[1])
    room = min(len(result) - HEADER, MOST_CANDIDATES)
    flags = result[HEADER : HEADER + total] if 0 < total <= room else result[:0]
    problem = ""
    if not len(flags):
        problem = f"states {total} candidates, but has room for {room}"
    elif not 0 < count <= total:
        problem = f"states that {count} of {total} candidates were accepted"
    elif not np.isin(flags, (0, 1)).all():
        problem = f"has {flags.tolist()} for candidates, not 1 for each accepted one, else 0"
    elif int(flags.sum()) != count:
        problem = f"states that {count} candidates were accepted, but marks {int(flags.sum())}"
    elif not flags[0]:
        problem = "does not accept the first candidate, the root that all others follow"
    if problem:
        raise StateError(
            f"{SAMPLING_RESULT} {problem}; set it to [candidates, accepted ones, 1 or 0 for each "
            "candidate], including the root; to accept none, rewind by position_ids"
        )
    return flags


def _nothing() -> Array:
    return np.zeros(HEADER + MOST_CANDIDATES, np.int64)


class SamplingState(PartState):
    """Variable npuw_eagle3_sampling_result of a request."""

    _part: Candidates

    @property
    def state(self) -> Tensor:
        """Sampling result since the last inference, i64 [514], zeros if not set; a copy.

        Set it once after an inference of candidates to [candidates, accepted ones, 1 or 0 for each
        candidate]; further elements are optional. The rows of K and V of accepted candidates stay,
        side by side after the rows stored before; the others are dropped. The next inference
        continues after the accepted tokens. Zeros have no effect. (NPUW moves rows when the next
        inference begins; here they move immediately.)

        Raises:
            StateError: the result contradicts the last inference, or itself; nothing has changed.
            RequestBusy: the request is running.
        """
        self._check_idle()
        return Tensor(self._part.result_set.copy())

    @state.setter
    def state(self, tensor: AnyTensor) -> None:
        self._check_idle()
        values = values_of(tensor)
        most = HEADER + MOST_CANDIDATES
        if values.dtype != np.int64 or values.ndim != 1 or not HEADER <= len(values) <= most:
            raise StateError(
                f"state {SAMPLING_RESULT!r} is int64 [{HEADER} to {most}], not {values.dtype} "
                f"{list(values.shape)}"
            )
        if self._part.settle(values):
            self._conversation.continuation.end()

    def reset(self) -> None:
        """Set the variable to zeros; dropped rows do not come back.

        Raises:
            RequestBusy: the request is running.
        """
        self._check_idle()
        self._part.result_set[:] = 0
