"""Options that were set, and wait for another one: who sets them is told, as nothing is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from npuw_layer.options.base import written
from npuw_layer.options.kinds import KindOptions, waiting
from npuw_layer.options.model import KIND_GROUPS, NAMES

if TYPE_CHECKING:
    from npuw_layer.options.model import Options

Waits = tuple[str, Callable[["Options"], bool]]
"""What an option is for, and whether that is asked for."""

_PREFIXES: Waits = (
    "NPUW_LLM_ENABLE_PREFIX_CACHING = YES",
    lambda options: options.enable_prefix_caching,
)
_OFFLOAD: Waits = (
    "NPUW_WEIGHTS_OFFLOAD = SYNC or ASYNC",
    lambda options: options.weights_offload != "NO",
)
_CHECK: Waits = (
    "NPUW_ACC_CHECK = YES",
    lambda options: any(own.acc_check for own in options.of_stages),
)


def _is_requested(group: type[KindOptions], options: Options) -> bool:
    return bool(group.requested(options))


WAITING: Mapping[str, Waits] = {
    "NPUW_LLM_GENERATE_PYRAMID_STEPS": (
        "NPUW_LLM_GENERATE_PYRAMID = YES",
        lambda options: options.generate_pyramid or options.generate_attention_hint == "PYRAMID",
    ),
    "NPUW_LLM_GENERATE_HINT": (
        "generate models without NPUW_FOLD; where that is set, it goes before the hint",
        lambda options: options.of_stage("generate").fold == (options.generate_hint != "BEST_PERF"),
    ),
    "NPUW_LLM_CACHE_ROPE": (
        "positions that end; with NPUW_LLM_ON_FULL = SLIDE they do not",
        lambda options: options.caches_rope or not options.cache_rope,
    ),
    "NPUW_LLM_SINK_TOKENS": (
        "NPUW_LLM_ON_FULL = TRUNCATE or SLIDE",
        lambda options: options.on_full != "ERROR",
    ),
    "NPUW_LLM_PREFIX_CACHING_BLOCK_SIZE": _PREFIXES,
    "NPUW_LLM_PREFIX_CACHING_MAX_NUM_BLOCKS": _PREFIXES,
    "NPUW_LLM_PREFIX_CACHING_MAX_BYTES": _PREFIXES,
    "NPUW_WEIGHTS_BUDGET": _OFFLOAD,
    "NPUW_WEIGHTS_RESERVED": _OFFLOAD,
    "NPUW_ACC_THRESH": _CHECK,
    "NPUW_ACC_DEVICE": _CHECK,
    **{
        name: (f"{flags} = YES", partial(_is_requested, of))
        for name, of, flags in waiting(KIND_GROUPS)
    },
}


def idle(options: Options) -> Iterator[str]:
    """Tell of each option that was set, but has nothing to do."""
    for name, (what, asked) in WAITING.items():
        field = NAMES[name]
        if field in options.model_fields_set and not asked(options):
            value = written(getattr(options, field))
            yield f"{name} = {value} makes no difference: it is for {what}"
