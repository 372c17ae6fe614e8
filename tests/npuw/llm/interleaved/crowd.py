"""Conversations that share a device by continuous batching, with their expected logits."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass

import numpy as np

from interleaved.reference import Limits, Reference, Refused
from interleaved.speaker import Judge
from npuw_layer.batching import BatchedRequest, ContinuousBatching
from npuw_layer.errors import DeviceError


@dataclass(slots=True)
class Member:
    """One conversation, and its submitted tokens without logits so far."""

    request: BatchedRequest
    reference: Reference
    ids: Sequence[int] = ()
    keep: int = 0
    answer: Future[np.ndarray] | None = None


class Crowd:
    """All conversations of one engine.

    Args:
        engine: the engine that runs the conversations.
        limits: limits of its model.
        judge: comparison of logits.
    """

    def __init__(self, engine: ContinuousBatching, limits: Limits, judge: Judge) -> None:
        self._engine = engine
        self._limits = limits
        self._judge = judge
        self.members: list[Member] = []

    @property
    def waits(self) -> bool:
        """True if a conversation waits for logits."""
        return any(member.answer is not None for member in self.members)

    def join(self) -> None:
        """Begin a conversation."""
        self.members.append(Member(self._engine.open(), Reference(self._limits)))

    def leave(self, member: Member) -> None:
        """End a conversation, even one that waits."""
        member.request.close()
        self.members.remove(member)

    def submit(self, member: Member, ids: Sequence[int], keep: int) -> None:
        """Submit tokens, unless the conversation still waits for logits."""
        if member.answer is None:
            member.ids, member.keep = ids, min(keep, member.request.stored)
            member.answer = member.request.submit(ids, member.keep)

    def cancel(self, member: Member) -> None:
        """Cancel the submitted tokens, unless they are being read."""
        if member.answer is not None and member.answer.cancel():
            member.answer = None

    def step(self) -> None:
        """Run one step, and compare its logits."""
        if not self._engine.wait(0):
            return
        self._engine.step()
        for member in [*self.members]:
            if member.answer is not None and member.answer.done():
                answer, member.answer = member.answer, None
                self._hear(member, answer)

    def run(self) -> None:
        """Run steps until all conversations with a slot have received logits."""
        for _ in range(500):
            if not self._engine.wait(0):
                return
            self.step()
        raise AssertionError("a conversation is never served")

    def close(self) -> None:
        """Close all conversations."""
        self._engine.close()

    def _hear(self, member: Member, answer: Future[np.ndarray]) -> None:
        error, pieces = answer.exception(), _pieces(member, self._limits)
        if isinstance(error, DeviceError):
            self._lost(member, pieces)
            return
        try:
            for ids, keep in pieces:
                member.reference.say(ids, keep)
        except Refused as refused:
            refused.check(error)
            _can_go_on(member)
            return
        assert error is None, error
        assert member.request.stored == member.reference.said
        self._judge.compare(member.reference, [answer.result(0)])

    def _lost(self, member: Member, pieces: Sequence[tuple[list[int], int]]) -> None:
        """Continue with the tokens that remain, as reported by the request."""
        place = self._engine._conversations[member.request].place
        if len(pieces) > 1 or place is None:  # some may be read, others dropped
            self.leave(member)
            return
        member.reference.interrupted(*pieces[0], 0, place.history.caller_count)
        assert member.reference.said == place.history.caller_count
        _can_go_on(member)


def _can_go_on(member: Member) -> None:
    """Check that the request has as many stored tokens as it reports."""
    reference = member.reference.copy(member.reference.limits)
    assert member.request.stored <= reference.said
    try:
        reference.go_back(member.request.stored)
    except Refused:
        raise AssertionError("no token can follow the stored ones") from None


def _pieces(member: Member, limits: Limits) -> list[tuple[list[int], int]]:
    """Split submitted tokens as they are read: without prefill one by one, until a step fits."""
    ids, keep = [*member.ids], member.keep
    single = 0 if not keep or limits.resumes else max(len(ids) - limits.step, 0)
    pieces = [([token], keep + number) for number, token in enumerate(ids[:single])]
    return [*pieces, (ids[single:], keep + single)]
