"""Payoff of candidates: whether steps with candidates take less time than plain ones.

A step with candidates runs a longer program, and before it often a draft model. Where few of them
are accepted, plain steps of one token are faster. The times of both are measured: the loss is the
time of steps with candidates less that of plain steps for the same tokens, and candidates are
drafted while the loss is a small share of the time. A loss is forgotten slowly; so drafting is
tried again, the later the more a try costs.
"""

from __future__ import annotations

import statistics
from collections import deque

_SHARE = 0.03
"""Share of the time that may be lost."""
_FORGOTTEN = 512
"""Plain steps in whose time times and losses are forgotten."""
_ENOUGH = 3
"""Plain steps whose time is known before the first candidates."""


class AlwaysPays:
    """Payoff of candidates that are drafted for each step."""

    def allows(self, reads: int, likely: bool = False) -> bool:
        """Return whether candidates may be drafted.

        Args:
            reads: inferences of a draft model before the step.
            likely: whether the candidates are likely to be accepted.
        """
        del reads, likely
        return True

    def note_plain(self, took: float) -> None:
        """Note the time of a step of one token."""

    def note_drafted(self, took: float, tokens: int, reads: int, drafting: float) -> None:
        """Note the time of a step with candidates.

        Args:
            took: time of the step.
            tokens: tokens that it resulted in.
            reads: inferences of the draft model before it.
            drafting: time of drafting.
        """

    def note_again(self, took: float) -> None:
        """Note the time of reading tokens again, which candidates made necessary."""


class Payoff(AlwaysPays):
    """Payoff by measured times, in any unit; generations of one pipeline share it."""

    def __init__(self) -> None:
        self._plain: deque[float] = deque(maxlen=9)
        """Times of the last plain steps."""
        self._time = 0.0
        self._lost = 0.0
        self._risk: float | None = None
        """Loss of the last step that did not pay, without drafting; None before candidates."""
        self._read = 0.0
        """Time of an inference of the draft model."""
        self._paid = False
        """True if the last step with candidates paid."""

    def allows(self, reads: int, likely: bool = False) -> bool:
        """Return whether the loss stays small even if no candidate is accepted.

        Candidates that are likely to be accepted, as after a step that paid, are no risk.
        """
        if len(self._plain) < _ENOUGH:
            return False
        if self._risk is None:
            return True
        risk = 0.0 if self._paid or likely else self._risk + self._read * reads
        return self._lost + risk <= _SHARE * self._time

    def note_plain(self, took: float) -> None:
        """Note the time of a step of one token."""
        self._plain.append(took)
        self._pass(took)

    def note_drafted(self, took: float, tokens: int, reads: int, drafting: float) -> None:
        """Note the time of a step with candidates."""
        loss = took + drafting - tokens * self._step
        self._paid = loss <= 0
        self._risk = self._risk or 0.0 if self._paid else max(loss - drafting, 0.0)
        self._read = drafting / reads if reads else 0.0
        self._lose(loss, took + drafting)

    def note_again(self, took: float) -> None:
        """Note the time of reading tokens again."""
        self._paid = False
        self._risk = (self._risk or 0.0) + took
        self._lose(took, took)

    @property
    def _step(self) -> float:
        return statistics.median(self._plain)

    def _lose(self, loss: float, took: float) -> None:
        self._lost += loss
        self._pass(took)

    def _pass(self, took: float) -> None:
        kept = max(1 - took / (_FORGOTTEN * self._step), 0.0)
        self._time = self._time * kept + took
        self._lost = max(self._lost * kept, -_SHARE * self._time)
