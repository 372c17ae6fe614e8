"""What values of a graph are where all that they are made of is known.

So what a part of a graph means is found by trying it, not by recognising who exported it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from xdsl.ir import Block, Operation, SSAValue

from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.errors import UnsupportedModel
from compiler_layer.reference.interpreter import evaluate
from npuw_layer.backends.protocols import Array


def behind(values: Iterable[SSAValue]) -> Iterator[SSAValue]:
    """Values, and all values that they are computed from, but for constants; each once."""
    seen, pending = set[SSAValue](), [*values]
    while pending:
        value = pending.pop()
        if value in seen or isinstance(value.owner, Constant):
            continue
        seen.add(value)
        yield value
        if isinstance(value.owner, Operation):
            pending += value.owner.operands


def made_of(value: SSAValue) -> Iterator[SSAValue]:
    """The inputs and variables, or what else has no operands and is no constant, behind a value."""
    for each in behind([value]):
        if isinstance(each.owner, Block) or not each.owner.operands:
            yield each


class Computed:
    """Computes values, each once.

    Args:
        known: what they are ``made_of``.
    """

    def __init__(self, known: Mapping[SSAValue, Array]) -> None:
        self._known = dict(known)

    def of(self, value: SSAValue) -> Array:
        """Give a value.

        Raises:
            CompilerError: the graph is wrong there.
        """
        if value not in self._known:
            op = value.owner
            assert isinstance(op, Operation)  # inputs are known
            if isinstance(op, Constant):
                self._known[value] = op.load()
            else:
                found = _evaluated(op, [self.of(each) for each in op.operands])
                self._known.update(zip(op.results, found, strict=True))
        return self._known[value]


def _evaluated(op: Operation, operands: Sequence[Array]) -> tuple[Array, ...]:
    try:
        return evaluate(op, operands)
    except (ValueError, TypeError, IndexError, ArithmeticError, MemoryError) as error:
        raise UnsupportedModel(f"{op.name} cannot be computed: {error}") from error
