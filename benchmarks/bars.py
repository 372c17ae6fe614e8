"""Performance targets (bars) of this project, and verdicts on a benchmark's results.

Bars are judged on this stack's default configuration. Bars of speed hold for two processors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from peer import every_peer
from results import (
    PeerResult,
    Quantity,
    ScenarioResult,
    Spread,
    decode_rate,
    first_token_ms,
    peak_mb,
    ratio,
    warm_load_seconds,
    warm_peak_mb,
)

LONG_CONTEXT = 8192


@dataclass(frozen=True, slots=True)
class Bar:
    """Limit of a ratio to a peer of the same precision.

    Args:
        title: name of the compared quantity.
        quantity: the quantity, of ours and of the peer.
        kind: kind of the peer.
        limit: limits by model, or by model and our precision.
        at_least: True if more is better.
    """

    title: str
    quantity: Quantity
    kind: str
    limit: dict[str | tuple[str, str], float]
    at_least: bool

    def limit_for(self, model: str, precision: str) -> float | None:
        """Return the limit for a model in a precision, or None."""
        return self.limit.get((model, precision), self.limit.get(model))


_LARGE = ("llama-135m", "llama-1b")


def _each(limit: float, *models: str) -> dict[str | tuple[str, str], float]:
    return dict.fromkeys(models, limit)


_DECODE_LLAMA_CPP: dict[str | tuple[str, str], float] = {
    ("llama-135m", "int8"): 1.3,
    ("llama-135m", "int4"): 1.3,
    ("llama-1b", "int8"): 1.0,
    ("llama-1b", "int4"): 1.3,
}
_DECODE_OPENVINO: dict[str | tuple[str, str], float] = {
    "llama-8m": 1.0,
    **{(model, precision): 2.0 for model in _LARGE for precision in ("int8", "int4")},
}

BARS = (
    Bar("decode", decode_rate, "openvino", _DECODE_OPENVINO, True),
    Bar("decode", decode_rate, "llama.cpp", _DECODE_LLAMA_CPP, True),
    Bar("decode", decode_rate, "npuw", _each(4.0, *_LARGE), True),
    Bar("time to first token", first_token_ms, "openvino", _each(1.0, *_LARGE), False),
    Bar("warm start", warm_load_seconds, "openvino", _each(1.0, *_LARGE), False),
    Bar("peak memory", peak_mb, "openvino", _each(1.0, *_LARGE), False),
    Bar("peak memory, warm start", warm_peak_mb, "openvino", _each(1.0, *_LARGE), False),
)

LONG_BARS = (Bar("decode", decode_rate, "openvino", _each(1.5, "llama-135m"), True),)

BANDWIDTH_SHARES = {"llama-135m": 0.6, "llama-1b": 0.8}


class Verdict(Enum):
    """Verdict on a bar."""

    MET = "met"
    MISSED = "missed"
    NOT_MEASURED = "not measured"

    @staticmethod
    def of(found: Spread | None, limit: float, at_least: bool) -> Verdict:
        """Return the verdict on the median."""
        if found is None:
            return Verdict.NOT_MEASURED
        met = found.median >= limit if at_least else found.median <= limit
        return Verdict.MET if met else Verdict.MISSED


@dataclass(frozen=True, slots=True)
class Judgement:
    """Result of one bar for one row of ours."""

    title: str
    ours: str
    other: str
    limit: float
    at_least: bool
    found: Spread | None
    disturbed: bool
    """True if other processes used much of the machine during a run of either."""

    @property
    def verdict(self) -> Verdict:
        """Verdict on the bar."""
        return Verdict.of(self.found, self.limit, self.at_least)


def judge(result: ScenarioResult, limits: dict[str, float]) -> list[Judgement]:
    """Judge a scenario by the bars that apply to it; missing peers are not measured."""
    is_long = result.scenario.prompt >= LONG_CONTEXT
    judgements: list[Judgement] = []
    for bar in LONG_BARS if is_long else BARS:
        for ours in _by_default(result, "ours"):
            judgements += _ratios(result, ours, bar)
    if not is_long:
        for ours in _by_default(result, "ours"):
            judgements += _bandwidth(result, ours, limits)
    return judgements


def _ratios(result: ScenarioResult, ours: PeerResult, bar: Bar) -> Iterator[Judgement]:
    limit = bar.limit_for(result.scenario.model, ours.peer.precision)
    if limit is None:
        return
    others = (o for o in _by_default(result, bar.kind) if o.peer.answers_to(ours.peer))
    for other in others:
        found = ratio(bar.quantity, ours, other)
        names = bar.title, ours.peer.title, other.peer.title
        disturbed = ours.disturbed or other.disturbed
        yield Judgement(*names, limit, bar.at_least, found, disturbed)


def _by_default(result: ScenarioResult, kind: str) -> list[PeerResult]:
    """Return the results of a kind of peer in its default configuration, in each precision."""
    measured = {peer.peer.name: peer for peer in result.peers}
    peers = (peer for peer in every_peer() if peer.kind == kind)
    return [measured.get(peer.name) or PeerResult(peer) for peer in peers]


def _bandwidth(
    result: ScenarioResult, ours: PeerResult, limits: dict[str, float]
) -> Iterator[Judgement]:
    limit = BANDWIDTH_SHARES.get(result.scenario.model)
    if limit is not None:
        found = result.bandwidth_share(ours, limits)
        names = "decode", ours.peer.title, "measured read bandwidth"
        yield Judgement(*names, limit, True, found, ours.disturbed)
