"""Isolations that options request: ops of a type or pattern, layers, ranges, a plan's groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from npuw_layer.backends.protocols import Device
from npuw_layer.execution.partition.planned import planned_rules
from npuw_layer.execution.partition.ports import AVOIDS, Isolation
from npuw_layer.execution.token_tiles.device import RowTilesDevice
from npuw_layer.options import Options
from npuw_layer.options.partition import COMPUTE, choices

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from compiler_layer.partition.parts import PartOps

LAYER, STRETCH = "layer", "stretch"
"""Tags of repeated layers (NPUW_ONLINE_PIPELINE = REP), and of ranges (INIT, JUST)."""


def _single_ops(model: Model, tag: str, requested: Sequence[tuple[str, str]]) -> Sequence[PartOps]:
    # Imported here: a warm start loads no graphs.
    from npuw_layer.execution.partition.patterns import single_ops

    return single_ops(model, tag, requested)


def _layers(model: Model, least_times: int, least_ops: int) -> Sequence[PartOps]:
    from npuw_layer.execution.partition.patterns import layers

    return layers(model, LAYER, least_times, least_ops)


def _ranges(model: Model, most: int | None) -> Sequence[PartOps]:
    from compiler_layer.partition.even import even_parts

    return even_parts(model, STRETCH, most)


def _row_blocks(
    model: Model, requested: Sequence[tuple[str, str]], others: Sequence[tuple[str, str]]
) -> Sequence[PartOps]:
    """Find the row-wise blocks around chosen ops; one that mixes rows is a separate group.

    Args:
        model: lowered.
        requested: kind and name of each choice of ops that blocks grow around.
        others: kind and name of ops that other isolations select.
    """
    from compiler_layer.partition.row_parts import row_parts
    from npuw_layer.execution.partition.patterns import chosen, single_ops

    seeds = [op for group in single_ops(model, COMPUTE, requested) for op in group.ops]
    excluded = {op for kind, name in others for op in chosen(model, kind, name)}
    return row_parts(model, COMPUTE, seeds, excluded)


def rules(
    device: Device, options: Options, without: Callable[[str], Device]
) -> Mapping[str, Isolation]:
    """Return the isolations that options request, by tag.

    Args:
        device: runs groups that avoid no device.
        options: NPUW_PLAN, or NPUW_ONLINE_PIPELINE, or NPUW_ONLINE_ISOLATE and NPUW_ONLINE_AVOID.
        without: returns the devices of NPUW_DEVICES without one.

    Raises:
        OptionError: a device to avoid is missing, or the only one.
    """
    if options.plan:
        return planned_rules(device, options, without)
    if options.cuts_layers:
        times, ops = options.online_keep_blocks, options.online_keep_block_size
        return {LAYER: Isolation(device, partial(_layers, least_times=times, least_ops=ops))}
    if options.online_pipeline in ("INIT", "JUST"):
        most = options.least_ranges if options.online_pipeline == "JUST" else None
        return {STRETCH: Isolation(device, partial(_ranges, most=most))}
    isolated, avoided = options.isolated_ops, choices(options.online_avoid)
    found: dict[str, Isolation] = {}
    for tag, requested in _by_target(isolated).items():
        found[tag] = Isolation(device, partial(_single_ops, tag=tag, requested=requested))
    for name, requested in _by_target(avoided).items():
        tag = AVOIDS + name
        found[tag] = Isolation(without(name), partial(_single_ops, tag=tag, requested=requested))
    if options.runs_spatial:
        others = [(kind, name) for kind, name, tag in isolated if tag != COMPUTE]
        others += [(kind, name) for kind, name, _ in avoided]
        tiles = RowTilesDevice(device, options.spatial_nway, options.spatial_dyn)
        requested = _by_target(isolated)[COMPUTE]
        blocks = partial(_row_blocks, requested=requested, others=others)
        found[COMPUTE] = Isolation(tiles, blocks)
    return found


def _by_target(found: Sequence[tuple[str, str, str]]) -> dict[str, list[tuple[str, str]]]:
    by_target: dict[str, list[tuple[str, str]]] = {}
    for kind, name, target in found:
        by_target.setdefault(target, []).append((kind, name))
    return by_target
