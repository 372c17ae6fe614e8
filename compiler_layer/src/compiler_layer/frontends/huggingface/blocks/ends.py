"""Embedding and LM head: from token ids to hidden states, and from these to logits."""

from __future__ import annotations

from xdsl.ir import SSAValue

from compiler_layer.dialects.ov import elementwise
from compiler_layer.frontends.huggingface.blocks.attention import soft_cap
from compiler_layer.frontends.huggingface.blocks.modules import Scope, norm


def embedding_table(s: Scope) -> SSAValue:
    """Return the embeddings of all tokens, f32 [vocab_size, hidden_size]."""
    shape = (s.decoder.vocab_size, s.decoder.hidden_size)
    return s.weights.get(f"{s.decoder.names.embedding}.weight", shape)


def embed(s: Scope, table: SSAValue, ids: SSAValue, position_ids: SSAValue) -> SSAValue:
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


def logits(s: Scope, table: SSAValue, x: SSAValue) -> SSAValue:
    """Return the logits of each token, [B, M, vocab_size]."""
    g, decoder, name = s.g, s.decoder, s.decoder.names.head
    x = norm(s, x, decoder.norm, decoder.names.norm)
    if decoder.tied_head:
        head = table
    else:
        head = s.weights.get(f"{name}.weight", (decoder.vocab_size, decoder.hidden_size))
    product = g.times(g.matmul(x, head, transpose_b=True, name=name), decoder.logit_scale)
    return soft_cap(g, product, decoder.logit_softcap)
