"""Options of one kind of static model, beside those of all.

How they are merged, the last wins: what a kind has by default, or X_CONFIG in its place; what is
set for all models; ++X_CONFIG.

Source: fact sheet npuw §a.4. There these maps are write-only; here they can be read back.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, cast

from pydantic import Field

from npuw_layer.options.base import OptionGroup

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
