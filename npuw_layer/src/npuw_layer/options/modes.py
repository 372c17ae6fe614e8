"""Which options are not for models of some kinds (NPUW_WHISPER, NPUW_KOKORO, NPUW_PA)."""

from __future__ import annotations

from collections.abc import Mapping

from npuw_layer.options.model import OptionValues
from npuw_layer.options.reports import selects


def check_modes(options: OptionValues) -> None:
    """See that nothing is asked for that a model's kind excludes.

    Raises:
        ValueError: it is.
    """
    for mode, on, asked in (
        ("NPUW_WHISPER", options.whisper, _not_with_whisper(options)),
        ("NPUW_KOKORO", options.kokoro, _not_with_kokoro(options)),
        ("NPUW_PA", options.paged, _not_with_paged(options)),
    ):
        for name in filter(asked.__getitem__, asked) if on else ():
            raise ValueError(f"{name}: not with {mode} = YES; leave one of them out")


def _not_with_whisper(options: OptionValues) -> Mapping[str, object]:
    return {
        "NPUW_LLM_MAX_GENERATION_TOKEN_LEN": options.max_generation_token_len > 1,
        "NPUW_LLM_BATCH_SLOTS": {*options.batch_slots} != {1},
        "NPUW_LLM_ON_FULL": options.on_full != "ERROR",
        "NPUW_LLM_ENABLE_PREFIX_CACHING": options.enable_prefix_caching,
        "NPUW_LLM_ENABLE_CONTINUOUS_PREFILL": options.enable_continuous_prefill,
        "NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE": options.enable_block_based_kv_cache,
        "NPUW_LLM_GENERATE_ATTENTION_HINT": options.generate_attention_hint in ("HFA", "DYNAMIC"),
        "NPUW_WEIGHTS_OFFLOAD": options.weights_offload != "NO",
        "NPUW_SPATIAL": options.runs_spatial,
    }


def _not_with_kokoro(options: OptionValues) -> Mapping[str, object]:
    return {
        "NPUW_WHISPER": options.whisper,
        "NPUW_TEXT_EMBED": options.text_embed,
        "NPUW_TEXT_RERANK": options.text_rerank,
        "NPUW_GQA": options.gqa,
        "NPUW_WEIGHTS_BANK": options.shares_weights,
        "EXPORT_BLOB": options.export_blob,
    }


def _not_with_paged(options: OptionValues) -> Mapping[str, object]:
    return {
        "NPUW_WHISPER": options.whisper,
        "NPUW_TEXT_EMBED": options.text_embed,
        "NPUW_TEXT_RERANK": options.text_rerank,
        "NPUW_GQA": options.gqa,
        "NPUW_KOKORO": options.kokoro,
        "NPUW_FLUX2": options.flux2,
        "NPUW_PLAN": options.plan,
        "NPUW_ONLINE_PIPELINE": options.online_pipeline != "NONE",
        "NPUW_ONLINE_ISOLATE": options.online_isolate,
        "NPUW_ONLINE_AVOID": options.online_avoid,
        "NPUW_WEIGHTS_BANK": options.shares_weights,
        "NPUW_DUMP_IO": selects(options.dump_io),
        f"KV_CACHE_PRECISION = {options.kv_cache_precision}": options.kv_element,
        "INFERENCE_PRECISION_HINT = bf16": options.precision == "bf16",
        "EXPORT_BLOB": options.export_blob,
    }
