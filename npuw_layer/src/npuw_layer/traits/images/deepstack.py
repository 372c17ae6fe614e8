"""DeepStack: image features, added to hidden states of the image's tokens after the first layers.

Source: optimum-intel exports the first form of ``SpreadVisualRows`` in 2.0 and 2.1 (NPUW's
ReplaceDeepstackScatterWithAdd), the second in 2.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.constant import Constant, values_of
from compiler_layer.dialects.ov.elementwise import Add
from compiler_layer.dialects.ov.gather import Gather, GatherND
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.scatter import ScatterNDUpdate
from compiler_layer.dialects.ov.shape import Range, Reshape, ShapeOf
from compiler_layer.dialects.ov.types import element_of, shape_of, tensor
from compiler_layer.model import Model
from compiler_layer.rewriting.dead_code import remove_dead_code
from compiler_layer.rewriting.match import producer
from npuw_layer.errors import ModelError
from npuw_layer.llm.graph.graph_pass import GraphPass
from npuw_layer.traits.images.trait import VISUAL_EMBEDS, VISUAL_MASKS

AnyOp = TypeVar("AnyOp", bound=OvOp)

_ROWS = f"{VISUAL_EMBEDS}@rows"
"""Name of the new input as long as the old one exists."""


def _take_rows(model: Model, embeds: SSAValue, tokens: int, levels: int) -> None:
    """Replace the inputs, once the graph reads only levels of the features."""
    width = shape_of(embeds)[2]
    rows = model.add_input(_ROWS, tensor("f32", (levels, 1, tokens, width)))
    g = GraphBuilder(model, model.body.first_op)
    embeds.replace_all_uses_with(g.reshape(rows, levels, tokens, width))
    remove_dead_code(model)
    for name in (VISUAL_EMBEDS, VISUAL_MASKS):
        model.remove_input(name)
    names = [port.name for port in model.inputs]
    model.set_inputs([VISUAL_EMBEDS if name == _ROWS else name for name in names])


@dataclass(frozen=True, slots=True)
class _Addition:
    """Place where a level of features is added to hidden states."""

    op: OvOp
    """Op that returns the sum."""
    hidden: int
    """Index of the operand with the hidden states."""
    level: SSAValue
    """Features, [tokens, width]."""

    def rewrite(self, model: Model) -> None:
        """Add rows of all tokens."""
        total = GraphBuilder(model, self.op).op(Add, self.op.operands[self.hidden], self.level)
        Rewriter.replace_op(_assigned(self.op), [], [total])


@dataclass(frozen=True, slots=True)
class _Made:
    """Sources of a value, other than constants and shapes."""

    level: SSAValue | None = None
    """Level of features; None if the value depends on the mask only."""
    hidden: SSAValue | None = None
    """Hidden states at the marked places."""
    at: SSAValue | None = None
    """The marked places."""


class _Walk:
    """Search for the additions, which visits the ops of a graph in order.

    Args:
        embeds: input of features.
        marks: input of the mask.
    """

    def __init__(self, embeds: SSAValue, marks: SSAValue) -> None:
        self._embeds = embeds
        self._made = {marks: _Made()}
        self._known: set[SSAValue] = set()
        """Values computed from constants and shapes alone."""
        self.levels: set[int] = set()
        self.additions: list[_Addition] = []

    def visit(self, op: Operation) -> None:
        """Visit the next op.

        Raises:
            ModelError: the op's use of features or mask is unknown.
        """
        if isinstance(op, Constant | ShapeOf):
            self._known.update(op.results)
            return
        if self._embeds in op.operands:
            self._made[op.results[0]] = self._level(op)
            return
        made = [self._made[value] for value in op.operands if value in self._made]
        rest = [v for v in op.operands if v not in self._made and v not in self._known]
        if not made:
            if op.operands and not rest:
                self._known.update(op.results)
        elif rest or any(each.hidden is not None for each in made):
            self._meet(op)
        else:
            levels = {each.level for each in made} - {None}
            if len(levels) > 1:
                raise _unknown(op)
            self._made.update((result, _Made(*levels)) for result in op.results)

    def _level(self, op: Operation) -> _Made:
        """Return one level of the features."""
        index = _number(op.indices) if isinstance(op, Gather) else None
        if not isinstance(op, Gather) or index is None or op.known_axis():
            raise _unknown(op)
        self.levels.add(index)
        return _Made(op.output)

    def _meet(self, op: Operation) -> None:
        """Handle an op that combines features or mask with hidden states."""
        made = [self._made.get(value) for value in op.operands]
        match op, made:
            case GatherND(), [None, _Made(level=None, hidden=None)]:
                self._made[op.output] = _Made(hidden=op.data, at=op.indices)
            case Add(), [_Made(None, SSAValue() as h, at), _Made(SSAValue() as level, None)] | [
                _Made(SSAValue() as level, None),
                _Made(None, SSAValue() as h, at),
            ]:
                self._made[op.output] = _Made(level, h, at)
            case ScatterNDUpdate(), [None, _Made(), _Made(SSAValue() as level, h, at)] if (
                h is op.data and at is op.indices and op.reduction.data == "none"
            ):
                self.additions.append(_Addition(op, 0, level))
            case Add(), [None, _Made(SSAValue() as level, None)]:
                self.additions.append(_Addition(op, 0, level))
            case Add(), [_Made(SSAValue() as level, None), None]:
                self.additions.append(_Addition(op, 1, level))
            case _:
                raise _unknown(op)


def _assigned(op: OvOp) -> Operation:
    """Return the op that assigns all elements of a result, as PyTorch's ``h[mask] = …`` does.

    The form is ``reshape(scatter(flat h, 0 … n, flat result))``; without it, return the op itself.
    """
    flat = _only_reader(op, Reshape)
    scatter = _only_reader(flat, ScatterNDUpdate) if flat is not None else None
    back = _only_reader(scatter, Reshape) if scatter is not None else None
    if back is None or scatter is None or flat is None or scatter.updates is not flat.results[0]:
        return op
    indices = scatter.indices
    while isinstance(indices.owner, Reshape):
        indices = indices.owner.operands[0]
    every = producer(indices, Range)
    whole = producer(scatter.data, Reshape)
    if every is None or whole is None or whole.operands[0] is not op.operands[0]:
        return op
    if len(shape_of(back.output)) != len(shape_of(op.results[0])):
        return op
    return back if (_number(every.start), _number(every.step)) == (0, 1) else op


def _only_reader(op: OvOp, kind: type[AnyOp]) -> AnyOp | None:
    """Return the only user of an op's result if it is of a class; else None."""
    users = {use.operation for use in op.results[0].uses}
    reader = users.pop() if len(users) == 1 else None
    return reader if isinstance(reader, kind) else None


