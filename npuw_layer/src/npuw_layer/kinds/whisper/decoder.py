"""A stateful Whisper decoder as static graphs: one for the prompt, several for generation.

A language model has inputs for positions and mask. A Whisper decoder has neither: it derives both
from the number of stored rows, which is constant in a static cache. So the decoder gets both
inputs, and its caches are then stored like those of any language model.

Source: docs/reference/npuw.md#whisper.
"""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.attention import ScaledDotProductAttention
from compiler_layer.dialects.ov.elementwise import Select
from compiler_layer.dialects.ov.gather import Gather
from compiler_layer.dialects.ov.logic import LogicalAnd
from compiler_layer.dialects.ov.op import OvOp, int_value
from compiler_layer.dialects.ov.shape import Range, ShapeOf
from compiler_layer.dialects.ov.types import Shape, element_of, shape_of, tensor
from compiler_layer.elements import FLOATS
from compiler_layer.model import Model
from npuw_layer.errors import ModelError
from npuw_layer.kinds.whisper.cross_attention import (
    assign_cross_caches,
    give_out_scores,
    read_cross_caches,
    take_cross_attention,
)
from npuw_layer.kinds.whisper.options import WhisperOptions
from npuw_layer.llm.graph.computed import behind
from npuw_layer.llm.graph.drop_beams import DropBeams
from npuw_layer.llm.graph.pipeline import run_passes
from npuw_layer.llm.graph.store_caches import StoreCaches
from npuw_layer.llm.graph.vocabulary import record_vocabulary
from npuw_layer.llm.plan.stages import Stage, StageKind, kv_layout
from npuw_layer.options import Options
from npuw_layer.tensors.names import BEAMS, CACHE_POSITION, IDS, LOGITS, MASK, POSITIONS
from npuw_layer.traits.cross_attention.names import ENCODER_STATES

_MASKED = -65504.0
"""Score of hidden rows: the least number of f16."""


def decoder_graph(model: Model, stage: Stage, options: Options, check: bool = False) -> Model:
    """Return the static graph of a stage.

    Args:
        model: the stateful decoder; not changed.
        stage: the static model to make.
        options: NPUW_WHISPER_…, and formats of caches.
        check: no effect: a decoder computes only positions from lengths.

    Returns:
        A graph with input_ids, attention_mask and position_ids, caches as made by
        ``store-caches``, and logits of all new tokens. Prefill also has ENCODER_STATES f32
        [1, frames, channels], and assigns ``cross_variable``s [1, frames, heads, width], which
        generate reads.

    Raises:
        ModelError: the graph is not a Whisper decoder.
    """
    del check
    try:
        return _split(model.clone(), stage, options)
    except RecursionError:
        raise ModelError("the graph's ops are nested too deeply") from None


def _split(clone: Model, stage: Stage, options: Options) -> Model:
    _check_ports(clone)
    tokens, past = stage.tokens, stage.past
    states = _states_shape(clone, options.group(WhisperOptions).whisper_encoder_len)
    cross = take_cross_attention(clone)
    _take_positions(clone, tokens, past, stage.capacity)
    _take_mask(clone, [*cross.layers], past + tokens)
    run_passes(clone, (StoreCaches.of(past, kv_layout(options)), DropBeams()))
    shapes: dict[str, Shape] = {IDS: (1, tokens)}
    if stage.kind is StageKind.PREFILL:
        shapes[ENCODER_STATES] = states
        assign_cross_caches(clone, cross)
        if options.group(WhisperOptions).whisper_decompose_sdpa:
            give_out_scores(clone, cross)
    else:
        read_cross_caches(clone, cross, states[1])
    clone.set_input_shapes(shapes)
    record_vocabulary(clone, clone)
    return clone


def _check_ports(model: Model) -> None:
    names = {port.name for port in model.inputs}
    outputs = [port.name for port in model.outputs]
    needed, possible = {IDS, ENCODER_STATES}, {IDS, ENCODER_STATES, BEAMS, CACHE_POSITION}
    if not needed <= names <= possible or outputs != [LOGITS]:
        raise ModelError(
            f"NPUW_WHISPER: not a stateful Whisper decoder: inputs {sorted(names)}, outputs "
            f"{outputs}; expected {IDS}, {ENCODER_STATES}[, {BEAMS}, {CACHE_POSITION}] and {LOGITS}"
        )


