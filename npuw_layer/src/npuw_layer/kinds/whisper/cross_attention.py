"""The K and V of cross-attention: computed once from the audio, then only read.

The stateful decoder keeps them in variables, which are initialised by matmuls of
``encoder_hidden_states`` and never change. Of the static models, prefill computes and assigns them;
generate models read them, and no longer contain these matmuls.

Source: docs/reference/npuw.md#whisper (NPUW's preparation of Whisper rewrites these variables).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.attention import ScaledDotProductAttention
from compiler_layer.dialects.ov.op import int_attr, int_value
from compiler_layer.dialects.ov.reduce import Softmax
from compiler_layer.dialects.ov.state import Assign
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.model import Model, Variable
from compiler_layer.rewriting.dead_code import remove_dead_code
from compiler_layer.rewriting.match import scalar_of
from npuw_layer.errors import ModelError
from npuw_layer.llm.graph.stored_rows import read_value
from npuw_layer.traits.cross_attention.names import ENCODER_STATES, cross_variable, scores_output

_TOKEN_MAJOR = (0, 2, 1, 3)
"""Axes from [1, heads, frames, width] to [1, frames, heads, width], the cache layout, and back."""


@dataclass(frozen=True, slots=True)
class CrossAttention:
    """All cross-attention of a decoder.

    Attributes:
        layers: the attention op of each layer, in order.
        caches: value of each layer's K and V, [1, heads, frames, width], computed from
            ``encoder_hidden_states``; by the name of its variable in static models.
    """

    layers: Sequence[ScaledDotProductAttention]
    caches: Mapping[str, SSAValue]


def take_cross_attention(model: Model) -> CrossAttention:
    """Find cross-attention, and remove its variables from a stateful decoder.

    Args:
        model: changed in place: attention reads the initial values of the variables.

    Raises:
        ModelError: there is no cross-attention, or another op reads such a variable.
    """
    layers: list[ScaledDotProductAttention] = []
    caches: dict[str, SSAValue] = {}
    found: dict[SSAValue, Variable] = {
        v.read.output: v for v in model.variables() if v.read is not None and _is_kept(v)
    }
    for op in model.body.ops:
        if isinstance(op, ScaledDotProductAttention) and op.k in found:
            if op.v not in found:
                raise ModelError(f"{op.described} attends to the audio, but its V changes")
            for part, value in (("key", op.k), ("value", op.v)):
                caches[cross_variable(len(layers), part)] = _computed(found.pop(value))
            layers.append(op)
    if found or not layers:
        what = f"variable {next(iter(found.values())).name!r}" if found else "no variable"
        raise ModelError(
            f"{what} is the K or V of cross-attention; export the decoder with optimum-cli export "
            "openvino --task automatic-speech-recognition-with-past"
        )
    for variable in [v for v in model.variables() if _is_kept(v)]:
        assert variable.read is not None  # ensured by _is_kept
        assert variable.assign is not None
        assert variable.read.init is not None
        Rewriter.replace_op(variable.assign, [], [variable.assign.value])
        Rewriter.replace_op(variable.read, [], [variable.read.init])
    return CrossAttention(layers, caches)


def assign_cross_caches(model: Model, cross: CrossAttention) -> None:
    """Assign the K and V that a static model computes to variables."""
    g = GraphBuilder(model)
    for name, computed in cross.caches.items():
        rows = g.transpose(computed, *_TOKEN_MAJOR)
        g.add(Assign.make([rows], variable_id=StringAttr(name)))


def read_cross_caches(model: Model, cross: CrossAttention, frames: int) -> None:
    """Replace the computation of K and V in a static model by reads of variables.

    Raises:
        ModelError: the heads or their width are unknown.
    """
    first = model.body.first_op
    assert first is not None  # a return op at least
    g = GraphBuilder(model, first)
    for name, computed in cross.caches.items():
        _, heads, _, width = shape_of(computed)
        if heads <= 0 or width <= 0:
            raise ModelError(f"{name} has no static heads and width")
        read = read_value(name, element_of(computed), (1, frames, heads, width))
        computed.replace_all_uses_with(g.transpose(g.add(read).output, *_TOKEN_MAJOR))
    remove_dead_code(model)
    model.remove_input(ENCODER_STATES)


def give_out_scores(model: Model, cross: CrossAttention) -> None:
    """Add an output of scores for each layer (NPUW_WHISPER_DECOMPOSE_SDPA).

    Word-level timestamps use these scores: q · kᵀ · scale, before the softmax.

    Raises:
        ModelError: the mask is not zero, or the scale is unknown.
    """
    outputs = [(port.name, port.value) for port in model.outputs]
    for layer, op in enumerate(cross.layers):
        scale = scalar_of(op.scale) if op.scale is not None else shape_of(op.q)[-1] ** -0.5
        mask = 0.0 if op.mask is None else scalar_of(op.mask)
        if scale is None or mask != 0 or int_value(op.causal):
            raise ModelError(f"{op.described}: scores of masked attention are not supported")
        g = GraphBuilder(model, op)
        scores = g.matmul(g.times(op.q, scale), op.k, transpose_b=True)
        weights = g.op(Softmax, scores, axis=int_attr(3))
        outputs.append((scores_output(layer), scores))
        Rewriter.replace_op(op, [], [g.matmul(weights, op.v, transpose_b=False)])
    model.set_outputs(outputs)


def _is_kept(variable: Variable) -> bool:
    """Return whether a variable keeps its initial value."""
    read, assign = variable.read, variable.assign
    if read is None or assign is None or read.init is None:
        return False
    return assign.value is read.output


def _computed(variable: Variable) -> SSAValue:
    """Return the value that a kept variable is initialised with."""
    read = variable.read
    assert read is not None  # ensured by _is_kept
    assert read.init is not None
    if len(shape_of(read.output)) != len(_TOKEN_MAJOR):
        raise ModelError(f"variable {variable.name!r} is not [batch, heads, frames, width]")
    return read.init
