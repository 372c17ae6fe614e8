"""Numbers of requests, and how many places they used.

Source: openvino_genai.PipelineMetrics, docs/reference/genai.md#continuous-batching. Ours: the cache
usage is that of places, because a place has the memory of a whole conversation.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

_WINDOW = 1000
"""Steps of the running average."""


@dataclass(frozen=True, slots=True)
class PipelineMetrics:
    """Numbers of the last step, and of the steps before."""

    requests: int = 0
    """Requests that waited or ran."""
    scheduled_requests: int = 0
    """Requests that ran."""
    cache_usage: float = 0.0
    """Percentage of the places that were taken."""
    max_cache_usage: float = 0.0
    """Largest cache_usage since the last call of ``generate``."""
    avg_cache_usage: float = 0.0
    """Mean of the last 1000 cache_usage since the last call of ``generate``."""
    cache_size_in_bytes: int = 0
    """Always 0: runtimes do not report it."""
    kv_cache_size_in_bytes: int = 0
    """Always 0: runtimes do not report it."""
    la_peak_pool_blocks: int = 0
    """Always 0: there are no blocks of linear attention."""


class Usage:
    """Metrics of the last step."""

    def __init__(self) -> None:
        self._shares = deque[float](maxlen=_WINDOW)
        self._highest = 0.0
        self.last = PipelineMetrics()

    def reset(self) -> None:
        """Forget the steps before."""
        self._shares.clear()
        self._highest = 0.0

    def note(self, requests: int, scheduled: int, share: float) -> None:
        """Note a step.

        Args:
            requests: number of requests that wait or run.
            scheduled: number of requests that run.
            share: share of the places that are taken, from 0 to 1.
        """
        usage = 100 * share
        self._shares.append(usage)
        self._highest = max(self._highest, usage)
        average = sum(self._shares) / len(self._shares)
        self.last = PipelineMetrics(requests, scheduled, usage, self._highest, average)
