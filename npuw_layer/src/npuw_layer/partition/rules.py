"""What options let stand alone: ops of a type or a pattern, and repeated layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from npuw_layer.errors import OptionError
from npuw_layer.options import Options
from npuw_layer.options.partition import choices, isolated
from npuw_layer.partition.ports import Isolation
from npuw_layer.ports import Device

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from compiler_layer.passes.partition.parts import Group

LAYER = "layer"
"""The tag of repeated layers (NPUW_ONLINE_PIPELINE = REP)."""


class SingleOps:
    """Lets ops stand alone; satisfies ``partition.ports.Isolation``.

    Args:
        device: runs them.
        tag: what they are called.
        wanted: kind and name of each choice.
    """

    def __init__(self, device: Device, tag: str, wanted: Sequence[tuple[str, str]]) -> None:
        self.device = device
        self._tag = tag
        self._wanted = wanted

    def groups(self, model: Model) -> Sequence[Group]:
        """Find them."""
        # Imported here: a warm start loads no graphs.
        from npuw_layer.partition.patterns import single_ops

        return single_ops(model, self._tag, self._wanted)


class Layers:
    """Lets repeated layers stand alone; satisfies ``partition.ports.Isolation``.

    Args:
        device: runs them.
    """

    def __init__(self, device: Device) -> None:
        self.device = device

    def groups(self, model: Model) -> Sequence[Group]:
        """Find them."""
        from npuw_layer.partition.patterns import layers

        return layers(model, LAYER)


def rules(
    device: Device, options: Options, without: Callable[[str], Device]
) -> Mapping[str, Isolation]:
    """Give what options let stand alone, by tag.

    Args:
        device: runs what is only isolated.
        options: NPUW_ONLINE_PIPELINE, NPUW_ONLINE_ISOLATE and NPUW_ONLINE_AVOID.
        without: gives the devices of NPUW_DEVICES but one.

    Raises:
        OptionError: a device that is to be avoided is not there, or the only one.
    """
    found: dict[str, Isolation] = {}
    for tag, wanted in _by_target(isolated(options.online_isolate)).items():
        found[tag] = SingleOps(device, tag, wanted)
    for name, wanted in _by_target(choices(options.online_avoid)).items():
        tag = f"not {name}"
        found[tag] = SingleOps(without(name), tag, wanted)
    if options.online_pipeline == "REP":
        if found:
            raise OptionError(
                "NPUW_ONLINE_PIPELINE = REP makes submodels of whole layers; leave "
                "NPUW_ONLINE_ISOLATE and NPUW_ONLINE_AVOID empty, or the pipeline at NONE"
            )
        found[LAYER] = Layers(device)
    return found


def _by_target(found: Sequence[tuple[str, str, str]]) -> dict[str, list[tuple[str, str]]]:
    by_target: dict[str, list[tuple[str, str]]] = {}
    for kind, name, target in found:
        by_target.setdefault(target, []).append((kind, name))
    return by_target
