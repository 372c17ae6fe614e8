"""Evaluation of graph values from known inputs.

Evaluation shows the meaning of a part of a graph, so no exporter's patterns need be recognised.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from xdsl.ir import Block, Operation, SSAValue

from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.errors import UnsupportedModel
from compiler_layer.reference.interpreter import evaluate
from npuw_layer.backends.protocols import Array


def behind(
    values: Iterable[SSAValue], ends: tuple[type[Operation], ...] = ()
) -> Iterator[SSAValue]:
    """Yield values, and all values they are computed from, except constants; each once.

    Args:
        values: values to start from.
        ends: ops whose operands are left out.
    """
    seen, pending = set[SSAValue](), [*values]
    while pending:
        value = pending.pop()
        if value in seen or isinstance(value.owner, Constant):
            continue
        seen.add(value)
        yield value
        if isinstance(value.owner, Operation) and not isinstance(value.owner, ends):
            pending += value.owner.operands


def made_of(value: SSAValue) -> Iterator[SSAValue]:
    """Yield a value's sources: inputs, variables, and other ops without operands but constants."""
    for each in behind([value]):
        if isinstance(each.owner, Block) or not each.owner.operands:
            yield each


class Computed:
    """Evaluator of values, each computed once.

    Args:
        known: values of all sources (``made_of``).
    """

    def __init__(self, known: Mapping[SSAValue, Array]) -> None:
        self._known = dict(known)

    def of(self, value: SSAValue) -> Array:
        """Return a value.

        Raises:
            CompilerError: the graph is invalid there.
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
