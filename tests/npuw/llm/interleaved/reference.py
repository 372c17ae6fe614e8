"""Reference state of a conversation: the rules of NPUW's llm_infer_request, on lists."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace

import numpy as np

from interleaved.stateful import Hidden, Rows, Stateful
from npuw_layer.errors import (
    CapacityError,
    NpuwError,
    PromptTooLong,
    StateError,
    TensorError,
    TooManyTokens,
)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of conversations, and the policy for a full cache."""

    prompt: int
    total: int
    step: int
    """Tokens of a generate step."""
    policy: str
    """NPUW_LLM_ON_FULL."""
    sinks: int
    resumes: bool
    """True if a prompt may follow stored tokens."""

    @property
    def room(self) -> int:
        """Maximum number of stored tokens before a step."""
        return self.total - self.step

    @property
    def longest(self) -> int:
        """Maximum tokens that prefill reads; in a sliding cache they do not replace one another."""
        return min(self.prompt, self.room) if self.policy == "SLIDE" else self.prompt


class Refused(Exception):  # it is expected
    """Expected error of the request."""

    def __init__(self, error: type[NpuwError]) -> None:
        super().__init__(error.__name__)
        self.error = error

    def check(self, raised: BaseException | None) -> None:
        """Check that the request raised the error."""
        assert type(raised) is self.error, f"{raised!r} instead of {self.error.__name__}"


