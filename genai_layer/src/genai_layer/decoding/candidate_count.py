"""Number of candidates of each step."""

from __future__ import annotations


class CandidateCount:
    """Number of candidates to draft next.

    Args:
        first: the first number.
        most: the largest number.
        adapts: whether the number follows the accepted ones: it grows by 2 if all were, else it
            shrinks by 1 (docs/reference/genai.md#speculative-decoding).
    """

    def __init__(self, first: int, most: int, adapts: bool = False) -> None:
        self.value = min(first, most)
        """Candidates of the next step, 0 only if no step may have any."""
        self.drafted = 0
        """Candidates so far."""
        self.accepted = 0
        """Accepted candidates so far."""
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
