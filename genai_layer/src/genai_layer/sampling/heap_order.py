"""Order that a binary heap leaves its elements in.

A seeded draw goes through the candidates of top_k in the order in which the C++ standard library's
heap holds them, so the heap is followed element by element.

Source: docs/reference/genai.md#sampling; the algorithms of libstdc++'s push_heap, pop_heap and
make_heap, whose results the tests compare with those of openvino_genai.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_FIRST_SPAN = 1024


def largest_in_heap_order(values: npt.NDArray[np.float32], count: int) -> npt.NDArray[np.int64]:
    """Return the places of the largest values, as a heap with the smallest on top holds them.

    Args:
        values: f32 [n].
        count: number of places, at least 1 and less than n.
    """
    heap = _Heap(values[:count].tolist())
    begin, span = count, max(_FIRST_SPAN, count)
    while begin < len(values):
        # A span has a few values above the smallest one kept before it; only these are visited.
        end = min(begin + span, len(values))
        above = np.flatnonzero(values[begin:end] > heap.smallest) + begin
        for place in above.tolist():
            value = float(values[place])
            if value > heap.smallest:
                heap.replace_smallest(value, place)
        begin, span = end, 2 * span
    return np.array(heap.places, np.int64)


class _Heap:
    """Binary heap of (value, place) with the smallest value on top."""

    def __init__(self, values: list[float]) -> None:
        self._values = values
        self.places = list(range(len(values)))
        for hole in reversed(range(len(values) // 2)):
            self._sink(hole, len(values), values[hole], self.places[hole])

    @property
    def smallest(self) -> float:
        return self._values[0]

    def replace_smallest(self, value: float, place: int) -> None:
        """Remove the top, and add an element, as pop_heap and push_heap do one after the other."""
        last = len(self._values) - 1
        if last:
            self._sink(0, last, self._values[last], self.places[last])
        self._rise(last, 0, value, place)

    def _sink(self, hole: int, length: int, value: float, place: int) -> None:
        """Move a hole down to a leaf, always to the smaller child; then let an element rise."""
        values, places, top = self._values, self.places, hole
        while (right := 2 * hole + 2) < length:
            child = right - 1 if values[right] > values[right - 1] else right
            values[hole], places[hole] = values[child], places[child]
            hole = child
        if right == length:
            values[hole], places[hole] = values[right - 1], places[right - 1]
            hole = right - 1
        self._rise(hole, top, value, place)

    def _rise(self, hole: int, top: int, value: float, place: int) -> None:
        """Move a hole up while its parent is larger than an element; put the element there."""
        values, places = self._values, self.places
        while hole > top and values[parent := (hole - 1) // 2] > value:
            values[hole], places[hole] = values[parent], places[parent]
            hole = parent
        values[hole], places[hole] = value, place
