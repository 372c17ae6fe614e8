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
from npuw_layer.llm.plan.stages import kv_layout

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
    reading = plan.generate or plan.prefill
    largest, total = max(reading, key=lambda stage: stage.past), plan.lengths.total
    states = [info for info in compiled.models[largest].inputs if is_cache_input(info)]
    if not largest.past:
        # Texts are read whole: no model reads the cache, but new rows need a place.
        states = [_read_as(info) for info in compiled.models[largest].outputs if _is_new(info)]
    window = largest.past if options.on_full == "SLIDE" else total
    rows = KVRows(total, window, options.sink_tokens)
    layout = kv_layout(options)
    if layout.block is None:
        return KVCache(compiled.device, states, rows)
    whole = layout.spans(largest.past)[0]  # the largest model reads more than a chunk
    first = [info for info in states if info.name.endswith(whole.suffix)]
    blocks = BlockLayout(first, layout.block)
    ahead = min(plan.lengths.min_response, BOUND_AHEAD)
    return BlockKVCache(compiled.device, blocks, rows, ahead)


def _is_new(info: TensorInfo) -> bool:
    return info.name.startswith(ASSIGN_PREFIX)


def _read_as(info: TensorInfo) -> TensorInfo:
    """Return the description of an assigned variable as if it were read."""
    return replace(info, name=READ_PREFIX + info.name.removeprefix(ASSIGN_PREFIX))
