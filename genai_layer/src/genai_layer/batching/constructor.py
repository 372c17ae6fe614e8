"""Arguments of ``ContinuousBatchingPipeline``, whose positions depend on the tokenizer.

Source: openvino_genai.ContinuousBatchingPipeline, docs/reference/genai.md#continuous-batching.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from genai_layer.call_form import call_form
from genai_layer.errors import PropertyError
from genai_layer.properties import for_device, read_properties
from genai_layer.scheduler import SchedulerConfig
from genai_layer.speculation.request import Speculation
from genai_layer.tokenizer import Tokenizer

_NONE: Mapping[str, Any] = {}
_UNSUPPORTED = ("use_cache_eviction", "use_sparse_attention")


@dataclass(frozen=True, slots=True)
class Arguments:
    """Checked arguments after the folder."""

    tokenizer: Tokenizer | None
    """Tokenizer of the caller; None for the folder's own."""
    scheduler: SchedulerConfig
    device: str
    properties: dict[str, Any]
    speculation: Speculation


def read_arguments(args: Sequence[Any], named: Mapping[str, Any]) -> Arguments:
    """Sort the arguments: (scheduler_config, device, three dictionaries), or with a tokenizer.

    Raises:
        TypeError: an argument is missing, unknown or given twice.
        ArgumentError: an argument is of another kind.
        PropertyError: a property is unknown, or a setting is not supported.
    """
    own = "tokenizer" in named or any(isinstance(one, Tokenizer) for one in args[:1])
    form = _with_tokenizer if own else _with_dictionaries
    return call_form("ContinuousBatchingPipeline", form, args, named)


def _with_tokenizer(
    tokenizer: Tokenizer, scheduler_config: SchedulerConfig, device: str, **properties: Any
) -> Arguments:
    _check(scheduler_config)
    given = for_device(properties, device)
    speculation = Speculation.taken(given)
    return Arguments(tokenizer, scheduler_config, device, given, speculation)


def _with_dictionaries(
    scheduler_config: SchedulerConfig,
    device: str,
    properties: Mapping[str, Any] = _NONE,
    tokenizer_properties: Mapping[str, Any] = _NONE,
    vision_encoder_properties: Mapping[str, Any] = _NONE,
) -> Arguments:
    _check(scheduler_config)
    # Tokenizers compile no model, and language models have no vision encoder: checked, not used.
    read_properties(tokenizer_properties)
    read_properties(vision_encoder_properties)
    given = for_device(properties, device)
    speculation = Speculation.taken(given)
    return Arguments(None, scheduler_config, device, given, speculation)


def _check(scheduler: SchedulerConfig) -> None:
    for name in _UNSUPPORTED:
        if getattr(scheduler, name):
            raise PropertyError(f"scheduler_config: {name} is not supported; set it to False")
    if not scheduler.max_num_seqs:
        raise PropertyError("scheduler_config: max_num_seqs = 0: set it to 1 or more")
