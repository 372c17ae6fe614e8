"""What was measured, and the arithmetic on it: medians, ratios per round, shares of the limits."""

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
    """The median of some values, with the least and the greatest."""

    median: float
    low: float
    high: float

    @staticmethod
    def of(values: Iterable[float]) -> Spread | None:
        """Summarise; None if there is nothing."""
        found = list(values)
        return Spread(statistics.median(found), min(found), max(found)) if found else None

    def scaled(self, factor: float) -> Spread:
        """In another unit."""
        return Spread(self.median * factor, self.low * factor, self.high * factor)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A model, and how much it is given and asked."""

    model: str
    prompt: int
    new: int

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.model}, {self.prompt:,} prompt tokens, {self.new} new"


@dataclass(slots=True)
class PeerResult:
    """What one peer did in one scenario; rounds and repetitions are keys, as some may fail."""

    peer: Peer
    weight_bytes: float = 0.0
    """That one token reads."""
    starts: dict[int, Start] = field(default_factory=dict[int, Start])
    """Fresh processes; ours compiles in them."""
    warm_starts: dict[int, Start] = field(default_factory=dict[int, Start])
    """Fresh processes of ours that find everything compiled."""
    runs: dict[int, Run] = field(default_factory=dict[int, Run])
    reloaded: bool = False
    """Memory did not suffice to keep it open from round to round."""
    absent: str = ""
    """Why it was skipped or given up."""

    @property
    def version(self) -> str:
        """As it says itself."""
        return next((start.version for start in self.starts.values()), "")

    @property
    def other_work(self) -> float:
        """The largest share of the machine that others used during a run."""
        return max((run.other_work for run in self.runs.values()), default=0.0)

    @property
    def disturbed(self) -> bool:
        """Whether that was too much to trust its figures."""
        return self.other_work > QUIET


Quantity = Callable[[PeerResult], dict[int, float]]
"""What is compared: values by round."""


def decode_rate(result: PeerResult) -> dict[int, float]:
    """Tokens per second after the first."""
    return {at: run.decode_rate for at, run in result.runs.items()}


def first_token_ms(result: PeerResult) -> dict[int, float]:
    """Milliseconds to the first token."""
    return {at: 1e3 * run.first_seconds for at, run in result.runs.items()}


def load_seconds(result: PeerResult) -> dict[int, float]:
    """Seconds to open the model, imports left out; ours compiles it."""
    return {at: start.load_seconds for at, start in result.starts.items()}


def warm_load_seconds(result: PeerResult) -> dict[int, float]:
    """Seconds to open the model; ours finds it compiled, peers have no such difference."""
    starts = result.warm_starts if result.peer.is_ours else result.starts
    return {at: start.load_seconds for at, start in starts.items()}


def peak_mb(result: PeerResult) -> dict[int, float]:
    """Peak of resident memory of a fresh process that opens the model and answers a prompt, MB."""
    return {at: start.peak_rss_mb for at, start in result.starts.items()}


def warm_peak_mb(result: PeerResult) -> dict[int, float]:
    """The same; ours finds the model compiled."""
    starts = result.warm_starts if result.peer.is_ours else result.starts
    return {at: start.peak_rss_mb for at, start in starts.items()}


def ratio(quantity: Quantity, ours: PeerResult, other: PeerResult) -> Spread | None:
    """Ours ÷ the other's, round by round: what slows the machine slows both of a round."""
    mine, theirs = quantity(ours), quantity(other)
    return Spread.of(mine[at] / theirs[at] for at in mine.keys() & theirs.keys())


@dataclass(slots=True)
class ScenarioResult:
    """All peers of a scenario, in the order they were asked for."""

    scenario: Scenario
    facts: ModelFacts
    peers: list[PeerResult] = field(default_factory=list[PeerResult])

    def bytes_per_token(self, result: PeerResult) -> float:
        """What decoding a token reads: the weights, and K and V half-way through the answer."""
        tokens = self.scenario.prompt + self.scenario.new // 2
        cache = self.facts.kv_values(tokens) * kv_element_bytes(result.peer)
        return result.weight_bytes + cache

    def bandwidth_share(self, result: PeerResult, limits: dict[str, float]) -> Spread | None:
        """Bytes per second that decoding reads, as a share of what the machine can."""
        bandwidth = max((rate for name, rate in limits.items() if name[:4] == "read"), default=0.0)
        rates = Spread.of(decode_rate(result).values())
        if rates is None or not bandwidth:
            return None
        return rates.scaled(self.bytes_per_token(result) / bandwidth)

    def prefill_rate(self, result: PeerResult) -> float | None:
        """Operations per second until the first token, of the median run."""
        first = Spread.of(first_token_ms(result).values())
        return (
            self.facts.prefill_flops(self.scenario.prompt) / first.median * 1e3 if first else None
        )

    def gemm_share(self, result: PeerResult, limits: dict[str, float]) -> float | None:
        """The prefill's rate, as a share of the fastest product the machine can do."""
        peak = max((rate for name, rate in limits.items() if name[:4] == "gemm"), default=0.0)
        rate = self.prefill_rate(result)
        return rate / peak if rate is not None and peak else None
