"""Options of one kind of static model, beside those of all; and options that count at run time.

How they are merged, the last wins: what a kind has by default, or X_CONFIG in its place; what is
set for all models; ++X_CONFIG. In the original such a map is a whole configuration of the stage's
compiled model. Here it may have all that can differ: where a stage runs, how it is cut, what is
written down of it. What stages hand to one another, or what decides which stages there are, they
have in common.

Source: fact sheet npuw §a.4. There these maps are write-only; here they can be read back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, cast

from pydantic import Field

from npuw_layer.options.base import OptionGroup
from npuw_layer.options.devices import (
    CompilerOptions,
    DeviceOptions,
)
from npuw_layer.options.llm import (
    GenerateOptions,
    KvOptions,
    LengthOptions,
    PrefillOptions,
)
from npuw_layer.options.mechanisms import ALIKE, MechanismOptions
from npuw_layer.options.partition import PartitionOptions
from npuw_layer.options.reports import DumpOptions

StageKind = Literal["prefill", "generate", "head"]

KINDS: tuple[StageKind, ...] = ("prefill", "generate", "head")

CONFIGS: dict[StageKind, str] = {
    "prefill": "NPUW_LLM_PREFILL_CONFIG",
    "generate": "NPUW_LLM_GENERATE_CONFIG",
    "head": "NPUW_LLM_SHARED_HEAD_CONFIG",
}
"""The map of each kind; the one that is merged last has ++ in front."""


class StageOptions(OptionGroup):
    """Options of single stages."""

    title: ClassVar[str] = "Options of one stage"

    prefill_config: dict[str, Any] = Field({}, alias="NPUW_LLM_PREFILL_CONFIG")
    """Options of the prefill models, in place of their defaults, e.g. {"NPU_TILES": 2}; what is set
    for all models goes before it. May have where they run (NPUW_DEVICES, NPUW_SUBMODEL_DEVICE,
    NPUW_FALLBACK_EXEC, NPUW_ACC_…), how they are cut (NPUW_ONLINE_…, NPUW_PLAN, NPUW_FOLD,
    NPUW_FOLD_ONLY, NPUW_SPATIAL…), NPUW_DUMP_…, NPU_TILES, DYNAMIC_QUANTIZATION_GROUP_SIZE,
    ENABLE_WEIGHTLESS."""
    more_prefill_config: dict[str, Any] = Field({}, alias="++NPUW_LLM_PREFILL_CONFIG")
    """Options of the prefill models, whatever else is set."""
    generate_config: dict[str, Any] = Field({}, alias="NPUW_LLM_GENERATE_CONFIG")
    """As NPUW_LLM_PREFILL_CONFIG, of the generate models; excludes NPUW_LLM_GENERATE_HINT."""
    more_generate_config: dict[str, Any] = Field({}, alias="++NPUW_LLM_GENERATE_CONFIG")
    """Options of the generate models, whatever else is set."""
    shared_head_config: dict[str, Any] = Field({}, alias="NPUW_LLM_SHARED_HEAD_CONFIG")
    """As NPUW_LLM_PREFILL_CONFIG, of the shared head."""
    more_shared_head_config: dict[str, Any] = Field({}, alias="++NPUW_LLM_SHARED_HEAD_CONFIG")
    """Options of the shared head, whatever else is set."""

    def stage_maps(self, kind: StageKind) -> tuple[dict[str, Any], dict[str, Any]]:
        """X_CONFIG and ++X_CONFIG of a kind."""
        given = self.model_dump(by_alias=True, include=_FIELDS)
        name = CONFIGS[kind]
        return cast(dict[str, Any], given[name]), cast(dict[str, Any], given[f"++{name}"])


_FIELDS = set(StageOptions.model_fields)


RUN_TIME: frozenset[str] = frozenset(
    {
        # Where files are.
        "CACHE_DIR",
        "NPUW_CACHE_DIR",
        "BLOB_PATH",
        "EXPORT_BLOB",
        "WEIGHTS_PATH",
        "MODEL_PTR",
        # Who may read them.
        "CACHE_ENCRYPTION_CALLBACKS",
        "NPUW_ENSURE_COMPATIBILITY",
        "NPU_UNTRUSTED_SOURCE",
        # What a file is like.
        "NPU_EXPORT_RAW_BLOB",
        "NPU_IMPORT_RAW_BLOB",
        "NPU_DISABLE_VERSION_CHECK",
        # What a conversation does with its cache, and what is kept of it.
        "NPUW_LLM_KV_SWITCHOVER",
        "NPUW_LLM_SINK_TOKENS",
        "NPUW_LLM_PREFIX_CACHING_BLOCK_SIZE",
        "NPUW_LLM_PREFIX_CACHING_MAX_NUM_BLOCKS",
        "NPUW_LLM_PREFIX_CACHING_MAX_BYTES",
        # How many programs of experts are kept.
        "NPUW_MOE_POOL_SIZE",
        # Where weights are.
        "NPUW_WEIGHTS_BANK",
        "NPUW_WEIGHTS_BANK_ALLOC",
        "NPUW_WEIGHTS_BUDGET",
        "NPUW_WEIGHTS_RESERVED",
        # What is told of it.
        "LOG_LEVEL",
        "NPUW_ONLINE_DUMP_PLAN",
        "NPUW_DUMP_FULL",
        "NPUW_DUMP_SUBS",
        "NPUW_DUMP_SUBS_DIR",
        "NPUW_DUMP_SUBS_ON_FAIL",
        "NPUW_DUMP_IO",
        "NPUW_DUMP_IO_ITERS",
        "PERF_COUNT",
        "NPU_PROFILING_TYPE",
        # Who begins first.
        "MODEL_PRIORITY",
        "WORKLOAD_TYPE",
        "NPU_RUN_INFERENCES_SEQUENTIALLY",
        # What happens when a device fails, or is not accurate.
        "NPUW_FALLBACK_EXEC",
        "NPUW_ACC_THRESH",
        "NPUW_ACC_DEVICE",
        # What makes no difference.
        *ALIKE,
    }
)
"""Options that no compiled program depends on, nor which programs there are; all others are fixed
in an exported blob."""


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
