"""The stateful graph as static graphs that generate for several conversations at once.

Decoding is bound by reading weights: a row more costs little. The graph is that of a batch, with a
token of each of B conversations, but their caches stay apart: each *slot* has variables of its own,
so that it can be bound to the memory of whatever conversation is in it. Nothing is copied when
conversations come and go, and a slot's cache is a prefix of the conversation's, as it is with one.

The compiler never joins what lies apart: see ``lower-attention``.
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler_layer.model import Model
from compiler_layer.partition.repeated.attributes import add_repeated_ids, repeated_ids
from npuw_layer.errors import ModelError
from npuw_layer.llm.graph.cache_positions import compare_tokens, count_positions
from npuw_layer.llm.graph.head import Head, treat_head
from npuw_layer.llm.graph.split import check_ports, drop_beams, read_ids, store_caches, stored_ids
from npuw_layer.llm.graph.window_tables import compare_tables
from npuw_layer.llm.kv.kv_layout import PLAIN, KVLayout, Piece
from npuw_layer.llm.names import MASK, slot_variable
from npuw_layer.llm.request.token_inputs import check_slots
from npuw_layer.traits.alibi.key_biases import look_up_biases
from npuw_layer.traits.grouped_query.grouped_attention import take_apart
from npuw_layer.traits.long_rope.long_rope import told_shapes


def split_slots(
    model: Model,
    slots: int,
    past: int,
    head: Head = Head.ALL,
    layout: KVLayout = PLAIN,
) -> Model:
    """Make a static graph that takes one new token of each of several conversations.

    Args:
        model: the stateful graph; it is not changed.
        slots: conversations that it takes.
        past: rows of each one's caches.
        head: as for ``split``; CUT or ALL, which are the same for all slots.
        layout: as for ``split``.

    Returns:
        A graph with input_ids and position_ids i64 [slots, 1], attention_mask i64
        [slots, past + 1]; where windows slide, biases are looked up or the model counts tokens
        itself cache_position i64 [slots, 1]; and logits f32 [slots, 1, V] or what the head makes
        them of. For each variable of the stateful graph it reads one of each slot,
        ``slot_variable``, [1, past, heads, width], and assigns a single one of the old name,
        [1, slots, heads, width]: a new row of each slot; blocks, and V's with ``room``, as
        ``split`` says.

    Raises:
        ModelError: the graph is no language model with K and V caches, or windows or biases of it
            cannot be told apart by slot.
    """
    try:
        return _split(model.clone(), slots, past, head, layout)
    except RecursionError:
        raise ModelError("the graph's ops are nested too deeply") from None


def _split(clone: Model, slots: int, past: int, head: Head, layout: KVLayout) -> Model:
    inputs = check_ports(clone, 1)
    check_slots(inputs, [port.name for port in clone.outputs])
    take_apart(clone, 1, past, slots)
    compare_tokens(clone, 1, past, slots)
    count_positions(clone, 1, slots)
    look_up_biases(clone, 1, past, slots)
    compare_tables(clone, 1, past, slots)
    store_caches(clone, past, slots, layout)
    _name_slots(clone, slots, stored_ids(clone, layout), layout.pieces(past))
    drop_beams(clone)
    treat_head(clone, head, 1)
    shapes = {port.name: port.shape(slots, 1) for port in inputs}
    clone.set_input_shapes({**shapes, **told_shapes(clone, slots), MASK: (slots, past + 1)})
    return clone


def _name_slots(
    model: Model, slots: int, stored: Sequence[Sequence[str]], pieces: Sequence[Piece]
) -> None:
    """Tell a folded model what the variables of layers that it leaves out are called."""
    # Adapters are not in pieces.
    groups = [*read_ids(model, stored, pieces), *map(list, repeated_ids(model))]
    read = [
        [slot_variable(name, slot) for name in group] for group in groups for slot in range(slots)
    ]
    add_repeated_ids(model, [*stored, *read])
