"""LongRoPE: an inference turns keys by one of two sets of factors, as far as its tokens reach.

Exporters write it as max(position_ids) + 1 > the original context, and what follows from that. A
static program cannot tell: it may see a piece of a prompt, and padding. So the host says which: the
largest position becomes an input, 0 or 1, and the largest position from which the angles are others
stands in the input's name. Which part of a graph depends on it, and from where on, is found by
trying.

Source: fact sheet npuw §a.3, step 17: both sets of factors, chosen by the host.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.rewriter import Rewriter

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.elementwise import Convert, Multiply
from compiler_layer.dialects.ov.gather import Gather
from compiler_layer.dialects.ov.reduce import ReduceMax
from compiler_layer.dialects.ov.shape import Reshape, Squeeze, Unsqueeze
from compiler_layer.dialects.ov.types import element_of, shape_of, tensor
from compiler_layer.model import Model
from npuw_layer.backends.protocols import Array
from npuw_layer.errors import ModelError
from npuw_layer.llm.graph.computed import Computed, made_of
from npuw_layer.llm.names import POSITIONS
from npuw_layer.traits.long_rope.names import LONG_ROPE, long_from

_LARGEST = (1 << 31) - 1


def tell_reach(model: Model) -> Model:
    """Let the host say how far an inference reaches, if angles depend on it.

    Args:
        model: the stateful graph; it is not changed.

    Returns:
        A graph with the input, or the same one where there is no such thing.
    """
    if not any(True for _ in _largest(model)):
        return model
    model = model.clone()
    found = list(_largest(model))
    limits = {_limit(op.results[0]) for op in found}
    if len(limits) != 1 or None in limits:
        return model
    (limit,) = limits
    assert limit is not None
    names = [port.name for port in model.inputs]
    argument = model.body.insert_arg(tensor("i64", (-1, 1)), len(names))
    model.set_inputs([*names, f"{LONG_ROPE}{limit}"])
    for op in found:
        Rewriter.replace_op(op, [], [_largest_as_told(model, op, argument, limit)])
    return model


def told_shapes(model: Model, sequences: int) -> dict[str, tuple[int, int]]:
    """The static shape of the input, by its name; nothing if there is none.

    Raises:
        ModelError: there are several sequences, and one decides for all.
    """
    long = long_from(port.name for port in model.inputs)
    if long is None:
        return {}
    told = next(port.value for port in model.inputs if port.name == long[0])
    if sequences > 1 and any(isinstance(use.operation, Gather) for use in told.uses):
        raise ModelError(
            "for several conversations at once: each chooses its factors of LongRoPE, which takes "
            "tables of angles: leave NPUW_LLM_CACHE_ROPE on, and NPUW_LLM_ON_FULL other than "
            "SLIDE, or set NPUW_LLM_BATCH_SLOTS = 1"
        )
    return {long[0]: (sequences, 1)}


def _largest_as_told(model: Model, op: ReduceMax, told: SSAValue, limit: int) -> SSAValue:
    """The largest position, as far as it matters: 0, or where long inferences begin."""
    g = GraphBuilder(model, op)
    largest = op.results[0]
    dims = shape_of(largest)
    first = g.gather(told, g.scalar(0), 0)
    flag = g.reshape(first, *dims) if dims else g.gather(first, g.scalar(0), 0)
    reached = g.op(Multiply, flag, g.constant(np.full(dims, limit, np.int64)))
    element = element_of(largest)
    return reached if element == "i64" else g.convert(reached, element)


def _largest(model: Model) -> Iterator[ReduceMax]:
    """The ops that give the largest position of all."""
    positions = next((port.value for port in model.inputs if port.name == POSITIONS), None)
    if positions is None:
        return
    for op in model.body.ops:
        if not isinstance(op, ReduceMax) or not _is_positions(op.operands[0], positions):
            continue
        if all(size == 1 for size in shape_of(op.results[0])):
            yield op


def _is_positions(value: SSAValue, positions: SSAValue) -> bool:
    """Whether a value is positions, in another shape perhaps."""
    while value is not positions:
        if not isinstance(value.owner, Reshape | Squeeze | Unsqueeze | Convert):
            return False
        value = value.owner.operands[0]
    return True


def _limit(reach: OpResult) -> int | None:
    """From which largest position on all that depends on it is another; None if that is not so."""
    edge = list(_edge(reach))

    def values(last: int) -> list[Array]:
        known = np.full(shape_of(reach), last, np.int64)
        computed = Computed({reach: known})
        return [computed.of(value) for value in edge]

    def same(one: int, other: int) -> bool:
        pairs = zip(values(one), values(other), strict=True)
        return all(np.array_equal(a, b) for a, b in pairs)

    low, high = 0, _LARGEST
    if not edge or same(low, high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if same(0, middle) else (low, middle)
    return high if same(high, _LARGEST) and same(high, min(2 * high, _LARGEST)) else None


def _edge(reach: OpResult) -> Iterator[SSAValue]:
    """What is made of a value and constants alone, and used by what is not."""
    made: set[SSAValue] = {reach}
    pending: list[SSAValue] = [reach]
    while pending:
        value = pending.pop()
        inner = [use.operation for use in value.uses if _made_of(use.operation, made)]
        if len(inner) < len(list(value.uses)):
            yield value
        for op in inner:
            fresh = [result for result in op.results if result not in made]
            made.update(fresh)
            pending += fresh


def _made_of(op: Operation, made: set[SSAValue]) -> bool:
    return all(each in made or not any(True for _ in made_of(each)) for each in op.operands)
