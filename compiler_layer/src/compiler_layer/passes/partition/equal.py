"""Parts that differ in weights and names alone: calls of one function.

So equal layers are compiled once. Which constants may differ is decided as for folded models
(``fold_blocks.compare``): weights may, shapes and axes may not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue

from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.model import Model
from compiler_layer.passes.fold_blocks.compare import same_constants, signature
from compiler_layer.passes.partition.parts import Part


@dataclass(slots=True)
class Function:
    """Parts that are the same but for weights and the names of what they read and write.

    Attributes:
        tag: of the parts' group.
        calls: the parts, by their numbers in the order in which they run.
        parts: the same as parts.
    """

    tag: str
    calls: list[int] = field(default_factory=list[int])
    parts: list[Part] = field(default_factory=list[Part])

    @property
    def has_weights_of_calls(self) -> bool:
        """Whether weights differ between calls."""
        return any(True for _ in self._weights_of_calls())

    def merged(self) -> Model:
        """The function itself: the first part, with the weights of all calls."""
        model = self.parts[0].model.clone()
        ops = model.ops
        for place, weights in self._weights_of_calls():
            merged = Constant.repeated(0, weights)
            ops[place].properties["value"] = merged.value
        return model

    def _weights_of_calls(self) -> Iterator[tuple[int, list[Constant]]]:
        """For weights that differ their place among the ops, and those of all calls."""
        rows = zip(*(part.model.body.ops for part in self.parts), strict=True)
        for place, row in enumerate(rows):
            weights = [op for op in row if isinstance(op, Constant)]
            if len({op.value for op in weights}) > 1:
                yield place, weights


def find_functions(parts: Sequence[Part]) -> list[Function]:
    """Find which parts are the same function, in the order of their first calls."""
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
    """What can be compared fast."""
    return tuple(op.name for op in model.body.ops), tuple(port.type for port in model.inputs)


def _same(one: Model, other: Model) -> bool:
    """Whether two models compute the same with other weights."""
    places = _Places(one), _Places(other)
    held: dict[object, object] = {}
    # A weight that is used twice is one input: what takes its place must be the same each time.
    for a, b in zip(one.body.ops, other.body.ops, strict=True):
        if signature(a) != signature(b) or places[0].of(a) != places[1].of(b):
            return False
        if not isinstance(a, Constant) or not isinstance(b, Constant):
            continue
        if not same_constants(a, b) or held.setdefault(a.value, b.value) != b.value:
            return False
    return True


class _Places:
    """Where values of a model come from, whatever they are called."""

    def __init__(self, model: Model) -> None:
        self._at: dict[SSAValue, int] = {}
        for value in (*model.body.args, *(x for op in model.body.ops for x in op.results)):
            self._at[value] = len(self._at)

    def of(self, op: Operation) -> tuple[int, ...]:
        """The places of an op's operands."""
        return tuple(self._at[operand] for operand in op.operands)
