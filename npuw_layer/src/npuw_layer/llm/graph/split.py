"""The stateful graph as static graphs: one that reads prompts, and some that generate.

What the split changes: shapes become static, a cache gives out only its new rows instead of all of
them, the LM head goes or computes only what is asked for, and caches are stored token by token.

Caches lie in memory as [1, tokens, heads, width], not [1, heads, tokens, width]: so the rows of a
token are contiguous, the cache of a smaller variant *is* the beginning of a larger one's, and the
new rows of a prompt may be given out right where they are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from xdsl.rewriter import Rewriter

from compiler_layer.dialects.ov.gather import Gather
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.model import Model, Port, Variable
from compiler_layer.partition.repeated.attributes import add_repeated_ids, repeated_ids
from npuw_layer.backends.protocols import TensorInfo
from npuw_layer.errors import ModelError
from npuw_layer.llm.graph.cache_axes import USUAL
from npuw_layer.llm.graph.cache_positions import compare_tokens, count_positions
from npuw_layer.llm.graph.head import Head, treat_head
from npuw_layer.llm.graph.open_dimensions import settle_dimensions
from npuw_layer.llm.graph.stored_float8 import take_scales
from npuw_layer.llm.graph.stored_floats import Scale, store_floats
from npuw_layer.llm.graph.stored_rows import SCALE_SUFFIX, Cache, store_plain, store_quantized
from npuw_layer.llm.graph.usual_axes import cache_join
from npuw_layer.llm.graph.value_caches import attended_caches, value_caches
from npuw_layer.llm.graph.window_tables import compare_tables
from npuw_layer.llm.kv.kv_layout import PLAIN, KVLayout, Piece
from npuw_layer.llm.names import (
    BEAMS,
    EMBED,
    LOGITS,
    MASK,
    slot_of,
    transposed_variable,
)
from npuw_layer.llm.request.token_inputs import (
    TOKENS,
    TokenInput,
    beside_tokens,
    ignored_inputs,
    token_inputs,
)
from npuw_layer.llm.request.token_outputs import token_outputs
from npuw_layer.traits.alibi.key_biases import look_up_biases
from npuw_layer.traits.grouped_query.grouped_attention import take_apart
from npuw_layer.traits.images.deepstack import spread_visual_rows
from npuw_layer.traits.linear_states.names import is_linear_cache
from npuw_layer.traits.linear_states.short_convolution import continue_convolutions
from npuw_layer.traits.long_rope.long_rope import told_shapes
from npuw_layer.traits.long_rope.names import long_from
from npuw_layer.traits.lora.names import adapter_name
from npuw_layer.traits.trees.graph import tree_shapes
from npuw_layer.traits.trees.names import TREE_MASK

_CACHE_RANK = 4


def split(
    model: Model,
    tokens: int,
    past: int,
    head: Head = Head.ALL,
    layout: KVLayout = PLAIN,
    generates: bool = False,
) -> Model:
    """Make a static graph that takes ``tokens`` new tokens after ``past`` stored ones.

    Args:
        model: the stateful graph, with the axes ``USUAL``; it is not changed.
        tokens: new tokens, aligned to the left: padding follows those in use.
        past: rows of the caches, aligned to the left.
        head: what becomes of the LM head.
        layout: how caches lie.
        generates: whether new tokens are generated ones; short convolutions may have other filters
            for them.

    Returns:
        A graph with the inputs that follow tokens (``token_inputs``) for as many, e.g. input_ids
        and position_ids i64 [1, tokens]; attention_mask i64 [1, past + tokens]; where windows
        slide, biases are looked up or the model counts tokens itself cache_position i64 [1,
        tokens]; eagle_tree_mask [1, 1, tokens, past + tokens], if the model takes trees; logits f32
        [1, 1 or tokens, V] or what the head makes them of; and one variable
        [1, rows, heads, width] for each K and V cache (two if it has 8 bits): ``past`` rows are
        read, ``tokens`` rows assigned. In blocks, each piece of the past is read by a variable of
        its own, ``block_variable``. With ``room`` V's are ``transposed_variable`` of the old
        name: [1, heads, width, room] is read, of which the first ``past`` columns count, and [1,
        heads, width, tokens] assigned.

    Raises:
        ModelError: the graph is no language model with K and V caches.
    """
    try:
        return _split(model.clone(), tokens, past, head, layout, generates)
    except RecursionError:
        raise ModelError("the graph's ops are nested too deeply") from None


def _split(
    clone: Model, tokens: int, past: int, head: Head, layout: KVLayout, generates: bool
) -> Model:
    inputs = check_ports(clone, tokens)
    take_apart(clone, tokens, past)
    compare_tokens(clone, tokens, past)
    count_positions(clone, tokens)
    continue_convolutions(clone, tokens, generates)
    look_up_biases(clone, tokens, past)
    compare_tables(clone, tokens, past)
    store_caches(clone, past, 1, layout)
    # A folded model knows how the variables of layers that it leaves out are called.
    stored = stored_ids(clone, layout)
    blocks = read_ids(clone, stored, layout.pieces(past)) if layout.block is not None else []
    add_repeated_ids(clone, [*stored, *blocks])
    drop_beams(clone)
    treat_head(clone, head, tokens)
    shapes = {port.name: port.shape(1, tokens) for port in inputs}
    trees = tree_shapes(clone, tokens, past)
    told = told_shapes(clone, 1)
    clone.set_input_shapes({**shapes, **trees, **told, MASK: (1, past + tokens)})
    return clone


def check_ports(model: Model, tokens: int) -> tuple[TokenInput, ...]:
    """Check that a graph is a stateful language model; what it does not read of tokens goes.

    Args:
        model: changed in place: features of images (DeepStack) become rows of all tokens.
        tokens: new tokens that it is to take.

    Returns:
        The inputs that follow tokens.

    Raises:
        ModelError: it is none; says what it has.
    """
    spread_visual_rows(model, tokens)
    names = {port.name for port in model.inputs}
    # A model that biases attention by distance (ALiBi) has no use for positions.
    long = long_from(names)
    told = () if long is None else (long[0],)
    unknown = names - {*TOKENS, *beside_tokens(), MASK, BEAMS, TREE_MASK, *told}
    outputs = [port.name for port in model.outputs]
    given = [name for name in TOKENS if name in names]
    gives = outputs.count(LOGITS) == 1 or outputs == [EMBED]
    if len(given) == 1 and gives and "past_lens" not in names and not model.variables():
        raise ModelError(_stateless(model))
    if len(given) != 1 or MASK not in names or unknown or not gives:
        paged = "; NPUW_PA = YES is for one with paged attention" if "past_lens" in names else ""
        raise ModelError(
            f"not a stateful language model: inputs {sorted(names)}, outputs {outputs}; "
            f"expected {' or '.join(TOKENS)}, {MASK}[, {', '.join(beside_tokens())}, {BEAMS}] and "
            f"{LOGITS}{paged}"
        )
    for port in model.inputs:
        if port.name in ignored_inputs() and not port.value.uses:
            model.remove_input(port.name)
    token_outputs(map(_described, model.outputs))
    settle_dimensions(model)
    return token_inputs(map(_described, model.inputs))


def _stateless(model: Model) -> str:
    """Say what a language model without variables has instead, and how to export one with them."""
    caches = [port.name for port in model.inputs if len(shape_of(port.value)) == _CACHE_RANK]
    instead = f"; {len(caches)} inputs such as {caches[0]!r} take them" if caches else ""
    return (
        f"the model is stateless: no variables (ReadValue, Assign) keep K and V{instead}; export "
        "it with state: optimum-cli export openvino --task text-generation-with-past, without "
        "--disable-stateful"
    )


def _described(port: Port) -> TensorInfo:
    return TensorInfo(port.name, element_of(port.value), shape_of(port.value))


def store_caches(model: Model, past: int, slots: int, layout: KVLayout) -> None:
    """Give all caches their static shapes, and let them store only what is new.

    Raises:
        ModelError: one is no K or V cache, or cannot lie as it should.
    """
    store = _storing(layout, take_scales(model) if layout.resolved else {})
    transposed = value_caches(model) if layout.room is not None else frozenset[str]()
    pieces = layout.pieces(past)
    if layout.block is not None:
        _check_blocks(model)
    for variable in model.variables():
        if _is_no_cache(variable):
            continue
        room = layout.room if variable.name in transposed else None
        cache = cache_of(variable, past, slots)
        keeps_type = layout.element == "f32"
        store(model, replace(cache, pieces=pieces, room=room, keeps_type=keeps_type))


def _storing(layout: KVLayout, scales: Mapping[str, Scale]) -> Callable[[Model, Cache], None]:
    """How one cache is stored."""
    if layout.element == "i8":
        return store_quantized
    if layout.element:
        return partial(_store_floats, kind=layout.element, scales=scales)
    return store_plain


def _store_floats(model: Model, cache: Cache, kind: str, scales: Mapping[str, Scale]) -> None:
    store_floats(model, cache, kind, scales.get(cache.read.variable_id.data))


def _is_no_cache(variable: Variable) -> bool:
    """Whether a variable does not grow: it is an adapter's, or a state of fixed size."""
    adapter = variable.assign is None and adapter_name(slot_of(variable.name)[0]) is not None
    return adapter or is_linear_cache(variable.name)


