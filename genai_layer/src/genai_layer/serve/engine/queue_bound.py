"""Bound of a model's queue."""

from __future__ import annotations

from genai_layer.serve.engine.rate import CompletionRate
from genai_layer.serve.errors import QueueFull


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
