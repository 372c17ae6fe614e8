"""The graph of a model with paged attention for a fixed number of tokens.

Caches and tables are declared as a single block and a single sequence. Only the programs of
attention read them, and these take any number (``attention``).
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import OpResult, SSAValue
from xdsl.rewriter import Rewriter

from compiler_layer.dialects.ov.paged_attention import PagedAttentionExtension
from compiler_layer.dialects.ov.shape import Reshape
from compiler_layer.dialects.ov.types import Shape, is_static, shape_of, tensor
from compiler_layer.errors import CompilerError
from compiler_layer.model import Model, Port
from compiler_layer.rewriting.shapes import specialize_shapes
from npuw_layer.errors import ModelError
from npuw_layer.kinds.paged.lengths import sampled_rows
from npuw_layer.kinds.paged.names import (
    BLOCK_INDICES,
    BLOCK_INDICES_BEGINS,
    OPTION,
    PAST_LENS,
    SUBSEQUENCE_BEGINS,
    TABLES,
    Role,
    role_of,
)
from npuw_layer.llm.graph.vocabulary import record_vocabulary

_BLOCK_ROWS = 32
"""Default rows of a block, as in OpenVINO's CPU plugin."""

_ONE_SEQUENCE: Mapping[str, Shape] = {
    PAST_LENS: (1,),
    SUBSEQUENCE_BEGINS: (2,),
    BLOCK_INDICES: (1,),
    BLOCK_INDICES_BEGINS: (2,),
}


def variant(whole: Model, tokens: int, precision: str) -> Model:
    """Return the static model for a number of tokens.

    Args:
        whole: the model as read; not changed.
        tokens: number of tokens per run.
        precision: type of the caches, f32 or f16.

    Raises:
        ModelError: the model has no paged attention, or is not supported.
    """
    model = whole.clone()
    attentions = [op for op in model.body.ops if isinstance(op, PagedAttentionExtension)]
    if not attentions:
        raise ModelError(
            f"{OPTION} = YES: the model has no PagedAttentionExtension; apply OpenVINO's "
            "paged_attention_transformation, or leave the option out"
        )
    declared = {port.name: shape_of(port.value) for port in model.inputs}
    if not any(role_of(name) is Role.TOKENS for name in declared):
        raise ModelError(f"{OPTION} = YES: the model has no input with a row per token")
    try:
        for op in attentions:
            op.check()
        model.set_input_shapes({port.name: _shape(port, tokens) for port in model.inputs})
        specialize_shapes(model)
    except (CompilerError, ValueError) as error:
        raise ModelError(f"{OPTION} = YES: {error}") from error
    names = {port.value: port.name for port in model.inputs}
    for op in attentions:
        tables = tuple(names.get(value, "") for value in op.tables)
        if tables != TABLES:
            raise ModelError(
                f"{OPTION} = YES: {op.described} has tables other than {', '.join(TABLES)}"
            )
        for cache, rows in ((op.key_cache, op.k), (op.value_cache, op.v)):
            name = names.get(cache, "")
            if role_of(name) is not Role.CACHE:
                raise ModelError(f"{OPTION} = YES: a cache is {name or 'computed'}, not an input")
            kind = tensor(precision, _cache_shape(name, declared[name], rows))
            Rewriter.replace_value_with_new_type(cache, kind)
    model.refresh_signature()
    _check_outputs(model, tokens)
    record_vocabulary(model, whole)
    return model


def _cache_shape(name: str, declared: Shape, rows: SSAValue) -> Shape:
    """Return the shape of one block of a cache, whose heads the file leaves open.

    The transformation leaves number and width of heads to the runtime; but it makes k and v from
    tensors [..., heads, channels], which it flattens.

    Args:
        name: name of the cache.
        declared: shape in the file, [blocks, heads, rows of a block, channels].
        rows: k or v, [tokens, heads · channels], of known shape.

    Returns:
        [1, heads, rows of a block, channels].

    Raises:
        ModelError: the number of heads is unknown.
    """
    _, heads, block_rows, channels = declared
    source = rows.op if isinstance(rows, OpResult) else None
    flattened = shape_of(source.operands[0]) if isinstance(source, Reshape) else ()
    if len(flattened) > 2:
        heads = flattened[-2] if heads < 0 else heads
        channels = flattened[-1] if channels < 0 else channels
    if heads <= 0 or heads * channels != shape_of(rows)[1] or not block_rows:
        raise ModelError(
            f"{OPTION} = YES: cache {name!r} is {list(declared)} for {shape_of(rows)[1]} channels, "
            f"so its number of heads is unknown; reshape it to [?, heads, {_BLOCK_ROWS}, channels] "
            "before saving the model"
        )
    return 1, heads, _BLOCK_ROWS if block_rows < 0 else block_rows, channels


def _shape(port: Port, tokens: int) -> Shape:
    """Return the static shape of an input."""
    shape = shape_of(port.value)
    match role_of(port.name):
        case Role.TABLE:
            return _ONE_SEQUENCE[port.name]
        case Role.CACHE:
            return tuple(max(d, 1) for d in shape)  # replaced by ``_cache_shape`` later
        case Role.SAMPLED if len(shape) == 1:
            return (sampled_rows(tokens),)
        case Role.TOKENS if shape[:1] == (-1,) and is_static(shape[1:]):
            return (tokens, *shape[1:])
        case Role.CONTEXT:
            return ()
        case _:
            raise ModelError(
                f"{OPTION} = YES: input {port.name!r} is {list(shape)}, without a row per token; "
                "reshape it to [?, …]"
            )


def _check_outputs(model: Model, tokens: int) -> None:
    """Check that outputs have a row for each token, or for each sampled token."""
    sampled = any(role_of(port.name) is Role.SAMPLED for port in model.inputs)
    rows = sampled_rows(tokens) if sampled else tokens
    for port in model.outputs:
        if shape_of(port.value)[:1] != (rows,):
            raise ModelError(
                f"{OPTION} = YES: output {port.name!r} is {list(shape_of(port.value))} for "
                f"{tokens} tokens, without a row per{' sampled' * sampled} token"
            )