def _check_blocks(model: Model) -> None:
    """See that what is read in pieces is read by attention, which takes them as they are.

    Raises:
        ModelError: it would have to be joined first.
    """
    caches = {each.name for each in model.variables() if not _is_no_cache(each)}
    others = caches - attended_caches(model)
    if others:
        raise ModelError(
            f"NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE: {min(others)!r} is not read by attention as it "
            "is stored, so that it cannot lie in blocks; leave the option out"
        )


def stored_ids(model: Model, layout: KVLayout) -> list[list[str]]:
    """In a folded model, what the variables that are stored are called in all repetitions.

    Those that have the names of the stateful graph are known already.
    """
    groups = [list(group) for group in repeated_ids(model)]
    scales = [[name + SCALE_SUFFIX for name in group] for group in groups]
    values = [[transposed_variable(name) for name in group] for group in groups]
    return [
        *(scales if layout.element == "i8" else []),
        *(values if layout.room is not None else []),
    ]


def read_ids(
    model: Model, stored: Sequence[Sequence[str]], pieces: Sequence[Piece]
) -> list[list[str]]:
    """The same of what is read in pieces."""
    groups = [*repeated_ids(model), *stored]
    return [[piece.of(name) for name in group] for group in groups for piece in pieces]


def cache_of(variable: Variable, past: int, slots: int = 1) -> Cache:
    """Find the cache that a variable is, to be read as ``past`` rows of each slot.

    Raises:
        ModelError: it is no K or V cache.
    """
    name, read, assign = variable.name, variable.read, variable.assign
    if read is None or assign is None:
        raise ModelError(f"variable {name!r} is not both read and assigned")
    join = cache_join(variable)
    if join is None or join.known_axis() != USUAL.tokens:
        raise ModelError(f"variable {name!r} is no K or V cache: it is not extended by a Concat")
    _, heads, _, width = shape_of(read.output)
    if heads <= 0 or width <= 0:
        raise ModelError(f"variable {name!r} has no static heads and width")
    return Cache(read, assign, join.parts[1], (1, past, heads, width), slots)


def drop_beams(model: Model) -> None:
    """Remove the reordering of caches by beam: there is one sequence, at index 0."""
    for port in model.inputs:
        if port.name != BEAMS:
            continue
        for use in list(port.value.uses):
            if not isinstance(use.operation, Gather):
                raise ModelError(f"{BEAMS} is used by {use.operation.name}, not to reorder caches")
            Rewriter.replace_op(use.operation, [], [use.operation.data])
        model.remove_input(BEAMS)
