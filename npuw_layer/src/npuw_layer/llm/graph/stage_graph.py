"""The static graph of a stage."""

from __future__ import annotations

from dataclasses import replace

from compiler_layer.model import Model
from npuw_layer.errors import ModelError
from npuw_layer.kinds.embedding.whole import whole_graph
from npuw_layer.llm.graph.cache_axes import CacheAxes
from npuw_layer.llm.graph.check_lengths import check_lengths
from npuw_layer.llm.graph.head import Head, cut_head
from npuw_layer.llm.graph.rope_cache import cache_rope
from npuw_layer.llm.graph.split import split
from npuw_layer.llm.graph.split_slots import split_slots
from npuw_layer.llm.graph.stored_float8 import resolved
from npuw_layer.llm.graph.usual_axes import usual_axes
from npuw_layer.llm.graph.vocabulary import tell_vocabulary
from npuw_layer.llm.plan.ruled_out import check_head, check_traits
from npuw_layer.llm.plan.stages import Kind, Stage, kv_layout, rope_rows
from npuw_layer.llm.trait import ModelNames
from npuw_layer.options import Options
from npuw_layer.traits.images.names import TOKEN_TYPES
from npuw_layer.traits.long_rope.long_rope import tell_reach
from npuw_layer.traits.lora.graph import fix_rank, reads_adapters
from npuw_layer.traits.trees.graph import drop_trees, takes_trees


def stage_graph(model: Model, stage: Stage, options: Options, check: bool = False) -> Model:
    """Make the static graph that is compiled for a stage.

    Args:
        model: the stateful graph; it is not changed.
        stage: which.
        options: whether the head is cut off, and how caches are stored.
        check: whether to check that nothing is computed from padded lengths (``check_lengths``).

    Raises:
        ModelError: the graph is no language model with K and V caches, cannot be one of several
            conversations, or computes something from padded lengths.
        OtherAxes: its caches count tokens along other axes than options say.
        NoHead: its head is to be cut off, and cannot be told from the rest.
    """
    graph = _graph_of(model, stage, options, check)
    tell_vocabulary(graph, model)
    return graph


def _graph_of(model: Model, stage: Stage, options: Options, check: bool) -> Model:
    """Make the graph; parameters and errors as ``stage_graph``."""
    if options.named("NPUW_WHISPER"):
        # Imported here: language models have no use for it.
        from npuw_layer.kinds.whisper.decoder import decoder_graph

        return decoder_graph(model, stage, options)
    if not options.generates and not model.variables():
        return whole_graph(model, stage.tokens)
    stateful = _stateful_graph(model, stage, options)
    if stage.kind is Kind.HEAD:
        return _head_graph(stateful, stage, options)
    if check:
        # Caches of one conversation are checked; adapters of several would not fit them.
        alone = replace(stage, slots=1)
        check_lengths(_stateful_graph(model, alone, options), stage.tokens, stage.past)
    model = _stateful_graph(model, stage, options)
    every = stage.kind is Kind.GENERATE or options.gives_hidden_states
    whole = Head.ALL if every else Head.LAST
    head = Head.CUT if options.cuts_head else whole
    layout = kv_layout(options)
    if options.optimize_fp8:
        layout = resolved(model, layout)
    if stage.slots > 1:
        return split_slots(model, stage.slots, stage.past, head, layout)
    generates = stage.kind is Kind.GENERATE
    return split(model, stage.tokens, stage.past, head, layout, generates)


def _stateful_graph(model: Model, stage: Stage, options: Options) -> Model:
    """Return the stateful graph of a stage: usual axes, adapters of fixed rank, rope tables."""
    model = usual_axes(model, CacheAxes(options.batch_dim, options.seq_len_dim))
    if reads_adapters(model):
        model = model.clone()
        fix_rank(model, options.max_lora_rank, stage.slots)
    inputs, outputs = ([port.name for port in ports] for ports in (model.inputs, model.outputs))
    check_traits(ModelNames(inputs, [v.name for v in model.variables()], outputs), options)
    if stage.kind is Kind.HEAD:
        return model
    model = tell_reach(model)
    if options.caches_rope:
        model = model.clone()
        cache_rope(model, rope_rows(stage, options))
    return _of_prompts(model, stage) if stage.kind is Kind.PREFILL else model


def _of_prompts(model: Model, stage: Stage) -> Model:
    """The stateful graph as prompts are read: each token sees all before it."""
    if stage.past:
        _check_types(model)
    if not takes_trees(model):
        return model
    model = model.clone()
    drop_trees(model)
    return model


def _check_types(model: Model) -> None:
    """See that a prompt may be read in pieces.

    Tokens of an image attend to later ones of it, which would be in another piece; nor do exported
    masks leave room for what is stored. The original refuses it alike (fact sheet npuw §a.2).

    Raises:
        ModelError: it must be read whole.
    """
    if any(port.name == TOKEN_TYPES and port.value.uses for port in model.inputs):
        raise ModelError(
            f"the model attends both ways among tokens of an image ({TOKEN_TYPES}), so prompts are "
            "read whole: set NPUW_LLM_PREFILL_HINT to STATIC, and leave "
            "NPUW_LLM_ENABLE_CONTINUOUS_PREFILL and NPUW_LLM_ENABLE_PREFIX_CACHING out"
        )


def _head_graph(model: Model, stage: Stage, options: Options) -> Model:
    """The head alone, which takes states of several conversations as if they were one's."""
    graph = cut_head(model, stage.tokens)
    check_head([variable.name for variable in graph.variables()], options)
    return graph
