"""Choice of the groups of ops that run apart from the rest of their model, by the options."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from npuw_layer.backends.protocols import STATIC_MODEL, Device
from npuw_layer.errors import OptionError
from npuw_layer.execution.host_attention.flash_device import FlashAttentionDevice
from npuw_layer.execution.partition.ports import Isolation
from npuw_layer.options import Options
from npuw_layer.options.llm import ISOLATED
from npuw_layer.options.stages import KINDS, StageKind

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from compiler_layer.partition.parts import PartOps
    from npuw_layer.execution.partition.ports import Listener

_log = logging.getLogger(__name__)

_LONGEST = 1024
"""Maximum rows of a tile if prompts are not chunked: the default chunk."""


def in_parts(
    device: Device,
    options: Options,
    without: Callable[[str], Device],
    kinds: Sequence[StageKind] = KINDS,
    static: str = STATIC_MODEL,
    apart: Mapping[str, Isolation] | None = None,
) -> Device:
    """Return a device that runs models in parts; the device itself if no op is isolated.

    Args:
        device: runs all other parts.
        options: the requested options.
        without: returns the devices of NPUW_DEVICES without one.
        kinds: kinds of a language model's static models that the device runs.
        static: kind of other static models that options cut.
        apart: isolations of those static models, which replace those of the options.

    Raises:
        OptionError: options contradict one another, or a device to avoid is missing or the only
            one.
    """
    listeners = _listeners(options)
    attention = _attention_isolations(device, options, kinds)
    routed = {kind for kind in kinds if options.experts_hint(kind) == "HOST_ROUTED"}
    if not (options.cuts_models or routed or apart or listeners or attention):
        return device
    # Imported here: without partitioning, its modules are not loaded.
    from npuw_layer.execution.partition.device import PartitioningDevice
    from npuw_layer.execution.partition.rules import rules

    found = rules(device, options, without)
    experts: Mapping[str, Isolation] = _experts(device, options, found) if routed else {}
    isolations: dict[str, Mapping[str, Isolation]] = {
        kind: {**found, **attention.get(kind, {}), **(experts if kind in routed else {})}
        for kind in kinds
    }
    isolations[static] = found if apart is None else apart
    if not any(isolations.values()) and not listeners:
        return device
    return PartitioningDevice(device, isolations, _unfolded(options, isolations), listeners)


def _attentions(model: Model, hint: str) -> Sequence[PartOps]:
    # Imported here: a warm start loads no graphs.
    from npuw_layer.execution.host_attention.groups import attention_groups

    return attention_groups(model, hint)


def _attention_isolations(
    device: Device, options: Options, kinds: Container[StageKind]
) -> Mapping[StageKind, Mapping[str, Isolation]]:
    """Return the isolations that the attention hints of prefill and generate request.

    Args:
        device: runs all other parts.
        options: the requested options.
        kinds: kinds of models that the device runs.

    Returns:
        For each kind of model with isolated attention, the isolation by its hint.

    Raises:
        OptionError: lengths contradict one another.
    """
    every = options.isolated_attention
    found: dict[StageKind, str] = {kind: every[kind] for kind in every if kind in kinds}
    if options.prefill_attention_hint in ISOLATED and "prefill" in kinds and "prefill" not in found:
        _log.info(
            "NPUW_LLM_PREFILL_ATTENTION_HINT: without chunks, %s has no effect",
            options.prefill_attention_hint,
        )
    by_hint = {
        hint: Isolation(_attention_device(hint, device, options), partial(_attentions, hint=hint))
        for hint in sorted({*found.values()})
    }
    return {kind: {hint: by_hint[hint]} for kind, hint in found.items()}


def _attention_device(hint: str, device: Device, options: Options) -> Device:
    if hint == "HFA":
        return FlashAttentionDevice(device, options.prefill_chunk_size or _LONGEST)
    from npuw_layer.execution.host_attention.dynamic_device import DynamicAttentionDevice

    return DynamicAttentionDevice(device)


def _unfolded(options: Options, isolations: Mapping[str, Mapping[str, Isolation]]) -> set[str]:
    """Return the tags whose submodels are compiled one by one."""
    if not options.fold_only:
        return {*options.unfolded_tags}
    tags = {"", *(tag for by_tag in isolations.values() for tag in by_tag)}
    return tags - ({*options.fold_only} - {*options.unfolded_tags})


def _listeners(options: Options) -> Sequence[Listener]:
    """Return the listeners to partitioning; none with weight offload."""
    found: list[Listener] = []
    if options.weights_offload != "NO":
        return found
    # Imported here: without dumps, their modules are not loaded.
    if options.online_dump_plan:
        from npuw_layer.execution.partition.plan_file import PlanFile

        found.append(PlanFile(Path(options.online_dump_plan)))
    if options.dumps_graphs:
        from npuw_layer.execution.dumps.graphs import GraphDumps

        found.append(GraphDumps(options))
    return found


def _experts(device: Device, options: Options, found: Container[str]) -> Mapping[str, Isolation]:
    """Return the isolation that routes tokens to experts, by tag.

    Raises:
        OptionError: options already make submodels of layers.
    """
    from npuw_layer.execution.experts.device import TAG, routed_experts
    from npuw_layer.execution.partition.planned import PLANNED
    from npuw_layer.execution.partition.rules import LAYER, STRETCH

    if options.runs_spatial or any(tag in found for tag in (LAYER, STRETCH, PLANNED)):
        pipeline = f"NPUW_ONLINE_PIPELINE = {options.online_pipeline}"
        what = "NPUW_PLAN" if options.plan else "NPUW_SPATIAL" if options.spatial else pipeline
        raise OptionError(
            f"{what} makes submodels that contain experts; leave it out, or do not request "
            "HOST_ROUTED"
        )
    return {TAG: routed_experts(device, options.moe_token_chunk_size, options.moe_pool_size)}
