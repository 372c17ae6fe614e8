"""What the map of one kind of static model may hold, and what of it a compiled program has.

In the original such a map is a whole configuration of the stage's compiled model. Here it may have
all that can differ: where a stage runs, how it is cut, what is written down of it. What stages hand
to one another, or what says which stages there are, they have in common.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from driver_layer.abi.platforms import Platform
from npuw_layer.options.base import OptionGroup
from npuw_layer.options.compiler import CompilerOptions
from npuw_layer.options.devices import DeviceOptions
from npuw_layer.options.dumps import DumpOptions
from npuw_layer.options.generate import GenerateOptions
from npuw_layer.options.kv import KvOptions
from npuw_layer.options.lengths import LengthOptions
from npuw_layer.options.mechanisms import MechanismOptions
from npuw_layer.options.partition import PartitionOptions
from npuw_layer.options.prefill import PrefillOptions
from npuw_layer.options.run_time import RUN_TIME
from npuw_layer.options.stages import CONFIGS, StageKind, StageOptions

if TYPE_CHECKING:
    from npuw_layer.options.model import Options


def _names(*groups: type[OptionGroup]) -> frozenset[str]:
    return frozenset(field.alias or "" for group in groups for field in group.model_fields.values())


RUNS = frozenset({"NPUW_DEVICES", "NPUW_ACC_CHECK"})
"""On how many devices submodels may be."""

WHERE = _names(DeviceOptions, PartitionOptions, DumpOptions) - {"NPU_PLATFORM", "NPU_TILES"}
"""Where submodels run, what one is, and what is written down of it."""

SETTABLE = (
    {"NPU_TILES", "DYNAMIC_QUANTIZATION_GROUP_SIZE", "ENABLE_WEIGHTLESS", "NPUW_FOLD"}
    | WHERE
    | _names(MechanismOptions)
)
"""What may differ between kinds."""

MAPS = {name: kind for kind, plain in CONFIGS.items() for name in (plain, f"++{plain}")}
"""The kind of static model that each map is of."""

_CATALOGUE = (
    "one may have NPUW_DEVICES, NPUW_SUBMODEL_DEVICE, NPUW_FALLBACK_EXEC, NPUW_ACC_…, "
    "NPUW_ONLINE_…, NPUW_PLAN, NPUW_FOLD, NPUW_FOLD_ONLY, NPUW_SPATIAL…, NPUW_DUMP_…, NPU_TILES, "
    "DYNAMIC_QUANTIZATION_GROUP_SIZE, ENABLE_WEIGHTLESS"
)

_REASONS: tuple[tuple[frozenset[str], str], ...] = (
    (_names(StageOptions), "maps are not put into one another"),
    (_names(LengthOptions, PrefillOptions, GenerateOptions), "it says which stages there are"),
    (
        _names(KvOptions) | {"INFERENCE_PRECISION_HINT"},
        "they hand K, V and hidden states to one another",
    ),
    (_names(DeviceOptions, CompilerOptions), "they share the memory of one NPU"),
)


def refusal(name: str) -> str:
    """Why an option is in no stage's map; empty if it may be."""
    if name in SETTABLE:
        return ""
    why = next((reason for names, reason in _REASONS if name in names), "it is the whole model's")
    return f"all stages have {name} in common, as {why}; {_CATALOGUE}"


def fixed_part(given: Mapping[str, Any]) -> dict[str, Any]:
    """What of a map programs depend on: it goes into a blob."""
    return {name: value for name, value in given.items() if name not in RUN_TIME}


def run_time_part(given: Mapping[str, Any]) -> dict[str, Any]:
    """What of a map counts when programs run."""
    return {name: value for name, value in given.items() if name in RUN_TIME}


def check_stage(own: Options, kind: StageKind, platform: Platform) -> None:
    """See that a stage is not asked for what its attention or the platform cannot do.

    Args:
        own: the options of that stage.
        kind: which.
        platform: NPU_PLATFORM.

    Raises:
        ValueError: it is.
    """
    if own.tiles > platform.tiles:
        raise ValueError(
            f"NPU_TILES: {own.tiles} tiles; platform {own.platform} has {platform.tiles}; lower it"
        )
    hints = {
        "prefill": ("NPUW_LLM_PREFILL_ATTENTION_HINT", own.prefill_attention_hint),
        "generate": ("NPUW_LLM_GENERATE_ATTENTION_HINT", own.generate_attention_hint),
    }
    name, hint = hints.get(kind, ("", ""))
    problem = _of_attention(own, kind, hint) if hint in ("HFA", "DYNAMIC") else ""
    if problem:
        raise ValueError(f"{name}: {hint} {problem}")


def _of_attention(own: Options, kind: StageKind, hint: str) -> str:
    """What attention by itself cannot do, and is asked for."""
    if own.weights_offload != "NO":
        return "cuts models in another way than NPUW_WEIGHTS_OFFLOAD does; set that to NO"
    if kind == "generate" and {*own.batch_slots} - {1}:
        return "attends for one conversation at a time; set NPUW_LLM_BATCH_SLOTS to 1"
    if own.cuts_models:
        return f"cuts models itself; {own.leave_uncut}"
    if hint == "DYNAMIC" and "CPU" not in [one.strip() for one in own.devices.split(",")]:
        return (
            "has open shapes, and programs of NPU and OPENVINO_CPU have none: the CPU runs it; add "
            "CPU to NPUW_DEVICES, or use HFA"
        )
    return ""
