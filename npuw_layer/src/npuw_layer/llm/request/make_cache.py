"""Construction of a conversation's cache by the options."""

from __future__ import annotations

from dataclasses import replace

from npuw_layer.backends.protocols import ASSIGN_PREFIX, READ_PREFIX, TensorInfo
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.kv.block_cache.cache import BlockKVCache
from npuw_layer.llm.kv.block_cache.layout import BlockLayout
from npuw_layer.llm.kv.kv_cache import KVCache
from npuw_layer.llm.kv.kv_rows import KVRows
from npuw_layer.llm.kv.kv_strategy import KVStrategy
from npuw_layer.llm.kv.row_layouts import is_cache_input
from npuw_layer.llm.plan.stages import LLMPlan, Stage, kv_layout

BOUND_AHEAD = 128
"""Maximum tokens for which blocks are bound in advance: binding takes the time of several steps,
which is about two per cent of this many steps."""


def make_cache(compiled: CompiledLLM) -> KVStrategy:
    """Allocate an empty cache.

    Args:
        compiled: the static models that share the cache.

    Raises:
        DeviceError: device memory is exhausted.
    """
    options, plan = compiled.options, compiled.plan
    total = plan.lengths.total
    window = _longest(plan).past if options.on_full == "SLIDE" else total
    rows = KVRows(total, window, options.sink_tokens)
    states, layout = cache_states(compiled), kv_layout(options)
    if layout.block is None:
        return KVCache(compiled.device, states, rows)
    blocks = BlockLayout(states, layout.block)
    ahead = min(plan.lengths.min_response, BOUND_AHEAD)
    return BlockKVCache(compiled.device, blocks, rows, ahead)


def cache_states(compiled: CompiledLLM) -> list[TensorInfo]:
    """Return the inputs of K and V in the model with the longest past, one for each variable.

    With blocks, they are those of the first block.
    """
    longest, layout = _longest(compiled.plan), kv_layout(compiled.options)
    model = compiled.models[longest]
    if not longest.past:
        # Texts are read whole: no model reads the cache, but new rows need a place.
        return [
            replace(info, name=READ_PREFIX + info.name.removeprefix(ASSIGN_PREFIX))
            for info in model.outputs
            if info.name.startswith(ASSIGN_PREFIX)
        ]
    states = [info for info in model.inputs if is_cache_input(info)]
    whole = layout.spans(longest.past)[0]  # the longest past is more than a chunk
    return [info for info in states if info.name.endswith(whole.suffix)]


def _longest(plan: LLMPlan) -> Stage:
    """Return the stage that reads the most rows."""
    return max(plan.generate or plan.prefill, key=lambda stage: stage.past)
