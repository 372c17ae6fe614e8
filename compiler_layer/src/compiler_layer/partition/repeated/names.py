"""Layer counter in a model's op names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from xdsl.ir import Operation

from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.partition.repeated.attributes import UNNAMED, LayerNames
from compiler_layer.partition.repeated.find import Repetitions

_NUMBER = re.compile(r"\d+")


def layer_names(order: Sequence[Operation], found: Repetitions) -> LayerNames:
    """Return the counter that most names of the first two repetitions share."""
    block = found.first
    counted = Counter[tuple[str, int]]()
    first: dict[tuple[str, int], int] = {}
    for place in range(block.begin, block.next.begin):
        one, other = order[place], order[place + block.length]
        if isinstance(one, OvOp) and isinstance(other, OvOp):
            for prefix, a, b in _difference(one.friendly_name, other.friendly_name):
                counted[prefix, b - a] += 1
                first[prefix, b - a] = min(a, first.get((prefix, b - a), a))
    if not counted:
        return UNNAMED
    best = max(counted, key=lambda names: counted[names])
    return LayerNames(best[0], first[best], best[1]) if best[1] > 0 else UNNAMED


def _difference(one: str, other: str) -> list[tuple[str, int, int]]:
    """Return the only number in which two names differ, with its prefix; or no number."""
    if _NUMBER.sub("0", one) != _NUMBER.sub("0", other):
        return []
    pairs = zip(_NUMBER.finditer(one), _NUMBER.finditer(other), strict=True)
    different = [(a, b) for a, b in pairs if a[0] != b[0]]
    if len(different) != 1:
        return []
    (a, b) = different[0]
    return [(one[: a.start()], int(a[0]), int(b[0]))]
