"""Rebuild of a causal decoder without KV cache for reading in chunks: K and V become variables.

The result has the form of an exported language model without a head. Each chunk's keys and values
follow the stored ones, the mask covers stored and new tokens, and positions are an input, as they
no longer start at 0.

Source: NPUW's PrepareTextEmbeddingModel (docs/reference/npuw.md#embedding-models).
"""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import shape, slicing
from compiler_layer.dialects.ov.attention import ScaledDotProductAttention
from compiler_layer.dialects.ov.constant import Constant, ints_of
from compiler_layer.dialects.ov.op import OvOp, bool_attr
from compiler_layer.dialects.ov.reduce import CumSum
from compiler_layer.dialects.ov.state import Assign
from compiler_layer.dialects.ov.strided_slice import StridedSlice
from compiler_layer.dialects.ov.types import element_of, shape_of, tensor
from compiler_layer.model import Model
from compiler_layer.rewriting.dead_code import remove_dead_code
from compiler_layer.rewriting.match import producer
from npuw_layer.errors import ModelError, NotCausal
from npuw_layer.kinds.embedding.attends import is_causal
from npuw_layer.kinds.embedding.options import TextOptions
from npuw_layer.kinds.embedding.whole import check_ports
from npuw_layer.llm.graph.causal_mask import causal_mask
from npuw_layer.llm.graph.computed import behind
from npuw_layer.llm.graph.stored_rows import read_value
from npuw_layer.llm.plan.stages import lengths_of
from npuw_layer.options import Options
from npuw_layer.tensors.cache_axes import USUAL
from npuw_layer.tensors.names import EMBED, IDS, LAST_HIDDEN_STATE, MASK, POSITIONS

_RANK = 4


def prepare_text(model: Model, options: Options) -> Model:
    """Rebuild a model as a stateful decoder, if it is to be read in chunks.

    Args:
        model: the exported model; it may be changed.
        options: task and lengths.

    Returns:
        A stateful graph, which is split like a language model; or a stateless graph, if texts are
        read whole.

    Raises:
        NotCausal: options require chunks or a separate head, but the model must be read whole.
        ModelError: the model does not read a text.
    """
    if model.variables():
        outputs = [port.name for port in model.outputs]
        if not options.group(TextOptions).text_embed:
            return model
        if outputs != [LAST_HIDDEN_STATE]:
            raise ModelError(
                f"NPUW_TEXT_EMBED: the model has outputs {outputs}, not {LAST_HIDDEN_STATE} alone; "
                "export it with optimum-cli export openvino --task feature-extraction"
            )
        model.set_outputs([(EMBED, model.outputs[0].value)])
        return model
    check_ports(model)
    chunks = lengths_of(options).chunk is not None
    if options.group(TextOptions).text_rerank and (chunks or options.cuts_head):
        raise NotCausal("the model has no KV cache; export it as a language model to get chunks")
    if chunks:
        rebuild(model)
    return model


def rebuild(model: Model) -> None:
    """Add variables for K and V to a decoder, and attend to the stored rows.

    Args:
        model: input_ids and attention_mask [batch, tokens], perhaps position_ids, and
            last_hidden_state; changed in place. The result has batch 1, position_ids i64 [1,
            tokens], variables for K and V of each layer, and hidden states as EMBED.

    Raises:
        NotCausal: the model cannot be read in chunks, for the stated reason; it is left modified.
    """
    attentions = [op for op in model.body.ops if isinstance(op, ScaledDotProductAttention)]
    _check(model, attentions)
    positions = _positions(model)
    inputs = {port.name: port.value for port in model.inputs}
    mask = causal_mask(GraphBuilder(model, model.body.first_op), inputs[IDS], inputs[MASK])
    cached: dict[SSAValue, SSAValue] = {}
    for layer, op in enumerate(attentions):
        _store(model, op, 1, f"past_key_values.{layer}.keypresent.{layer}.key", cached)
        _store(model, op, 2, f"past_key_values.{layer}.valuepresent.{layer}.value", cached)
        _attend(model, op, mask)
    remove_dead_code(model)
    _count_positions(model, positions, {value.owner for value in behind([mask])})
    remove_dead_code(model)
    _check_rest(model)
    for op in model.body.ops:
        if isinstance(op, OvOp):
            op.refresh_types()
    model.set_outputs([(EMBED, model.outputs[0].value)])


def _check(model: Model, attentions: list[ScaledDotProductAttention]) -> None:
    inputs, outputs = ([port.name for port in ports] for ports in (model.inputs, model.outputs))
    if not {IDS, MASK} <= {*inputs} <= {IDS, MASK, POSITIONS} or outputs != [LAST_HIDDEN_STATE]:
        raise NotCausal(f"the model has inputs {inputs} and outputs {outputs}")
    if not attentions:
        raise NotCausal("the model has no ScaledDotProductAttention")
    masks: set[SSAValue | None] = set()
    for op in attentions:
        if op.mask in masks:
            continue
        masks.add(op.mask)
        if not is_causal(model, op):
            raise NotCausal(f"{op.described}: the attention is not causal")


