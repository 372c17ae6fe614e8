"""Times of a generation, measured for its metrics."""

from __future__ import annotations

import time

from genai_layer.perf_metrics import RawPerfMetrics


class Stopwatch:
    """Time since its creation, in microseconds."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    def microseconds(self) -> float:
        """Return the elapsed time."""
        return (time.perf_counter() - self._began) * 1e6


class TokenTimes:
    """Times at which a generation's tokens were ready.

    Args:
        raw: collects the measurements.
        began: started when the caller began, for the time to the first token.
    """

    def __init__(self, raw: RawPerfMetrics, began: Stopwatch) -> None:
        self._raw = raw
        self._began = began
        self._last: float | None = None

    @staticmethod
    def now() -> float:
        """Return the time, in milliseconds."""
        return time.perf_counter() * 1e3

    def note(self, tokens: int = 1, ready: float | None = None) -> None:
        """Note that tokens are ready, which were computed together.

        Args:
            tokens: their number.
            ready: time at which they were ready; None for now.
        """
        now = self.now() if ready is None else ready
        if self._last is None:
            self._raw.m_times_to_first_token.append(self._began.microseconds())
        else:
            each = (now - self._last) * 1e3 / tokens
            self._raw.m_durations.extend([each] * tokens)
        self._last = now
        self._raw.m_new_token_times.append(now)
        self._raw.m_batch_sizes.append(tokens)
