"""How tokens are generated."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from npuw_layer.options.base import OURS, OptionGroup
from npuw_layer.options.prefill import AttentionHint, MoeHint


class GenerateOptions(OptionGroup):
    """The models that add a token to a conversation."""

    title: ClassVar[str] = "Generate"

    generate_pyramid: bool = Field(True, alias="NPUW_LLM_GENERATE_PYRAMID")
    """Compile generate models of several capacities, so that short conversations run faster."""
    pyramid_steps: tuple[int, ...] = Field(
        (), alias="NPUW_LLM_GENERATE_PYRAMID_STEPS", json_schema_extra=OURS
    )
    """Their capacities, ascending, e.g. "256,1152"; empty doubles from 256."""
    batch_slots: tuple[Annotated[int, Field(ge=1, le=64)], ...] = Field(
        (1,), alias="NPUW_LLM_BATCH_SLOTS", json_schema_extra=OURS
    )
    """How many conversations generate in one inference, e.g. "1,4,8": for each number above 1 the
    generate models are compiled once more; a step takes the smallest that holds all who speak."""
    eagle: bool = Field(False, alias="NPUW_EAGLE")
    """The model is the target or the draft of speculative decoding by Eagle 3: beside logits it
    gives last_hidden_state of each new token, and a draft takes hidden_states. With eagle_tree_mask
    it reads trees of candidates, and npuw_eagle3_sampling_result tells which of them stay. Its
    ports tell that anyway; YES refuses a model that gives none."""
    generate_hint: Literal["FAST_COMPILE", "BEST_PERF"] = Field(
        "FAST_COMPILE", alias="NPUW_LLM_GENERATE_HINT"
    )
    """FAST_COMPILE compiles equal layers of the generate models once, BEST_PERF each by itself:
    that takes longer, and layers may overlap more. NPUW_FOLD goes before it if that is set."""
    generate_attention_hint: AttentionHint = Field(
        "STATIC", alias="NPUW_LLM_GENERATE_ATTENTION_HINT"
    )
    """STATIC attends over all positions of a variant; PYRAMID has variants, whatever
    NPUW_LLM_GENERATE_PYRAMID says. HFA and DYNAMIC are as for NPUW_LLM_PREFILL_ATTENTION_HINT; they
    need NPUW_LLM_BATCH_SLOTS = 1, too."""
    generate_moe_hint: MoeHint = Field("DENSE", alias="NPUW_LLM_GENERATE_MOE_HINT")
    """Which experts of a mixture a token goes through: DENSE through all, in one program;
    HOST_ROUTED through those that the router chose: their weights alone are read, but the host
    stands between the layers. DEVICE_ROUTED likewise, in one program that looks their weights up by
    itself; it takes models whose experts' weights lie in one tensor (Qwen3-MoE). Models without
    experts are the same."""
    shared_head: bool = Field(True, alias="NPUW_LLM_SHARED_HEAD")
    """Compile the product with the vocabulary once, as a model that all others share."""

    @field_validator("pyramid_steps")
    @classmethod
    def _check_steps(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if value and (sorted({*value}) != [*value] or value[0] < 2):
            raise ValueError("capacities must ascend, from 2 on")
        return value
