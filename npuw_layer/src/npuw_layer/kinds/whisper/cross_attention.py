"""The K and V of cross-attention: made once of the audio, then only read.

The stateful decoder keeps them in variables that start as products of ``encoder_hidden_states`` and
never change. Of the static models the one that reads the prompt computes and assigns them, those
that generate read them: the products are not there any more.

Source: fact sheet npuw §a.3 (what the original's preparation of Whisper does with these variables).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.attention import ScaledDotProductAttention
from compiler_layer.dialects.ov.op import int_attr, int_value
from compiler_layer.dialects.ov.reduce import Softmax
from compiler_layer.dialects.ov.state import Assign, ReadValue
from compiler_layer.dialects.ov.types import Shape, element_of, shape_of, tensor
from compiler_layer.model import Model, Variable
from compiler_layer.rewriting.dead_code import remove_dead_code
from compiler_layer.rewriting.match import scalar_of
from npuw_layer.errors import ModelError
from npuw_layer.traits.cross_attention.names import ENCODER_STATES, cross_variable, scores_output

_TOKEN_MAJOR = (0, 2, 1, 3)
"""From [1, heads, frames, width] to [1, frames, heads, width], as caches lie, and back."""


@dataclass(frozen=True, slots=True)
class CrossCache:
    """The K or V of one layer's cross-attention.

    Attributes:
        name: what its variable is called in static models.
        computed: what it is made of ``encoder_hidden_states``, [1, heads, frames, width].
    """

    name: str
    computed: SSAValue


@dataclass(frozen=True, slots=True)
class CrossAttention:
    """All cross-attention of a decoder.

    Attributes:
        layers: the attention op of each layer, in their order.
        caches: K and V of each.
    """

    layers: Sequence[ScaledDotProductAttention]
    caches: Sequence[CrossCache]


def take_cross_attention(model: Model) -> CrossAttention:
    """Find cross-attention, and take its variables out of a stateful decoder.

    Args:
        model: changed in place: attention reads what the variables started as.

    Raises:
        ModelError: there is none, or a variable is read by something else.
    """
    layers: list[ScaledDotProductAttention] = []
    caches: list[CrossCache] = []
    found: dict[SSAValue, Variable] = {
        v.read.output: v for v in model.variables() if v.read is not None and _is_kept(v)
    }
    for op in model.body.ops:
        if isinstance(op, ScaledDotProductAttention) and op.k in found:
            if op.v not in found:
                raise ModelError(f"{op.described} attends to the audio with a V that changes")
            for part, value in (("key", op.k), ("value", op.v)):
                caches.append(_cache(found.pop(value), cross_variable(len(layers), part)))
            layers.append(op)
    if found or not layers:
        what = f"variable {next(iter(found.values())).name!r}" if found else "no variable"
        raise ModelError(
            f"{what} is K or V of cross-attention; export the decoder with "
            "optimum-cli export openvino --task automatic-speech-recognition-with-past"
        )
    for variable in [v for v in model.variables() if _is_kept(v)]:
        assert variable.read is not None  # _is_kept saw to it
        assert variable.assign is not None
        assert variable.read.init is not None
        Rewriter.replace_op(variable.assign, [], [variable.assign.value])
        Rewriter.replace_op(variable.read, [], [variable.read.init])
    return CrossAttention(layers, caches)


def assign_cross_caches(model: Model, cross: CrossAttention) -> None:
    """Let a static model give out what it computed of the audio."""
    g = GraphBuilder(model)
    for cache in cross.caches:
        rows = g.transpose(cache.computed, *_TOKEN_MAJOR)
        g.add(Assign.make([rows], variable_id=StringAttr(cache.name)))


def read_cross_caches(model: Model, cross: CrossAttention, frames: int) -> None:
    """Let a static model read what another one computed; what computes it goes.

    Raises:
        ModelError: heads or their width are not known.
    """
    first = model.body.first_op
    assert first is not None  # a model returns
    g = GraphBuilder(model, first)
    for cache in cross.caches:
        _, heads, _, width = shape_of(cache.computed)
        if heads <= 0 or width <= 0:
            raise ModelError(f"{cache.name} has no static heads and width")
        read = _read_value(cache.name, element_of(cache.computed), (1, frames, heads, width))
        rows = g.transpose(g.add(read).output, *_TOKEN_MAJOR)
        cache.computed.replace_all_uses_with(rows)
    remove_dead_code(model)
    model.remove_input(ENCODER_STATES)


def give_out_scores(model: Model, cross: CrossAttention) -> None:
    """Add outputs for what each layer attends to (NPUW_WHISPER_DECOMPOSE_SDPA).

    Word-level timestamps are made of them: q · kᵀ · scale, before they are made probabilities.

    Raises:
        ModelError: attention is masked by more than a number, or has no known scale.
    """
    outputs = [(port.name, port.value) for port in model.outputs]
    for layer, op in enumerate(cross.layers):
        scale = scalar_of(op.scale) if op.scale is not None else shape_of(op.q)[-1] ** -0.5
        mask = 0.0 if op.mask is None else scalar_of(op.mask)
        if scale is None or mask != 0 or int_value(op.causal):
            raise ModelError(f"{op.described}: scores of masked attention are not given out")
        g = GraphBuilder(model, op)
        scores = g.matmul(g.times(op.q, scale), op.k, transpose_b=True)
        weights = g.op(Softmax, scores, axis=int_attr(3))
        outputs.append((scores_output(layer), scores))
        Rewriter.replace_op(op, [], [g.matmul(weights, op.v, transpose_b=False)])
    model.set_outputs(outputs)


def _is_kept(variable: Variable) -> bool:
    """Whether a variable stays as it starts."""
    read, assign = variable.read, variable.assign
    if read is None or assign is None or read.init is None:
        return False
    return assign.value is read.output


def _cache(variable: Variable, name: str) -> CrossCache:
    read = variable.read
    assert read is not None  # _is_kept saw to it
    assert read.init is not None
    if len(shape_of(read.output)) != len(_TOKEN_MAJOR):
        raise ModelError(f"variable {variable.name!r} is not [batch, heads, frames, width]")
    return CrossCache(name, read.init)


def _read_value(name: str, element: str, shape: Shape) -> ReadValue:
    return ReadValue(
        operands=[[]],
        properties={"variable_id": StringAttr(name)},
        result_types=[tensor(element, shape)],
    )
