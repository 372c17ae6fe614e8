"""Options of models with paged attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from npuw_layer.options.base import OptionGroup
from npuw_layer.options.kinds import KindOptions
from npuw_layer.options.llm import KvOptions
from npuw_layer.options.model import OptionValues
from npuw_layer.options.reports import selects


class PagedOptions(KindOptions):
    """Caches in blocks of the caller's memory, for continuous batching."""

    title: ClassVar[str] = "Paged attention"
    flags: ClassVar[tuple[str, ...]] = ("paged",)
    follows: ClassVar[type[OptionGroup] | None] = KvOptions

    paged: bool = Field(False, alias="NPUW_PA")
    """The model is the result of OpenVINO's paged_attention_transformation: tokens of several
    sequences come in one row, and tables locate the K and V of each sequence in caches of blocks.
    The model is compiled for 1, 8, 64, … up to NPUW_LLM_MAX_PROMPT_LEN tokens (variants tokens_1,
    tokens_8 and so on in NPUW_SUBMODEL_DEVICE). The smallest sufficient variant runs; more tokens
    than the largest variant takes are read in several runs. Attention runs on NPUW_PA_DEVICE, in
    the caller's caches, all other ops on NPUW_DEVICES. Caches have the type of
    INFERENCE_PRECISION_HINT, f32 or f16, and blocks of 32 rows, unless the file states another
    number. Export is not supported; CACHE_DIR keeps the compiled models. OpenVINO 2026.4 runs such
    models entirely on the CPU; later versions use the NPU, too."""
    paged_device: Literal["CPU"] = Field("CPU", alias="NPUW_PA_DEVICE")
    """Device that computes paged attention. The NPU cannot, as attention follows tables."""

    def excluded(self) -> Mapping[str, object]:
        """Exclude cuts other than around attention, and types that caches do not support."""
        options = self.group(OptionValues)
        return {
            "NPUW_GQA": options.gqa,
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
