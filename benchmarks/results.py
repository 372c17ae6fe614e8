"""Measured values, and their arithmetic: medians, ratios per round, shares of the limits."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from model_facts import ModelFacts, kv_element_bytes
from other_work import QUIET
from peer import Peer
from session import Run, Start


@dataclass(frozen=True, slots=True)
class Spread:
    """Median of some values, with the least and the greatest."""

    median: float
    low: float
    high: float

    @staticmethod
    def of(values: Iterable[float]) -> Spread | None:
        """Summarise values; None without values."""
        found = list(values)
        return Spread(statistics.median(found), min(found), max(found)) if found else None

    def scaled(self, factor: float) -> Spread:
        """Convert to another unit."""
        return Spread(self.median * factor, self.low * factor, self.high * factor)


@dataclass(frozen=True, slots=True)
class Scenario:
    """Model with a prompt length and a number of generated tokens."""

    model: str
    prompt: int
    new: int

    @property
    def title(self) -> str:
        """Name in the report."""
        return f"{self.model}, {self.prompt:,} prompt tokens, {self.new} new"


@dataclass(slots=True)
class PeerResult:
    """Results of one peer in one scenario, by round or repetition, as some may fail."""

    peer: Peer
    weight_bytes: float = 0.0
    """Bytes of weights that one token reads."""
    starts: dict[int, Start] = field(default_factory=dict[int, Start])
    """Fresh processes; ours compiles the model."""
    warm_starts: dict[int, Start] = field(default_factory=dict[int, Start])
    """Fresh processes of ours, with a filled cache."""
    runs: dict[int, Run] = field(default_factory=dict[int, Run])
    reloaded: bool = False
    """True if memory did not suffice to keep the peer open between rounds."""
    absent: str = ""
    """Reason for which the peer was skipped or failed."""

    @property
    def version(self) -> str:
        """Version that the peer reports."""
        return next((start.version for start in self.starts.values()), "")

    @property
    def other_work(self) -> float:
        """Largest share of the machine that other processes used during a run."""
        return max((run.other_work for run in self.runs.values()), default=0.0)

    @property
    def disturbed(self) -> bool:
        """True if this share is too large for reliable figures."""
        return self.other_work > QUIET


Quantity = Callable[[PeerResult], dict[int, float]]
"""A compared quantity: values by round."""


def decode_rate(result: PeerResult) -> dict[int, float]:
    """Tokens per second after the first."""
    return {at: run.decode_rate for at, run in result.runs.items()}


def first_token_ms(result: PeerResult) -> dict[int, float]:
    """Milliseconds to the first token."""
    return {at: 1e3 * run.first_seconds for at, run in result.runs.items()}


def load_seconds(result: PeerResult) -> dict[int, float]:
    """Seconds to open the model, without imports; ours compiles it."""
    return {at: start.load_seconds for at, start in result.starts.items()}


def warm_load_seconds(result: PeerResult) -> dict[int, float]:
    """Seconds to open the model; ours from a filled cache, peers as always."""
    starts = result.warm_starts if result.peer.is_ours else result.starts
    return {at: start.load_seconds for at, start in starts.items()}


def peak_mb(result: PeerResult) -> dict[int, float]:
    """Peak resident memory of a fresh process that opens the model and reads a prompt, MB."""
    return {at: start.peak_rss_mb for at, start in result.starts.items()}


def warm_peak_mb(result: PeerResult) -> dict[int, float]:
    """Peak resident memory like ``peak_mb``; ours from a filled cache."""
    starts = result.warm_starts if result.peer.is_ours else result.starts
    return {at: start.peak_rss_mb for at, start in starts.items()}


def ratio(quantity: Quantity, ours: PeerResult, other: PeerResult) -> Spread | None:
    """Return ours ÷ the other's by round; load on the machine slows both within a round."""
    mine, theirs = quantity(ours), quantity(other)
    return Spread.of(mine[at] / theirs[at] for at in mine.keys() & theirs.keys())


@dataclass(slots=True)
class ScenarioResult:
    """All peers of a scenario, in order."""

    scenario: Scenario
    facts: ModelFacts
    peers: list[PeerResult] = field(default_factory=list[PeerResult])

    def bytes_per_token(self, result: PeerResult) -> float:
        """Return a decode step's reads: weights, and K and V halfway through the answer."""
        tokens = self.scenario.prompt + self.scenario.new // 2
        cache = self.facts.kv_values(tokens) * kv_element_bytes(result.peer)
        return result.weight_bytes + cache

    def bandwidth_share(self, result: PeerResult, limits: dict[str, float]) -> Spread | None:
        """Return the bandwidth of decoding as a share of the machine's limit."""
        bandwidth = max((rate for name, rate in limits.items() if name[:4] == "read"), default=0.0)
        rates = Spread.of(decode_rate(result).values())
        if rates is None or not bandwidth:
            return None
        return rates.scaled(self.bytes_per_token(result) / bandwidth)

    def prefill_rate(self, result: PeerResult) -> float | None:
        """Return the operations per second until the first token, of the median run."""
        first = Spread.of(first_token_ms(result).values())
        return (
            self.facts.prefill_flops(self.scenario.prompt) / first.median * 1e3 if first else None
        )

    def gemm_share(self, result: PeerResult, limits: dict[str, float]) -> float | None:
        """Return the prefill's rate as a share of the machine's fastest matmul."""
        peak = max((rate for name, rate in limits.items() if name[:4] == "gemm"), default=0.0)
        rate = self.prefill_rate(result)
        return rate / peak if rate is not None and peak else None
