"""Statistics of measurements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from genai_layer.tools.bench.measure import Run

_PERCENTILES = {"median": 50, "p90": 90, "p95": 95, "p99": 99}


@dataclass(frozen=True, slots=True)
class PromptStatistics:
    """Statistics of a prompt's runs, each from the name of a statistic to its value.

    Attributes:
        first_token: latency in milliseconds, over runs.
        other_tokens: latency in milliseconds, over all tokens after the first.
        throughput: tokens per second after the first, over runs.
    """

    first_token: Mapping[str, float]
    other_tokens: Mapping[str, float]
    throughput: Mapping[str, float]


def measured(runs: Iterable[Run]) -> dict[int, list[Run]]:
    """Return the runs of each prompt by its number, without those that warm up."""
    found: dict[int, list[Run]] = {}
    for run in runs:
        if run.iteration:
            found.setdefault(run.prompt, []).append(run)
    return found


def statistics(runs: Sequence[Run]) -> PromptStatistics:
    """Return the statistics of one prompt's runs, which are at least one."""
    return PromptStatistics(
        first_token=_of([run.first_token for run in runs]),
        other_tokens=_of([each for run in runs for each in run.other_tokens]),
        throughput=_of([1000 / mean for run in runs if (mean := mean_of(run.other_tokens)) > 0]),
    )


def mean_of(values: Sequence[float]) -> float:
    """Return the mean; 0 without values."""
    return sum(values) / len(values) if values else 0.0


def _of(values: Sequence[float]) -> dict[str, float]:
    """Return the statistics of values by name; none without values."""
    if not values:
        return {}
    ranks = dict(zip(_PERCENTILES, np.percentile(values, [*_PERCENTILES.values()]), strict=True))
    inner = {name: float(value) for name, value in ranks.items()}
    return {"avg": mean_of(values), "min": min(values), **inner, "max": max(values)}