def _states_shape(model: Model, frames: int) -> Shape:
    """Return the shape of the encoder's output: the model's own, if static.

    Raises:
        ModelError: the number of frames differs from the option, or channels are unknown.
    """
    (value,) = [port.value for port in model.inputs if port.name == ENCODER_STATES]
    shape = shape_of(value)
    if len(shape) != 3 or shape[2] <= 0 or shape[1] not in (-1, frames):
        raise ModelError(
            f"{ENCODER_STATES} is {list(shape)}, not [1, {frames}, channels]; set "
            "NPUW_WHISPER_ENCODER_LEN to the encoder's number of frames"
        )
    return 1, frames, shape[2]


def _take_positions(model: Model, tokens: int, past: int, capacity: int) -> None:
    """Look up position embeddings by an input, and let other ops count rows.

    Raises:
        ModelError: there are no position embeddings, or fewer than ``capacity``.
    """
    lookups = [op for op in model.body.ops if isinstance(op, Gather) and _is_lookup(model, op)]
    if not lookups:
        raise ModelError("NPUW_WHISPER: the decoder has no lookup of position embeddings")
    positions = model.add_input(POSITIONS, tensor("i64", (1, tokens)))
    for op in lookups:
        known = shape_of(op.data)[0]
        if known < capacity:
            raise ModelError(
                f"the decoder has embeddings of {known} positions; {capacity} are needed"
            )
        g, indices = GraphBuilder(model, op), positions
        if len(shape_of(op.indices)) == 1:
            indices = g.reshape(indices, -1)
        if element_of(op.indices) != "i64":
            indices = g.convert(indices, element_of(op.indices))
        op.operands[1] = indices
    value = model.find_input(CACHE_POSITION)
    if value is not None:
        first = model.body.first_op
        assert first is not None  # a lookup at least
        rows = np.arange(past, past + tokens, dtype=np.int64)
        value.replace_all_uses_with(GraphBuilder(model, first).constant(rows))
        model.remove_input(CACHE_POSITION)


def _is_lookup(model: Model, op: Gather) -> bool:
    """Return whether an op looks up rows of a table by token positions."""
    if element_of(op.data) not in FLOATS or len(shape_of(op.data)) != 2:
        return False
    counted = {port.value for port in model.inputs if port.name == CACHE_POSITION}
    sources = behind([op.indices], (ShapeOf,))
    return any(value in counted or isinstance(value.owner, Range) for value in sources)


def _take_mask(model: Model, others: list[OvOp], rows: int) -> None:
    """Mask rows in self-attention where a new input is 0.

    Args:
        model: changed in place.
        others: attention ops to leave as they are.
        rows: number of stored and new rows.

    Raises:
        ModelError: self-attention has no mask [1, 1, tokens, rows].
    """
    ops = [op for op in model.body.ops if isinstance(op, ScaledDotProductAttention)]
    own = [op for op in ops if op not in others]
    if not own:
        raise ModelError("NPUW_WHISPER: the decoder has no self-attention")
    argument = model.add_input(MASK, tensor("i64", (1, rows)))
    joined: dict[SSAValue, SSAValue] = {}
    for op in own:
        if op.mask is None or len(shape_of(op.mask)) != 4 or int_value(op.causal):
            raise ModelError(f"{op.described} has no mask [1, 1, tokens, rows]")
        if op.mask not in joined:
            joined[op.mask] = _joined(GraphBuilder(model, op), op.mask, argument)
        op.operands[3] = joined[op.mask]


def _joined(g: GraphBuilder, mask: SSAValue, argument: SSAValue) -> SSAValue:
    """Return a mask combined with an input: positions stay visible where the input is 1."""
    in_use = g.convert(g.unsqueeze(argument, 1, 2), "boolean")
    if element_of(mask) == "boolean":
        return g.op(LogicalAnd, mask, in_use)
    masked = g.constant(np.full((1, 1, 1, 1), _MASKED, np.float32))
    if element_of(mask) != "f32":
        masked = g.convert(masked, element_of(mask))
    return g.op(Select, in_use, mask, masked)