@dataclass(slots=True)
class Reference:
    """Expected state of a conversation, in the caller's count.

    Attributes:
        limits: limits of the model.
        first: position of the first token.
        ids: the kept tokens, without those dropped by TRUNCATE.
        shown: the caller's mask, over dropped tokens too.
        hidden: for each kept token, the earlier tokens that it does not attend to.
        held: kept tokens whose rows are in the cache; SLIDE replaces rows.
        sinks, dropped: number of tokens before the dropped ones, and of dropped tokens.
        foreign: number of first tokens whose rows were set from outside.
    """

    limits: Limits
    first: int = 0
    ids: list[int] = field(default_factory=list[int])
    shown: list[bool] = field(default_factory=list[bool])
    hidden: list[Hidden] = field(default_factory=list[Hidden])
    held: list[int] = field(default_factory=list[int])
    sinks: int = 0
    dropped: int = 0
    foreign: int = 0

    @property
    def said(self) -> int:
        """Number of tokens in the caller's count."""
        return len(self.ids) + self.dropped

    @property
    def plain(self) -> bool:
        """True if no row was replaced."""
        return len(self.held) == len(self.ids)

    def copy(self, limits: Limits) -> Reference:
        """Copy the conversation for a model that may have other limits."""
        other = replace(deepcopy(self), limits=limits)
        other._evict()
        return other

    def reset(self, first: int = 0) -> None:
        """Start a new conversation."""
        self.first = first
        self._forget()

    def drops(self, ids: Sequence[int], keep: int) -> bool:
        """Return whether reading tokens drops history, so that the rest is read again."""
        other = deepcopy(self)
        try:
            other.begin(ids, keep)
        except Refused:
            return False
        return other.dropped > 0 and (other.dropped, other.sinks) != (self.dropped, self.sinks)

    def say(self, ids: Sequence[int], keep: int, padding: int = 0) -> None:
        """Read tokens after the first ``keep``.

        Raises:
            Refused: the request must raise this error, and then has the state of this object.
        """
        new = self.begin(ids, keep, padding)
        self.append(new)

    def begin(self, ids: Sequence[int], keep: int, padding: int = 0) -> list[int]:
        """Rewind and make room; return the tokens to read."""
        new = [*ids]
        if len(new) > 1 and keep == 0:
            return self._prompt(new, padding)
        self._check_room(self._kept_of(keep), len(new))
        self.go_back(keep)
        if len(new) <= self.limits.step:
            self._make_room_for_step()
        else:
            self._make_room_for_prompt(len(new))
        self.shown += [True] * len(new)
        return new

    def go_back(self, keep: int) -> None:
        """Forget all but the first tokens."""
        kept = self._kept_of(keep)
        if kept and kept - 1 not in self.held:
            raise Refused(TensorError)
        self._keep_first(kept)
        if keep <= self.sinks:
            self.sinks = self.dropped = 0
        del self.shown[keep:]

    def append(self, new: Sequence[int]) -> None:
        """Store rows of tokens; they replace the oldest ones if rows slide."""
        step = self.limits.step
        room = max(self.limits.longest - len(self.ids), 0) if self.plain else 0
        if len(new) <= step:
            room = 0
        for piece in [new[:room], *(new[at : at + step] for at in range(room, len(new), step))]:
            begin = len(self.ids)
            self.hidden += [frozenset(range(begin)).difference(self.held)] * len(piece)
            self.ids += piece
            self.held += range(begin, len(self.ids))
            self._evict()

    def interrupted(self, ids: Sequence[int], keep: int, padding: int, said: int) -> None:
        """Read tokens until an interruption after ``said`` tokens, as reported by the request."""
        new = self.begin(ids, keep, padding)
        if said >= self.said and said > self.sinks:
            self.append(new[: said - self.said])
            assert said == self.said, "more tokens were read than passed"
        else:  # interrupted while kept tokens were read again
            kept = said if said <= self.sinks else said - self.dropped
            if not self.ids:  # no token of a shortened prompt was read
                self.append(new)
            assert 0 <= kept <= len(self.ids)
            self._keep_first(kept)
            if kept <= self.sinks:
                self.sinks = self.dropped = 0
        del self.shown[said:]

    def mask(self) -> np.ndarray:
        """Return the caller's mask, i64 [count]."""
        return np.array(self.shown, np.int64)

    def kept_shown(self) -> list[bool]:
        """Return the mask over kept tokens."""
        return self.shown[: self.sinks] + self.shown[self.sinks + self.dropped :]

    def logits(self, stateful: Stateful) -> tuple[np.ndarray, Rows]:
        """Return the logits and rows of all kept tokens."""
        return stateful.read(self.ids, self.kept_shown(), self.hidden, self.first)

    def _prompt(self, new: list[int], padding: int) -> list[int]:
        """Start a new conversation with a prompt."""
        limits = self.limits
        if len(new) > limits.longest and limits.policy == "ERROR":
            raise Refused(PromptTooLong)
        self._forget()
        self.shown = [index >= padding for index in range(len(new))]
        if len(new) <= limits.prompt or limits.policy == "SLIDE":
            return new
        self.sinks, self.dropped = limits.sinks, len(new) - limits.prompt
        return new[: self.sinks] + new[self.sinks + self.dropped :]

    def _kept_of(self, keep: int) -> int:
        """Return the number of kept tokens among the first ``keep``; reject dropped positions."""
        if keep <= self.sinks:
            return keep
        if keep < self.sinks + self.dropped:
            raise Refused(TensorError)
        return keep - self.dropped

    def _check_room(self, kept: int, count: int) -> None:
        """Reject tokens that are too many before anything changes."""
        limits = self.limits
        if count > limits.step:
            if not limits.resumes:
                raise Refused(TooManyTokens)
            droppable = limits.policy == "TRUNCATE" and limits.sinks + count < limits.prompt
            if kept + count > limits.longest and not droppable and limits.policy != "SLIDE":
                raise Refused(PromptTooLong)
        elif limits.policy == "ERROR" and kept >= limits.room:
            raise Refused(CapacityError)

    def _make_room_for_step(self) -> None:
        if len(self.ids) >= self.limits.room and self.limits.policy == "TRUNCATE":
            self._truncate(self.limits.room)

    def _make_room_for_prompt(self, count: int) -> None:
        if self.limits.policy == "TRUNCATE" and not self._fits(count):
            self._truncate(self.limits.prompt - count)

    def _fits(self, count: int) -> bool:
        """Return whether prefill has room for more tokens; if rows slide, steps read others."""
        return self.plain and len(self.ids) + count <= self.limits.longest

    def _truncate(self, room: int) -> None:
        """Drop the older part; the rest becomes a new conversation."""
        if self.foreign:
            raise Refused(StateError)
        limits = self.limits
        recent = min(limits.prompt // 2, room) - limits.sinks
        sinks = min(limits.sinks, len(self.ids) - recent)
        kept = self.ids[:sinks] + self.ids[len(self.ids) - recent :]
        self.dropped += len(self.ids) - len(kept)
        self.sinks = sinks
        self.ids, self.hidden, self.held = [], [], []
        self.append(kept)

    def _evict(self) -> None:
        """Replace rows of the oldest tokens that are not sinks."""
        if self.limits.policy != "SLIDE":
            return
        while len(self.held) > self.limits.room:
            self.held.remove(next(each for each in self.held if each >= self.limits.sinks))

    def _keep_first(self, kept: int) -> None:
        del self.ids[kept:], self.hidden[kept:]
        self.held = [each for each in self.held if each < kept]
        self.foreign = min(self.foreign, kept)

    def _forget(self) -> None:
        self._keep_first(0)
        self.shown = []
        self.sinks = self.dropped = 0
