"""Search for a model's repeated block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from xdsl.ir import Operation

from compiler_layer.partition.repeated.compare import (
    Comparison,
    Pairing,
    Signature,
    Span,
    signature,
)
from compiler_layer.rewriting.dataflow import crossings

MIN_REPETITIONS = 3
"""Fewer repetitions save nothing: the first and the last are always compiled."""

_LAYERS_IN_A_BLOCK = (1, 2, 3, 4, 5, 6, 8)
"""Layers per block: layers may alternate (windows and full attention by turns, or one in six)."""

_MIN_OPS, _MAX_OPS = 4, 8192
"""Limits of the number of carrying ops in a layer."""


@dataclass(frozen=True, slots=True)
class Repetitions:
    """Block and its repetitions.

    ``pairings[n]`` maps repetition n to repetition n + 1.
    """

    first: Span
    pairings: tuple[Pairing, ...]

    @property
    def count(self) -> int:
        """Number of repetitions."""
        return len(self.pairings) + 1

    @property
    def saved(self) -> int:
        """Number of ops that need not be compiled: those of all but two repetitions."""
        return (self.count - 2) * self.first.length

    def span(self, number: int) -> Span:
        """Return the ops of a repetition."""
        return Span(self.first.begin + number * self.first.length, self.first.length)


def find_repetitions(order: Sequence[Operation]) -> Repetitions | None:
    """Find the block whose repetitions cover most of a graph.

    Args:
        order: the graph's visiting order.

    Returns:
        The repetitions, or None if no block is repeated at least three times.
    """
    kinds: dict[Signature, int] = {}
    numbers = np.array([kinds.setdefault(signature(op), len(kinds)) for op in order], np.int64)
    layer = _period(numbers)
    if layer is None:
        return None
    comparison = Comparison(order)
    best = None
    for layers in _LAYERS_IN_A_BLOCK:
        found = _longest(order, comparison, Span(layer.begin, layer.length * layers), numbers)
        if found is not None and (best is None or found.saved > best.saved):
            best = found
        if best is not None and 2 * best.saved > len(order):
            break  # blocks of more layers cannot save much more
    return best


def _period(numbers: npt.NDArray[np.int64]) -> Span | None:
    """Return the longest run of equal ops at a fixed distance: its begin, and the distance."""
    best, longest = None, 0
    for period in range(_MIN_OPS, min(len(numbers) // 2, _MAX_OPS) + 1):
        begin, length = _longest_run(numbers[:-period] == numbers[period:])
        if length > longest and length >= (MIN_REPETITIONS - 1) * period:
            best, longest = Span(begin, period), length
    return best


def _longest_run(flags: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """Return the begin and the length of the longest run of true values."""
    edges = np.flatnonzero(np.diff(flags.astype(np.int8), prepend=0, append=0))
    if not len(edges):
        return 0, 0
    begins, lengths = edges[::2], edges[1::2] - edges[::2]
    longest = int(lengths.argmax())
    return int(begins[longest]), int(lengths[longest])


def _longest(
    order: Sequence[Operation],
    comparison: Comparison,
    block: Span,
    numbers: npt.NDArray[np.int64],
) -> Repetitions | None:
    """Return the most repetitions of a block of a length, cut at the fewest crossing values."""
    end = len(numbers)
    if block.begin + 3 * block.length > end:
        return None
    middle = block.begin + block.length
    cuts = range(middle, middle + block.length)
    counts = crossings(order, block.length, cuts)
    cut = cuts[counts.index(min(counts))]
    begin = cut % block.length
    runs: list[Repetitions] = []
    current: list[Pairing] = []
    for at in range(begin, end - 2 * block.length + 1, block.length):
        first = Span(at, block.length)
        pairing = comparison.pair(first)
        if pairing is None or not (current and pairing.goes_on(current[-1])):
            current = []
        if pairing is not None:
            current = [*current, pairing]
            start = first.begin - (len(current) - 1) * block.length
            runs.append(Repetitions(Span(start, block.length), tuple(current)))
    best = max(runs, key=lambda run: run.count, default=None)
    return best if best is not None and best.count >= MIN_REPETITIONS else None
