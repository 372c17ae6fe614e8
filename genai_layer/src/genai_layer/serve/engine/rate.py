"""Rate at which a model completes requests, for Retry-After; bound of a model's queue."""

from __future__ import annotations

import math
import time
from collections import deque

from genai_layer.serve.errors import QueueFull

_WINDOW = 32
"""Completed requests of which the rate is the mean."""
_RECENT = 60.0
"""Seconds after which a completed request no longer counts."""
_UNKNOWN = 5
"""Seconds to wait as long as there is no rate."""
_LONGEST = 600


class CompletionRate:
    """Times of the last completed requests."""

    def __init__(self) -> None:
        self._times = deque[float](maxlen=_WINDOW)

    def note(self) -> None:
        """Note that a request was completed."""
        self._times.append(time.monotonic())

    def seconds_for(self, requests: int) -> int:
        """Return the seconds in which so many requests will be completed, from 1 to 600."""
        now = time.monotonic()
        recent = [one for one in self._times if now - one < _RECENT]
        if not recent:
            return _UNKNOWN
        seconds = requests * (now - recent[0]) / len(recent)
        return min(max(math.ceil(seconds), 1), _LONGEST)


def check_queue(name: str, waiting: int, limit: int, rate: CompletionRate) -> None:
    """Reject a request if the queue is full.

    Args:
        name: name of the model.
        waiting: requests that wait.
        limit: maximum number of these.
        rate: the model's, from which the time to wait follows.

    Raises:
        QueueFull: the queue is full; its header Retry-After has the seconds to wait.
    """
    if waiting < limit:
        return
    seconds = str(rate.seconds_for(waiting))
    raise QueueFull(
        f"{name}: {waiting} requests wait, as many as the queue holds; try again in {seconds} s",
        headers={"Retry-After": seconds},
    )
