"""Reader of Hugging Face folders; the graph is the one that the exporter would write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import elementwise
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.errors import BadModel
from compiler_layer.frontends.huggingface.blocks.attention import (
    Cache,
    Context,
    read_cache,
    soft_cap,
)
from compiler_layer.frontends.huggingface.blocks.layer import layer
from compiler_layer.frontends.huggingface.blocks.mask import masks
from compiler_layer.frontends.huggingface.blocks.modules import Scope, norm
from compiler_layer.frontends.huggingface.blocks.rotary import angles
from compiler_layer.frontends.huggingface.decoder import Decoder
from compiler_layer.frontends.huggingface.families import read_decoder
from compiler_layer.frontends.huggingface.safetensors import read_folder_tensors
from compiler_layer.frontends.huggingface.weights import Weights
from compiler_layer.model import Model

_INPUTS = (
    ("input_ids", tensor("i64", (-1, -1))),
    ("attention_mask", tensor("i64", (-1, -1))),
    ("position_ids", tensor("i64", (-1, -1))),
    ("beam_idx", tensor("i32", (-1,))),
)


def read_folder(path: str | Path) -> Model:
    """Read a Hugging Face folder of a decoder-only language model.

    Args:
        path: the folder, with ``config.json`` and a checkpoint (``checkpoint_files``).

    Raises:
        BadModel: a file or tensor is missing or damaged, or a shape contradicts the config.
        UnsupportedModel: the architecture, or a variation of it, is not supported.
    """
    folder = Path(path)
    decoder = read_decoder(folder / "config.json")
    stored = read_folder_tensors(folder)
    if decoder.stored_head_precedes and f"{decoder.names.head}.weight" in stored:
        decoder = replace(decoder, tied_head=False)
    return write_decoder(decoder, lambda g: Weights(folder, stored, g), folder)


def write_decoder(
    decoder: Decoder, weights_of: Callable[[GraphBuilder], Weights], source: Path
) -> Model:
    """Write a decoder as a stateful graph.

    Args:
        decoder: the description of the model.
        weights_of: returns the weights, as constants of the graph under construction.
        source: the model's name in errors.

    Raises:
        BadModel: a weight is missing or wrong, or the config's numbers are inconsistent.
    """
    model, arguments = Model.build(_INPUTS)
    g = GraphBuilder(model)
    try:
        result = _write(Scope(g, weights_of(g), decoder), *arguments)
    except ValueError as error:
        raise BadModel(source, f"the config's numbers are inconsistent: {error}") from None
    model.set_outputs([("logits", result)])
    return model


def _write(
    s: Scope, ids: SSAValue, attention_mask: SSAValue, position_ids: SSAValue, beam_idx: SSAValue
) -> SSAValue:
    """Write the complete decoder; return its logits."""
    g, layers = s.g, s.decoder.layers
    table = _embedding_table(s)
    x = _embed(s, table, ids, position_ids)
    kinds = dict.fromkeys(each.rotary for each in layers if each.rotary is not None)
    turns = {kind: angles(g, kind, position_ids) for kind in kinds}

    def cache(number: int, kind: str) -> Cache:
        return read_cache(g, s.decoder.attention, ids, beam_idx, f"{number}.{kind}")

    caches = [(cache(number, "key"), cache(number, "value")) for number in range(len(layers))]
    windows = [each.window for each in layers]
    additive = masks(g, attention_mask, caches[0][0].rows, ids, windows)
    for number, (each, (keys, values)) in enumerate(zip(layers, caches, strict=True)):
        turn = None if each.rotary is None else turns[each.rotary]
        x = layer(s.layer(number), x, Context(turn, additive[each.window], keys, values))
    return _logits(s, table, x)


def _embedding_table(s: Scope) -> SSAValue:
    """Return the embeddings of all tokens, f32 [vocab_size, hidden_size]."""
    shape = (s.decoder.vocab_size, s.decoder.hidden_size)
    return s.weights.get(f"{s.decoder.names.embedding}.weight", shape)


def _embed(s: Scope, table: SSAValue, ids: SSAValue, position_ids: SSAValue) -> SSAValue:
    """Return the initial hidden states of tokens and positions, [B, M, hidden_size]."""
    g, names = s.g, s.decoder.names
    x = g.gather(table, g.convert(ids, "i32"), 0, name=names.embedding)
    x = g.times(x, s.decoder.embedding_scale)
    if names.positions is None:
        return x
    shape = (s.decoder.positions, s.decoder.hidden_size)
    places = s.weights.get(f"{names.positions}.weight", shape)
    place = g.gather(places, g.convert(position_ids, "i32"), 0, name=names.positions)
    return g.op(elementwise.Add, x, place)


def _logits(s: Scope, table: SSAValue, x: SSAValue) -> SSAValue:
    """Return the logits of each token, [B, M, vocab_size]."""
    g, decoder, name = s.g, s.decoder, s.decoder.names.head
    x = norm(s, x, decoder.norm, decoder.names.norm)
    if decoder.tied_head:
        head = table
    else:
        head = s.weights.get(f"{name}.weight", (decoder.vocab_size, decoder.hidden_size))
    product = g.times(g.matmul(x, head, transpose_b=True, name=name), decoder.logit_scale)
    return soft_cap(g, product, decoder.logit_softcap)
