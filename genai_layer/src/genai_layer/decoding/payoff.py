"""Payoff of candidates: whether steps with candidates take less time than plain ones.

A step with candidates runs a longer program, and before it often a draft model. Where few of them
are accepted, plain steps of one token are faster. The times of both are measured. Time that may be
lost is saved, a small share of the time that passes, but not more than about one try costs: so
tries are never close together, and even a short text loses little. What candidates lose is paid
from the savings, and what they gain is added until the text ends.
"""

from __future__ import annotations

import statistics
from collections import deque

_SHARE = 0.025
"""Share of the time that is saved."""
_SAVED = 2
"""Most plain steps whose time is saved from that share; enough for a try of any cost."""
_OWED = 16
"""Most plain steps whose time is owed, so that no loss ends candidates for good."""
_OFTEN = 1 / 32
"""Share of close choices from which a text is read again before the next one."""
_RECENT = 16
"""Choices by which that share is estimated."""
_ENOUGH = 3
"""Plain steps whose time is known before the first candidates."""


class AlwaysPays:
    """Payoff of candidates that are drafted for each step."""

    def begin(self) -> None:
        """Begin a text."""

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

    def note_choice(self, close: bool) -> None:
        """Note whether a choice after candidates was close, so that tokens are read again."""

    @property
    def expects_close(self) -> bool:
        """True if such a choice is likely to follow soon."""
        return False


class Payoff(AlwaysPays):
    """Payoff by measured times, in any unit; generations of one pipeline share it."""

    def __init__(self) -> None:
        self._plain: deque[float] = deque(maxlen=9)
        """Times of the last plain steps."""
        self._saved = 0.0
        """Time that may be lost; negative if more than the savings was lost."""
        self._risk: float | None = None
        """Loss of the last step that did not pay, without drafting; None before candidates."""
        self._read = 0.0
        """Time of an inference of the draft model."""
        self._paid = False
        """True if the last step with candidates paid."""
        self._close = 2 * _OFTEN
        """Share of close choices, at first assumed to be large."""

    def begin(self) -> None:
        """Begin a text, which may not lose what another one gained."""
        if self._plain:
            self._saved = min(self._saved, _SAVED * self._step)

    def allows(self, reads: int, likely: bool = False) -> bool:
        """Return whether the savings cover the loss if no candidate is accepted.

        Candidates that are likely to be accepted, as after a step that paid, are no risk.
        """
        if len(self._plain) < _ENOUGH:
            return False
        if self._risk is None:
            return True
        risk = 0.0 if self._paid or likely else self._risk + self._read * reads
        return min(risk, _SAVED * self._step) <= self._saved

    def note_plain(self, took: float) -> None:
        """Note the time of a step of one token."""
        self._plain.append(took)
        self._save(took)

    def note_drafted(self, took: float, tokens: int, reads: int, drafting: float) -> None:
        """Note the time of a step with candidates."""
        loss = took + drafting - tokens * self._step
        self._paid = loss <= 0
        self._risk = self._risk or 0.0 if self._paid else max(loss - drafting, 0.0)
        self._read = drafting / reads if reads else 0.0
        self._lose(loss)
        self._save(took + drafting)

    def note_again(self, took: float) -> None:
        """Note the time of reading tokens again."""
        self._paid = False
        self._risk = (self._risk or 0.0) + took
        self._lose(took)

    def note_choice(self, close: bool) -> None:
        """Note whether a choice after candidates was close."""
        self._close += (close - self._close) / _RECENT

    @property
    def expects_close(self) -> bool:
        """True if a close choice is likely to follow soon."""
        return self._close > _OFTEN

    @property
    def _step(self) -> float:
        return statistics.median(self._plain)

    def _lose(self, loss: float) -> None:
        self._saved = max(self._saved - loss, -_OWED * self._step)

    def _save(self, took: float) -> None:
        most = _SAVED * self._step
        self._saved = max(self._saved, min(self._saved + _SHARE * took, most))
