"""Options of one kind of static model, in addition to those of all; and run-time options.

Later values override earlier ones: defaults of the kind, or X_CONFIG in their place; options of all
models; ++X_CONFIG. In NPUW, such a map is a complete configuration of the stage's compiled model.
Here it may contain every option that can differ: devices, partitioning, dumps. Options that
determine the interfaces or the set of stages are common to all.

Source: docs/reference/npuw.md#stage-options. There these maps are write-only; here they can be read
back.
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
from npuw_layer.options.mechanisms import WITHOUT_EFFECT, MechanismOptions
from npuw_layer.options.partition import PartitionOptions
from npuw_layer.options.reports import DumpOptions

StageKind = Literal["prefill", "generate", "head"]

KINDS: tuple[StageKind, ...] = ("prefill", "generate", "head")

CONFIGS: dict[StageKind, str] = {
    "prefill": "NPUW_LLM_PREFILL_CONFIG",
    "generate": "NPUW_LLM_GENERATE_CONFIG",
    "head": "NPUW_LLM_SHARED_HEAD_CONFIG",
}
"""Name of the map of each kind; the map that is merged last has the prefix ++."""


class StageOptions(OptionGroup):
    """Options of single stages."""

    title: ClassVar[str] = "Options of one stage"

    prefill_config: dict[str, Any] = Field({}, alias="NPUW_LLM_PREFILL_CONFIG")
    """Options of the prefill models, in place of their defaults, e.g. {"NPU_TILES": 2}; options of
    all models override them. Allowed are devices (NPUW_DEVICES, NPUW_SUBMODEL_DEVICE,
    NPUW_FALLBACK_EXEC, NPUW_ACC_…), partitioning (NPUW_ONLINE_…, NPUW_PLAN, NPUW_FOLD,
    NPUW_FOLD_ONLY, NPUW_SPATIAL…), NPUW_DUMP_…, NPU_TILES, DYNAMIC_QUANTIZATION_GROUP_SIZE,
    ENABLE_WEIGHTLESS."""
    more_prefill_config: dict[str, Any] = Field({}, alias="++NPUW_LLM_PREFILL_CONFIG")
    """Options of the prefill models, which override all others."""
    generate_config: dict[str, Any] = Field({}, alias="NPUW_LLM_GENERATE_CONFIG")
    """Like NPUW_LLM_PREFILL_CONFIG, for the generate models; excludes NPUW_LLM_GENERATE_HINT."""
    more_generate_config: dict[str, Any] = Field({}, alias="++NPUW_LLM_GENERATE_CONFIG")
    """Options of the generate models, which override all others."""
    shared_head_config: dict[str, Any] = Field({}, alias="NPUW_LLM_SHARED_HEAD_CONFIG")
    """Like NPUW_LLM_PREFILL_CONFIG, for the shared LM head."""
    more_shared_head_config: dict[str, Any] = Field({}, alias="++NPUW_LLM_SHARED_HEAD_CONFIG")
    """Options of the shared LM head, which override all others."""

    def stage_maps(self, kind: StageKind) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return X_CONFIG and ++X_CONFIG of a kind."""
        given = self.model_dump(by_alias=True, include=_FIELDS)
        name = CONFIGS[kind]
        return cast(dict[str, Any], given[name]), cast(dict[str, Any], given[f"++{name}"])


_FIELDS = set(StageOptions.model_fields)


