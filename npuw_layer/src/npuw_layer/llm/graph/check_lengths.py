"""Check that a static model computes nothing from padded lengths."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from compiler_layer.dialects.ov import elementwise, shape, slicing, strided_slice
from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.gather import Gather
from compiler_layer.dialects.ov.indexing import TopK
from compiler_layer.dialects.ov.op import OvOp, int_attr, int_value
from compiler_layer.dialects.ov.scatter import ScatterNDUpdate
from compiler_layer.dialects.ov.state import ReadValue
from compiler_layer.dialects.ov.types import shape_of
from compiler_layer.errors import CompilerError, UnsupportedModel
from compiler_layer.model import Model, context
from compiler_layer.rewriting.shapes import specialize_shapes
from npuw_layer.backends.protocols import Array
from npuw_layer.errors import ModelError
from npuw_layer.llm.graph.computed import Computed, made_of
from npuw_layer.llm.graph.graph_pass import GraphPass
from npuw_layer.llm.graph.symbolic_lengths import SymbolicLengths
from npuw_layer.tensors.names import CACHE_POSITION, MASK, POSITIONS

_EDGE = "npuw.edge"
"""Discardable attribute by which an op is found again in a split."""

_PLACES = (MASK, POSITIONS, CACHE_POSITION)
"""Inputs that locate tokens rather than describe them."""

_NEW = 3
_MOST_ROOM = 257
"""Numbers of new tokens for trial splits: enough to tell lengths apart, few enough to be quick."""

Splits = Callable[[int, int], Sequence[ModulePass]]
"""Returns the passes that make a model static, for new tokens and rows of its caches."""

_SHAPE_OPERANDS: Mapping[type[Operation], tuple[int, ...]] = {
    shape.Reshape: (1,),
    shape.Broadcast: (1,),
    slicing.Slice: (1, 2),
    slicing.VariadicSplit: (2,),
    TopK: (1,),
    strided_slice.StridedSlice: (1, 2),
}
"""Operands that determine a result's extent, where a length in use becomes one of the room."""


@dataclass(frozen=True, slots=True)
class Room:
    """Tokens in use in a split, and tokens it has room for."""

    stored: int
    room_for_stored: int
    new: int
    room_for_new: int

    @property
    def exact(self) -> Room:
        """The split that fits the tokens exactly."""
        return Room(self.stored, self.stored, self.new, self.new)

    def rows(self, exact: int, padded: int) -> list[int] | None:
        """Return the rows in use along a dimension; None if the dimension is not of tokens.

        Args:
            exact: size of the dimension in the exact split.
            padded: size of the dimension in the split with room.
        """
        if exact == padded:
            return [*range(exact)]
        used = [*range(self.stored), *(self.room_for_stored + each for each in range(self.new))]
        of = {
            (self.new, self.room_for_new): [*range(self.new)],
            (self.stored, self.room_for_stored): [*range(self.stored)],
            (self.stored + self.new, self.room_for_stored + self.room_for_new): used,
        }
        if (exact, padded) in of:
            return of[exact, padded]
        for (own, room), (width, room_for_width) in product(of, of):
            if (own * width, room * room_for_width) == (exact, padded):  # a flattened mask
                columns = of[width, room_for_width]
                return [i * room_for_width + j for i in of[own, room] for j in columns]
        return None

    def same_length(self, exact: int, padded: int) -> bool:
        """Return whether two numbers are the same multiple of the same length in either split."""
        lengths = [
            (self.new, self.room_for_new),
            (self.stored, self.room_for_stored),
            (self.stored + self.new, self.room_for_stored + self.room_for_new),
        ]
        lengths += [(a * c, b * d) for (a, b), (c, d) in product(lengths, lengths)]
        return exact == padded or any(
            own and exact % own == 0 and exact // own * room == padded for own, room in lengths
        )

    def same_range(self, exact: Array, padded: Array) -> bool:
        """Return whether two lists of addresses cover the same part of a tensor."""
        for each in (exact, padded):
            if not len(each) or (np.diff(each) != 1).any():
                return False
        same_begin = self.same_length(int(exact[0]), int(padded[0]))
        return same_begin and self.same_length(len(exact), len(padded))


@dataclass(frozen=True, slots=True)
class _Edge:
    """An op that reads both places and other values."""

    what: str
    operands: tuple[int, ...]
    """Indices of the operands that are places."""
    periodic: bool = False
    """True if the op reads a remainder or a quotient of a length, other than as a shape."""


def _mark(model: Model) -> list[_Edge]:
    """Mark the edges of a model by their number; return them in order."""
    edges: list[_Edge] = []
    known: set[SSAValue] = set()
    places = {port.value for port in model.inputs if port.name in _PLACES}
    periodic: set[SSAValue] = set()
    lengths = SymbolicLengths(model)
    for op in model.ops:
        if not isinstance(op, OvOp) or isinstance(op, ReadValue):
            continue
        read = [each for each in op.operands if each not in known]
        if isinstance(op, Constant) or (op.operands and not read):
            known.update(op.results)
        elif isinstance(op, shape.ShapeOf) or (read and places.issuperset(read)):
            places.update(op.results)
            if _is_periodic(op, lengths) or not periodic.isdisjoint(read):
                periodic.update(op.results)
        elif not places.isdisjoint(read):
            op.attributes[_EDGE] = int_attr(len(edges))
            numbers = tuple(i for i, each in enumerate(op.operands) if each in places)
            values = {*numbers} - {*_SHAPE_OPERANDS.get(type(op), ())}
            edges.append(
                _Edge(op.described, numbers, any(op.operands[i] in periodic for i in values))
            )
    return edges


