"""Transposition of caches to the usual axes [sequences, heads, tokens, width].

Source: docs/reference/npuw.md#options (the options), openvino_genai's get_kv_axes_pos (which models
differ).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import OpResult, SSAValue
from xdsl.rewriter import Rewriter

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.gather import Gather
from compiler_layer.dialects.ov.slicing import Concat
from compiler_layer.dialects.ov.state import ReadValue
from compiler_layer.dialects.ov.types import element_of, shape_of, tensor
from compiler_layer.model import Model, Variable
from compiler_layer.rewriting.dead_code import remove_dead_code
from npuw_layer.errors import OtherAxes
from npuw_layer.llm.graph.graph_pass import GraphPass
from npuw_layer.tensors.cache_axes import RANK, USUAL, CacheAxes


def cache_join(variable: Variable) -> Concat | None:
    """Return the Concat of a cache's stored rows, perhaps reordered by beam, and its new rows."""
    read, assign = variable.read, variable.assign
    join = assign.value.owner if assign is not None else None
    if read is None or not isinstance(join, Concat) or len(shape_of(read.output)) != RANK:
        return None
    stored, *new = join.parts
    by_beam = _by_beam(stored)
    origin = stored if by_beam is None else by_beam.data
    return join if len(new) == 1 and origin.owner is read else None


def _by_beam(value: SSAValue) -> Gather | None:
    owner = value.owner if isinstance(value, OpResult) else None
    return owner if isinstance(owner, Gather) else None


def _check(variable: Variable, axes: CacheAxes) -> None:
    """Check that a variable has the given axes if it is a cache."""
    join = cache_join(variable)
    if join is None:
        return
    by_beam = _by_beam(join.parts[0])
    sequences = axes.sequences if by_beam is None else by_beam.known_axis()
    found = CacheAxes(sequences, join.known_axis())
    if found != axes:
        raise OtherAxes(variable.name, found.sequences, found.tokens)


def _turn(model: Model, variable: Variable, join: Concat, axes: CacheAxes) -> None:
    """Transpose one cache; the model's own ops see it as before."""
    read, assign = variable.read, variable.assign
    assert read is not None  # a cache is read and assigned
    assert assign is not None
    by_beam = _by_beam(join.parts[0])
    stored = _turn_read(model, read, axes)
    g = GraphBuilder(model, join)
    if by_beam is not None:
        stored = g.gather(stored, by_beam.indices, USUAL.sequences)
    grown = g.concat([stored, g.transpose(join.parts[1], *axes.back)], USUAL.tokens)
    Rewriter.replace_op(join, [], [g.transpose(grown, *axes.order)])
    assign.operands[0] = grown
    assign.refresh_types()


def _turn_read(model: Model, read: ReadValue, axes: CacheAxes) -> SSAValue:
    """Read a transposed variable; existing readers see it as before."""
    g = GraphBuilder(model, read)
    shape = shape_of(read.output)
    turned = ReadValue(
        operands=[[g.transpose(init, *axes.back) for init in read.operands]],
        properties={"variable_id": read.variable_id},
        result_types=[tensor(element_of(read.output), tuple(shape[axis] for axis in axes.back))],
    )
    stored = g.add(turned).output
    Rewriter.replace_op(read, [], [g.transpose(stored, *axes.order)])
    return stored


@dataclass(frozen=True)
class UsualAxes(GraphPass):
    """Transpose K and V caches to the axes [sequences, heads, tokens, width].

    Before:  %k = ov.Concat(%past, %new) {axis = 0} ; ov.Assign "0.key"(%k)
    After:   %k = ov.Concat(%past, ov.Transpose(%new)) {axis = 2} ; ov.Assign "0.key"(%k)
             %s = ov.Transpose(%k)

    ChatGLM stores [tokens, sequences, heads, width], the first Qwen [sequences, tokens, heads,
    width]; NPUW_LLM_SEQ_LEN_DIM and NPUW_LLM_BATCH_DIM name the two axes. Readers see the caches as
    before through a transposition, which usually cancels the one at the start of attention.

    Raises:
        OtherAxes: a cache has other axes; the error names them.
    """

    name = "usual-axes"

    sequences: int = USUAL.sequences
    tokens: int = USUAL.tokens

    def _rewrite(self, model: Model) -> None:
        axes = CacheAxes(self.sequences, self.tokens)
        for variable in model.variables():
            _check(variable, axes)
        if axes == USUAL:
            return
        for variable in model.variables():
            join = cache_join(variable)
            if join is not None:
                _turn(model, variable, join, axes)
        remove_dead_code(model)
