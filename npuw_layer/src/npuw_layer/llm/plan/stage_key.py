"""Cache keys of a language model's stages."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from npuw_layer.backends.protocols import Device, device_of
from npuw_layer.llm.plan.stages import Stage, kv_layout, lengths_of
from npuw_layer.options import Options
from npuw_layer.options.stages import StageKind
from npuw_layer.storage.cache.key import (
    MODEL,
    STAGE,
    CacheKey,
    compiler_choices,
    current_versions,
    partition_choices,
)


def stage_key(model: str, stage: Stage, versions: Mapping[str, str], options: Options) -> CacheKey:
    """Return the cache key of a stage's program, made of all that the program depends on.

    Args:
        model: digest of the model's content.
        stage: the static model.
        versions: result of ``stage_versions``.
        options: options of the compilation.
    """
    fields = {
        STAGE + field.name: str(getattr(stage, field.name)) for field in dataclasses.fields(stage)
    }
    return CacheKey(
        {
            MODEL: model,
            **fields,
            **versions,
            **_choices(options.of_stage(stage.kind.value)),
            **options.experts_config(stage.kind.value),
        }
    )


def stage_versions(device: Device, options: Options, kind: StageKind) -> dict[str, str]:
    """Return the versions for one kind of static model, which may run on another device."""
    return current_versions(device_of(device, kind), options.of_stage(kind))


def _choices(options: Options) -> dict[str, str]:
    """Return the options that a stage of an LLM depends on."""
    layout = kv_layout(options)
    return {
        "KV_CACHE_PRECISION": options.kv_element,
        "NPUW_LLM_OPTIMIZE_FP8": str(options.optimize_fp8),
        "NPUW_LLM_OPTIMIZE_V_TENSORS": str(layout.room),
        "NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE": str(layout.block),
        "NPUW_LLM_BATCH_DIM": str(options.batch_dim),
        "NPUW_LLM_SEQ_LEN_DIM": str(options.seq_len_dim),
        "NPUW_LLM_MAX_LORA_RANK": str(options.max_lora_rank),
        "NPUW_LLM_SHARED_HEAD": str(options.cuts_head),
        "NPUW_LLM_CACHE_ROPE": str(options.caches_rope),
        **options.kinds_key,
        **partition_choices(options),
        **_text_choices(options),
        **compiler_choices(options),
    }


def _text_choices(options: Options) -> dict[str, str]:
    """Return the lengths that models without generate stages depend on."""
    if options.generates:
        return {}
    lengths = lengths_of(options)
    return {
        "NPUW_LLM_MAX_PROMPT_LEN": str(lengths.max_prompt),
        "NPUW_LLM_PREFILL_CHUNK_SIZE": str(lengths.chunk),
    }
