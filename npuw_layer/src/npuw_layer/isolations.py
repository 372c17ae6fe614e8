"""Which groups of ops run apart from the rest of their model, as options say."""

from __future__ import annotations

from collections.abc import Callable

from npuw_layer.attention.isolate import attention_isolations
from npuw_layer.errors import OptionError
from npuw_layer.options import Options
from npuw_layer.options.stages import StageKind
from npuw_layer.ports import Device


def in_parts(device: Device, options: Options, without: Callable[[str], Device]) -> Device:
    """Let a device run models in parts, if there is something to run apart.

    Args:
        device: runs all else.
        options: what was asked for.
        without: gives the devices of NPUW_DEVICES but one.

    Raises:
        OptionError: the device runs models whole, or what is asked for contradicts itself.
    """
    tells = options.online_dump_plan and options.weights_offload == "NO"
    attention = attention_isolations(device, options)
    if not options.cuts_models and not tells and not attention:
        return device
    if "OPENVINO_CPU" in options.devices:
        raise OptionError(
            f"NPUW_DEVICES = {options.devices}: OPENVINO_CPU runs models whole; leave the options "
            "NPUW_ONLINE_… as they are"
        )
    # Imported here: who runs models whole loads nothing of it.
    from npuw_layer.partition.device import partitioning
    from npuw_layer.partition.rules import rules

    found = rules(device, options, without)
    kinds: tuple[StageKind, ...] = ("prefill", "generate", "head")
    isolations = {kind: {**found, **attention.get(kind, {})} for kind in kinds}
    return partitioning(device, isolations, options.online_no_fold, options.online_dump_plan)
