"""Functions: parts that differ in weights and names only, as calls of one compiled function.

Equal layers are compiled once. Weights may differ, but not shapes and axes, as in folded models
(``repeated.compare``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.model import Model
from compiler_layer.partition.parts import Part
from compiler_layer.partition.repeated.compare import same_constants, signature


@dataclass(slots=True)
class Function:
    """Parts that differ only in weights and in the names of their inputs and outputs.

    Attributes:
        tag: the tag of the parts.
        calls: the parts' numbers, in execution order.
        parts: the parts themselves.
    """

    tag: str
    calls: list[int] = field(default_factory=list[int])
    parts: list[Part] = field(default_factory=list[Part])

    @property
    def has_weights_of_calls(self) -> bool:
        """Return whether weights differ between calls."""
        return any(True for _ in self._weights_of_calls())

    def merged(self) -> Model:
        """Return the function: the first part, with the weights of all calls."""
        model = self.parts[0].model.clone()
        ops = model.ops
        for place, weights in self._weights_of_calls():
            merged = Constant.repeated(0, weights)
            ops[place].properties["value"] = merged.value
        return model

    def _weights_of_calls(self) -> Iterator[tuple[int, list[Constant]]]:
        """Yield the op index of each weight that differs, and its value in each call."""
        rows = zip(*(part.model.body.ops for part in self.parts), strict=True)
        for place, row in enumerate(rows):
            weights = [op for op in row if isinstance(op, Constant)]
            if len({op.value for op in weights}) > 1:
                yield place, weights


def find_functions(parts: Sequence[Part]) -> list[Function]:
    """Group equal parts into functions, in the order of their first calls."""
    functions: list[Function] = []
    found: dict[object, list[Function]] = {}
    for number, part in enumerate(parts):
        alike = found.setdefault((part.tag, _shape(part.model)), [])
        function = next((f for f in alike if _same(f.parts[0].model, part.model)), None)
        if function is None:
            function = Function(part.tag)
            functions.append(function)
            alike.append(function)
        function.calls.append(number)
        function.parts.append(part)
    return functions


def _shape(model: Model) -> object:
    """Return a key that equal models share, for fast comparison."""
    return tuple(op.name for op in model.body.ops), tuple(port.type for port in model.inputs)


def _same(one: Model, other: Model) -> bool:
    """Return whether two models compute the same function with different weights."""
    at, at_other = _places(one), _places(other)
    held: dict[object, object] = {}
    # Both uses of a weight become one input, so the same weight must replace it in both.
    for a, b in zip(one.body.ops, other.body.ops, strict=True):
        same = signature(a) == signature(b) and all(
            at[x] == at_other[y] for x, y in zip(a.operands, b.operands, strict=True)
        )
        if not same:
            return False
        if not isinstance(a, Constant) or not isinstance(b, Constant):
            continue
        if not same_constants(a, b) or held.setdefault(a.value, b.value) != b.value:
            return False
    return True


def _places(model: Model) -> dict[SSAValue, int]:
    """Number a model's values, independent of names."""
    values = (*model.body.args, *(x for op in model.body.ops for x in op.results))
    return {value: number for number, value in enumerate(values)}