def _positions(model: Model) -> SSAValue:
    """Return the input of positions; add it if the model has none."""
    return model.find_input(POSITIONS) or model.add_input(POSITIONS, tensor("i64", (-1, -1)))


def _store(
    model: Model,
    op: ScaledDotProductAttention,
    place: int,
    name: str,
    cached: dict[SSAValue, SSAValue],
) -> None:
    """Put the stored rows of K or V before the new ones; several layers may read them."""
    repeat = _repeats(op.operands[place])
    rows = repeat[0].operands[0] if repeat else op.operands[place]
    if rows in cached.values():
        return  # another attention shares the repeated heads
    if rows not in cached:
        cached[rows] = _variable(model, rows, name)
    if not repeat:
        op.operands[place] = cached[rows]
        return
    unsqueeze, broadcast, reshape = repeat
    heads, stored = shape_of(reshape.results[0])[1], shape_of(rows)[1]
    unsqueeze.operands[0] = cached[rows]
    broadcast.operands[1] = GraphBuilder(model, broadcast).ints(1, 1, heads // stored, 1, 1)
    for each in repeat:
        each.refresh_types()


def _repeats(value: SSAValue) -> tuple[OvOp, OvOp, OvOp] | None:
    """Return the ops that repeat KV heads for several queries, first to last; None without them."""
    reshape = producer(value, shape.Reshape)
    broadcast = None if reshape is None else producer(reshape.x, shape.Broadcast)
    unsqueeze = None if broadcast is None else producer(broadcast.x, shape.Unsqueeze)
    if reshape is None or broadcast is None or unsqueeze is None:
        return None
    known = ints_of(unsqueeze.axes) == [2] and len(shape_of(unsqueeze.x)) == _RANK
    if not known or min(shape_of(reshape.output)[1], shape_of(unsqueeze.x)[1]) <= 0:
        return None
    return unsqueeze, broadcast, reshape


def _variable(model: Model, rows: SSAValue, name: str) -> SSAValue:
    """Store rows in a variable; return the stored rows followed by the new ones."""
    dims = shape_of(rows)
    owner = rows.owner
    if len(dims) != _RANK or min(dims[1], dims[3]) <= 0 or not isinstance(owner, Operation):
        raise NotCausal(f"K or V of {list(dims)} has an unknown number or width of heads")
    after = owner.next_op
    assert after is not None  # a return follows at least
    g = GraphBuilder(model, after)
    read = read_value(name, element_of(rows), (1, dims[1], -1, dims[3]))
    joined = g.concat([g.add(read).output, rows], USUAL.tokens)
    GraphBuilder(model).add(Assign.make([joined], variable_id=StringAttr(name)))
    return joined


def _attend(model: Model, op: ScaledDotProductAttention, mask: SSAValue) -> None:
    """Replace the mask of an attention."""
    scale = [] if op.scale is None else [op.scale]
    kind = element_of(op.q)
    g = GraphBuilder(model, op)
    own = mask if kind == element_of(mask) else g.convert(mask, kind)
    made = ScaledDotProductAttention.make(
        [op.q, op.k, op.v, [own, *scale]], causal=bool_attr(False)
    )
    made.attributes.update(op.attributes)
    Rewriter.replace_op(op, [], [g.add(made).output])


def _count_positions(model: Model, positions: SSAValue, own: set[Operation | Block]) -> None:
    """Replace ranges that count tokens from 0 by the input of positions.

    Args:
        model: changed in place.
        positions: the input.
        own: ops of the new mask, which count rows.

    Raises:
        NotCausal: a range counts something else.
    """
    for op in model.ops:
        if not isinstance(op, shape.Range) or op in own:
            continue
        start, step = ints_of(op.start), ints_of(op.step)
        if start != [0] or step != [1]:
            raise NotCausal(f"{op.described} does not count tokens from 0")
        g = GraphBuilder(model, op)
        for use in list(op.output.uses):
            row = use.operation
            if isinstance(row, shape.Unsqueeze) and ints_of(row.axes) == [0]:
                row.output.replace_all_uses_with(_typed(g, positions, row.output))
        if op.output.uses:
            flat = g.reshape(_typed(g, positions, op.output), -1)
            op.output.replace_all_uses_with(flat)


def _typed(g: GraphBuilder, positions: SSAValue, like: SSAValue) -> SSAValue:
    element = element_of(like)
    return positions if element == "i64" else g.convert(positions, element)


def _check_rest(model: Model) -> None:
    """Check that no other op depends on the number of earlier tokens.

    Raises:
        NotCausal: an op does, such as a slice of a position table to the text's length.
    """
    for op in model.body.ops:
        if isinstance(op, CumSum) or (
            isinstance(op, slicing.Slice | StridedSlice)
            and isinstance(op.operands[0].owner, Constant)
            and -1 in shape_of(op.results[0])
        ):
            raise NotCausal(f"{op.described} counts tokens in an unsupported way")
