"""How a model runs whose attention reads K and V in pages."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from npuw_layer.options.base import OptionGroup


class PagedOptions(OptionGroup):
    """Caches in blocks that are the caller's, as continuous batching has them."""

    title: ClassVar[str] = "Paged attention"

    paged: bool = Field(False, alias="NPUW_PA")
    """The model is one that OpenVINO's paged_attention_transformation made: tokens of several
    sequences come in one row, and tables say where the K and V of each lie in caches of blocks. It
    is compiled for 1, 8, 64, … up to NPUW_LLM_MAX_PROMPT_LEN tokens, and the smallest that suffices
    runs (tokens_8 and so on in NPUW_SUBMODEL_DEVICE); of more tokens it reads the largest number at
    a time. Attention runs on NPUW_PA_DEVICE, in the caller's caches, all else on NPUW_DEVICES.
    Caches have the type of INFERENCE_PRECISION_HINT, f32 or f16, and blocks of 32 rows, unless the
    file says how many. Such a model is not exported; CACHE_DIR keeps what is compiled. OpenVINO
    2026.4 gives it to the CPU whole; the NPU has its part there in later ones."""
    paged_device: Literal["CPU"] = Field("CPU", alias="NPUW_PA_DEVICE")
    """What computes paged attention: no NPU does, as it has to follow tables."""
