"""Isolations that options request: ops of a type or pattern, layers, ranges, a plan's groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from npuw_layer.backends.protocols import Device
from npuw_layer.execution.partition.planned import planned_rules
from npuw_layer.execution.partition.ports import AVOIDS, Isolation
from npuw_layer.execution.partition.row_blocks import RowBlocks
from npuw_layer.execution.token_tiles.device import RowTilesDevice
from npuw_layer.options import Options
from npuw_layer.options.partition import COMPUTE, choices

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from compiler_layer.partition.parts import PartOps

LAYER, STRETCH = "layer", "stretch"
"""Tags of repeated layers (NPUW_ONLINE_PIPELINE = REP), and of ranges (INIT, JUST)."""


class SingleOps:
    """Isolation of single ops; satisfies ``execution.partition.ports.Isolation``.

    Args:
        device: runs the ops.
        tag: tag of the groups.
        requested: kind and name of each choice.
    """

    def __init__(self, device: Device, tag: str, requested: Sequence[tuple[str, str]]) -> None:
        self.device = device
        self._tag = tag
        self._wanted = requested

    def groups(self, model: Model) -> Sequence[PartOps]:
        """Find the chosen ops."""
        # Imported here: a warm start loads no graphs.
        from npuw_layer.execution.partition.patterns import single_ops

        return single_ops(model, self._tag, self._wanted)


class Layers:
    """Isolation of repeated layers; satisfies ``execution.partition.ports.Isolation``.

    Args:
        device: runs the layers.
        least_times: NPUW_ONLINE_KEEP_BLOCKS.
        least_ops: NPUW_ONLINE_KEEP_BLOCK_SIZE.
    """

    def __init__(self, device: Device, least_times: int, least_ops: int) -> None:
        self.device = device
        self._least = least_times, least_ops

    def groups(self, model: Model) -> Sequence[PartOps]:
        """Find the repeated layers."""
        from npuw_layer.execution.partition.patterns import layers

        return layers(model, LAYER, *self._least)


class OpRanges:
    """Isolation of ranges of ops; satisfies ``execution.partition.ports.Isolation``.

    Args:
        device: runs the ranges.
        most: maximum number of ranges; None makes one of each op.
    """

    def __init__(self, device: Device, most: int | None) -> None:
        self.device = device
        self._most = most

    def groups(self, model: Model) -> Sequence[PartOps]:
        """Find the ranges."""
        from compiler_layer.partition.even import even_parts

        return even_parts(model, STRETCH, self._most)


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
        least = options.online_keep_blocks, options.online_keep_block_size
        return {LAYER: Layers(device, *least)}
    if options.online_pipeline in ("INIT", "JUST"):
        most = options.least_ranges if options.online_pipeline == "JUST" else None
        return {STRETCH: OpRanges(device, most)}
    isolated, avoided = options.isolated_ops, choices(options.online_avoid)
    found: dict[str, Isolation] = {}
    for tag, requested in _by_target(isolated).items():
        found[tag] = SingleOps(device, tag, requested)
    for name, requested in _by_target(avoided).items():
        tag = AVOIDS + name
        found[tag] = SingleOps(without(name), tag, requested)
    if options.runs_spatial:
        others = [(kind, name) for kind, name, tag in isolated if tag != COMPUTE]
        others += [(kind, name) for kind, name, _ in avoided]
        tiles = RowTilesDevice(device, options.spatial_nway, options.spatial_dyn)
        found[COMPUTE] = RowBlocks(tiles, COMPUTE, _by_target(isolated)[COMPUTE], others)
    return found


def _by_target(found: Sequence[tuple[str, str, str]]) -> dict[str, list[tuple[str, str]]]:
    by_target: dict[str, list[tuple[str, str]]] = {}
    for kind, name, target in found:
        by_target.setdefault(target, []).append((kind, name))
    return by_target
