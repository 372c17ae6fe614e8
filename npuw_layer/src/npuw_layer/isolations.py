"""Which groups of ops run apart from the rest of their model, as options say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from npuw_layer.errors import OptionError
from npuw_layer.options import Options
from npuw_layer.ports import Device

if TYPE_CHECKING:
    from npuw_layer.partition.ports import Isolation


def in_parts(device: Device, options: Options) -> Device:
    """Let a device run models in parts, if there is something to run apart.

    Args:
        device: runs all else.
        options: NPUW_LLM_PREFILL_MOE_HINT and NPUW_LLM_GENERATE_MOE_HINT.

    Raises:
        OptionError: the device runs models whole.
    """
    if not options.routes_experts:
        return device
    if options.devices == "OPENVINO_CPU":
        raise OptionError(
            "NPUW_DEVICES = OPENVINO_CPU runs models whole; leave NPUW_LLM_PREFILL_MOE_HINT and "
            "NPUW_LLM_GENERATE_MOE_HINT at DENSE, or use NPU or CPU"
        )
    # Imported here: who runs models whole loads nothing of it.
    from npuw_layer.experts.device import TAG, RoutedExperts
    from npuw_layer.partition.device import partitioning

    experts = RoutedExperts(device, options.moe_token_chunk_size, options.moe_pool_size)
    hints = {"prefill": options.prefill_moe_hint, "generate": options.generate_moe_hint}
    isolations: dict[str, dict[str, Isolation]] = {
        kind: {TAG: experts} for kind, hint in hints.items() if hint == "HOST_ROUTED"
    }
    return partitioning(device, isolations)
