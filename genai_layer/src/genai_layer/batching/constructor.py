"""Arguments of ``ContinuousBatchingPipeline``, whose positions depend on the tokenizer.

Source: openvino_genai.ContinuousBatchingPipeline, docs/reference/genai.md#continuous-batching.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from genai_layer.errors import PropertyError
from genai_layer.properties import read_properties
from genai_layer.scheduler import SchedulerConfig
from genai_layer.speculation.request import Speculation
from genai_layer.tokenizer import Tokenizer

_FOLDERS_TOKENIZER = (
    "scheduler_config",
    "device",
    "properties",
    "tokenizer_properties",
    "vision_encoder_properties",
)
_OWN_TOKENIZER = ("tokenizer", "scheduler_config", "device")
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
        PropertyError: an argument has a wrong type, or a setting is not supported.
    """
    own = "tokenizer" in named or any(isinstance(one, Tokenizer) for one in args[:1])
    names = _OWN_TOKENIZER if own else _FOLDERS_TOKENIZER
    if len(args) > len(names):
        raise TypeError(f"ContinuousBatchingPipeline: more than the arguments {', '.join(names)}")
    values: dict[str, Any] = dict(zip(names, args, strict=False))
    for name, value in named.items():
        if name in values or (not own and name not in names):
            raise TypeError(f"ContinuousBatchingPipeline: {name} is unknown here, or given twice")
        values[name] = value
    for name in ("scheduler_config", "device"):
        if name not in values:
            raise TypeError(f"ContinuousBatchingPipeline: {name} is missing; pass it")
    tokenizer, device = values.pop("tokenizer", None), values.pop("device")
    scheduler = values.pop("scheduler_config")
    if not isinstance(scheduler, SchedulerConfig):
        raise PropertyError(f"scheduler_config = {scheduler!r}: pass a SchedulerConfig")
    if own and not isinstance(tokenizer, Tokenizer):
        raise PropertyError(f"tokenizer = {tokenizer!r}: pass a Tokenizer")
    _check(scheduler)
    # Tokenizers compile no model, and language models have no vision encoder: checked, not used.
    for name in _FOLDERS_TOKENIZER[3:]:
        read_properties(_dictionary(name, values.pop(name, {})))
    properties = values if own else _dictionary("properties", values.get("properties", {}))
    speculation = Speculation.taken(properties)
    return Arguments(tokenizer, scheduler, device, properties, speculation)


def _dictionary(name: str, given: object) -> dict[str, Any]:
    """Return a copy of an argument that has to be a dictionary."""
    if not isinstance(given, Mapping):
        raise PropertyError(f"{name} = {given!r}: pass a dictionary of properties")
    return dict(cast("Mapping[str, Any]", given))


def _check(scheduler: SchedulerConfig) -> None:
    for name in _UNSUPPORTED:
        if getattr(scheduler, name):
            raise PropertyError(f"scheduler_config: {name} is not supported; set it to False")
    if not scheduler.max_num_seqs:
        raise PropertyError("scheduler_config: max_num_seqs = 0: set it to 1 or more")