def _number(value: SSAValue) -> int | None:
    """Return a known, non-negative scalar; else None."""
    found = values_of(value)
    return int(found) if found is not None and not found.ndim and found >= 0 else None


def _unknown(op: Operation) -> ModelError:
    name = op.described if isinstance(op, OvOp) else op.name
    return ModelError(
        f"{name}: {VISUAL_EMBEDS} and {VISUAL_MASKS} are combined here in an unsupported way to "
        "add features to the hidden states of an image's tokens"
    )


@dataclass(frozen=True)
class SpreadVisualRows(GraphPass):
    """Take a row for each token in place of features of only the images' tokens.

    Before:  %h1 = ov.ScatterNDUpdate(%h, %at, ov.Add(ov.GatherND(%h, %at), %level))
    or:      %h1 = ov.Add(%h, ov.Multiply(ov.Gather(%level, %counted), %mask))
    After:   %h1 = ov.Add(%h, %rows)

    A stateful model takes f32 [levels, tokens of images, width] and finds the tokens by a mask, so
    the number of rows is not static. A static model takes f32 [levels, 1, tokens, width], zero for
    text, and no mask; the host spreads the features. The sums are the same to the bit.

    Raises:
        ModelError: features have another type or shape, or are added in an unknown way.
    """

    name = "spread-visual-rows"

    tokens: int

    def _rewrite(self, model: Model) -> None:
        ports = {port.name: port.value for port in model.inputs}
        embeds, marks = ports[VISUAL_EMBEDS], ports[VISUAL_MASKS]
        dims = shape_of(embeds)
        types = element_of(embeds), element_of(marks)
        if (
            types != ("f32", "boolean")
            or len(dims) != 3
            or dims[2] <= 0
            or len(shape_of(marks)) != 2
        ):
            raise ModelError(
                f"{VISUAL_EMBEDS} of {types[0]} {list(dims)} with {VISUAL_MASKS} of {types[1]} "
                f"{list(shape_of(marks))}, not f32 [levels, tokens, width] and boolean [1, tokens]"
            )
        walk = _Walk(embeds, marks)
        for op in model.ops:
            walk.visit(op)
        levels = dims[0] if dims[0] > 0 else len(walk.levels)
        if not walk.levels or not walk.levels <= {*range(levels)}:
            raise ModelError(
                f"{VISUAL_EMBEDS} is {list(dims)}, but levels {sorted(walk.levels)} are read"
            )
        for addition in walk.additions:
            addition.rewrite(model)
        _take_rows(model, embeds, self.tokens, levels)
