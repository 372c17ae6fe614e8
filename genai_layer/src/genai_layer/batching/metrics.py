"""Numbers of requests, and how full their caches are.

Source: openvino_genai.PipelineMetrics, docs/reference/genai.md#continuous-batching. Ours: the cache
usage is that of the fullest request, because each has a cache of its own.
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
    """Percentage of the fullest request's cache that was used; 100 for caches that grow."""
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
        self._usages = deque[float](maxlen=_WINDOW)
        self._highest = 0.0
        self.last = PipelineMetrics()

    def reset(self) -> None:
        """Forget the steps before."""
        self._usages.clear()
        self._highest = 0.0

    def note(self, requests: int, scheduled: int, usage: float) -> None:
        """Note a step.

        Args:
            requests: number of requests that wait or run.
            scheduled: number of requests that run.
            usage: percentage of the fullest cache that is used.
        """
        self._usages.append(usage)
        self._highest = max(self._highest, usage)
        average = sum(self._usages) / len(self._usages)
        self.last = PipelineMetrics(requests, scheduled, usage, self._highest, average)