RUN_TIME: frozenset[str] = frozenset(
    {
        # Locations of files.
        "CACHE_DIR",
        "NPUW_CACHE_DIR",
        "BLOB_PATH",
        "EXPORT_BLOB",
        "WEIGHTS_PATH",
        "MODEL_PTR",
        # Protection of files.
        "CACHE_ENCRYPTION_CALLBACKS",
        "NPUW_ENSURE_COMPATIBILITY",
        "NPU_UNTRUSTED_SOURCE",
        # Formats of files.
        "NPU_EXPORT_RAW_BLOB",
        "NPU_IMPORT_RAW_BLOB",
        "NPU_DISABLE_VERSION_CHECK",
        # Handling of a conversation's cache, and reuse of prefixes.
        "NPUW_LLM_KV_SWITCHOVER",
        "NPUW_LLM_SINK_TOKENS",
        "NPUW_LLM_PREFIX_CACHING_BLOCK_SIZE",
        "NPUW_LLM_PREFIX_CACHING_MAX_NUM_BLOCKS",
        "NPUW_LLM_PREFIX_CACHING_MAX_BYTES",
        # Number of programs kept for experts.
        "NPUW_MOE_POOL_SIZE",
        # Location of weights.
        "NPUW_WEIGHTS_BANK",
        "NPUW_WEIGHTS_BANK_ALLOC",
        "NPUW_WEIGHTS_BUDGET",
        "NPUW_WEIGHTS_RESERVED",
        # Reports.
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
        # Order of programs.
        "MODEL_PRIORITY",
        "WORKLOAD_TYPE",
        "NPU_RUN_INFERENCES_SEQUENTIALLY",
        # Handling of devices that fail, or are inaccurate.
        "NPUW_FALLBACK_EXEC",
        "NPUW_ACC_THRESH",
        "NPUW_ACC_DEVICE",
        # Options without effect.
        *WITHOUT_EFFECT,
    }
)
"""Options that neither the contents nor the set of compiled programs depend on; an exported blob
fixes all others."""


def _names(*groups: type[OptionGroup]) -> frozenset[str]:
    return frozenset(field.alias or "" for group in groups for field in group.model_fields.values())


RUNS = frozenset({"NPUW_DEVICES", "NPUW_ACC_CHECK"})
"""Options that determine the number of devices of a submodel."""

WHERE = _names(DeviceOptions, PartitionOptions, DumpOptions) - {"NPU_PLATFORM", "NPU_TILES"}
"""Options of devices, partitioning and dumps of submodels."""

SETTABLE = (
    {"NPU_TILES", "DYNAMIC_QUANTIZATION_GROUP_SIZE", "ENABLE_WEIGHTLESS", "NPUW_FOLD"}
    | WHERE
    | _names(MechanismOptions)
)
"""Options that may differ between kinds."""

MAPS = {name: kind for kind, plain in CONFIGS.items() for name in (plain, f"++{plain}")}
"""Kind of static model of each map."""

_CATALOGUE = (
    "a stage can have NPUW_DEVICES, NPUW_SUBMODEL_DEVICE, NPUW_FALLBACK_EXEC, NPUW_ACC_…, "
    "NPUW_ONLINE_…, NPUW_PLAN, NPUW_FOLD, NPUW_FOLD_ONLY, NPUW_SPATIAL…, NPUW_DUMP_…, NPU_TILES, "
    "DYNAMIC_QUANTIZATION_GROUP_SIZE, ENABLE_WEIGHTLESS"
)

_REASONS: tuple[tuple[frozenset[str], str], ...] = (
    (_names(StageOptions), "a map cannot contain maps"),
    (_names(LengthOptions, PrefillOptions, GenerateOptions), "it determines the set of stages"),
    (
        _names(KvOptions) | {"INFERENCE_PRECISION_HINT"},
        "stages pass K, V and hidden states to one another",
    ),
    (_names(DeviceOptions, CompilerOptions), "stages share the memory of one NPU"),
)


def refusal(name: str) -> str:
    """Return the reason that a stage's map rejects an option; empty if it is allowed."""
    if name in SETTABLE:
        return ""
    why = next(
        (reason for names, reason in _REASONS if name in names), "it applies to the complete model"
    )
    return f"{name} cannot differ between stages: {why}; {_CATALOGUE}"


def fixed_part(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a map that programs depend on; blobs store these."""
    return {name: value for name, value in given.items() if name not in RUN_TIME}


def run_time_part(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the run-time options of a map."""
    return {name: value for name, value in given.items() if name in RUN_TIME}