def _is_periodic(op: OvOp, lengths: SymbolicLengths) -> bool:
    """Return whether an op computes a remainder or a quotient of a length that tokens change."""
    if not isinstance(op, elementwise.Divide | elementwise.Mod | elementwise.FloorMod):
        return False
    return any(
        length is not None and length[1:] != (0, 0) for length in map(lengths.of, op.operands)
    )


def _agrees(exact: _Probe, padded: _Probe, number: int, index: int, room: Room) -> bool:
    """Return whether the part in use of an edge's operand is the same in both splits."""
    ops = exact.edge(number), padded.edge(number)
    if ops[0] is None or ops[1] is None or len(ops[0].operands) != len(ops[1].operands):
        return True  # the split has replaced the op
    try:
        own = exact.value(ops[0].operands[index])
    except CompilerError:
        return True  # the model itself has no such position
    other = padded.value(ops[1].operands[index])
    if index in _SHAPE_OPERANDS.get(type(ops[0]), ()):
        pairs = zip(own.reshape(-1).tolist(), other.reshape(-1).tolist(), strict=True)
        return own.shape == other.shape and all(room.same_length(a, b) for a, b in pairs)
    if isinstance(ops[0], ScatterNDUpdate) and index == 1:
        return room.same_range(own.reshape(-1), other.reshape(-1))
    rows = [room.rows(*sizes) for sizes in zip(own.shape, other.shape, strict=True)]
    if any(each is None for each in rows):
        return False
    if isinstance(ops[0], Gather) and isinstance(ops[1], Gather) and index == 1:
        of_data = room.rows(*(shape_of(op.data)[op.known_axis()] for op in (ops[0], ops[1])))
        if of_data is None or own.min() < 0:
            return False
        own = np.array(of_data)[own]
    used = other[np.ix_(*(each for each in rows if each is not None))]
    return np.allclose(own, used, rtol=1e-5, atol=1e-6) if own.size else True


class _Probe:
    """A split with static shapes, and its values for some tokens in use."""

    def __init__(self, model: Model) -> None:
        specialize_shapes(model)
        self._model = model
        self._ops: dict[int, Operation] = {}
        for op in model.ops:
            mark = op.attributes.get(_EDGE)
            if mark is not None:
                self._ops[int_value(mark)] = op
        self._known: dict[SSAValue, Array] = {}
        self._computed = Computed({})

    def fill(self, room: Room) -> None:
        """Set the inputs that locate tokens, as the host does."""
        known: dict[SSAValue, Array] = {}
        stored, new = room.stored, room.new
        used = np.zeros((1, room.room_for_stored + room.room_for_new), np.int64)
        used[:, :stored] = used[:, room.room_for_stored :][:, :new] = 1
        newest = stored + new - 1
        positions = np.minimum(stored + np.arange(room.room_for_new, dtype=np.int64), newest)
        for port in self._model.inputs:
            dims = shape_of(port.value)
            if port.name == MASK:
                known[port.value] = used
            elif port.name in (POSITIONS, CACHE_POSITION):
                known[port.value] = np.broadcast_to(positions, dims)
        self._known, self._computed = known, Computed(known)

    def edge(self, number: int) -> Operation | None:
        """Return a marked op; None if the split has replaced it."""
        return self._ops.get(number)

    def value(self, value: SSAValue) -> Array:
        """Compute a value that follows from places alone.

        Raises:
            CompilerError: an op is undefined for its operands, e.g. an index beyond a table, or a
                shape depends on data, which the compiler rejects where such an op remains.
        """
        if any(each not in self._known for each in made_of(value)):
            raise UnsupportedModel("a shape depends on data")
        return self._computed.of(value)


@dataclass(frozen=True)
class CheckLengths(GraphPass):
    """Check that the static model computes nothing from padded lengths.

    A static model reads as many cache rows and new tokens as it has room for, however few are in
    use. Values that follow from lengths, masks and positions must still be those of the tokens in
    use. A dataflow analysis finds them: a value is a *place* if it follows from constants, shapes,
    masks and positions alone; an *edge* is an op that reads both places and other values. Each edge
    is computed in two splits of the model: one that fits the tokens, and one with room to spare.
    Places must agree in the rows in use, and shapes may differ only as the room does. Remainders
    and quotients of a length, which a few splits may miss, may only be used as shapes. A model that
    derives anything else from a length is rejected with the op's name.

    ``splits`` returns the passes that follow in the pipeline, for other lengths and one
    conversation.

    Raises:
        ModelError: a value follows a padded length; the error names the op.
    """

    name = "check-lengths"

    tokens: int
    past: int
    splits: Splits

    def _rewrite(self, model: Model) -> None:
        try:
            self._check(model.clone())
        except CompilerError as error:
            raise ModelError(f"the model cannot be given static shapes: {error}") from None

    def _check(self, marked: Model) -> None:
        edges, past = _mark(marked), self.past
        tokens = min(self.tokens, _MOST_ROOM if past == 0 else _NEW + 2)
        padded = self._probe(marked, tokens, past)
        stored_ones = {each for each in (1, past // 2, past - 2) if 0 < each < past} or {past}
        for stored in sorted(stored_ones):
            room = Room(stored, past, min(_NEW, tokens), tokens)
            exact = self._probe(marked, room.new, stored)
            exact.fill(room.exact)
            padded.fill(room)
            for number, edge in enumerate(edges):
                agree = (_agrees(exact, padded, number, each, room) for each in edge.operands)
                if edge.periodic or not all(agree):
                    raise ModelError(
                        f"{edge.what}: it reads a value computed from the length of the KV cache "
                        "in an unsupported way; run the model on OpenVINO's CPU device"
                    )

    def _probe(self, marked: Model, tokens: int, past: int) -> _Probe:
        model = marked.clone()
        for each in self.splits(tokens, past):
            each.apply(context(), model.module)
        return _Probe(model)
