"""Parts of the server that all models share."""

from __future__ import annotations

from dataclasses import dataclass

from genai_layer.serve.engine.activity import Activity
from genai_layer.serve.limits import Limits
from genai_layer.serve.metrics import Metrics


@dataclass(frozen=True, slots=True)
class Commons:
    """Limits of requests, metrics, and the work in progress."""

    limits: Limits
    metrics: Metrics
    activity: Activity
