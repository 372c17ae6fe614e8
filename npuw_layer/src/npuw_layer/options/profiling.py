"""What inferences tell of the time that they took."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from npuw_layer.options.base import OptionGroup


class ProfilingOptions(OptionGroup):
    """What requests tell of the time that inferences took (``profiling_info``)."""

    title: ClassVar[str] = "Profiling"

    perf_count: bool = Field(False, alias="PERF_COUNT")
    """Lets a request tell what its inferences took on the simulated device: ``profiling_info``.
    Blobs are the same with it and without. What runs on other devices than the NPU is left out, and
    so are conversations that share a batch (NPUW_LLM_BATCH_SLOTS)."""
    profiling_type: Literal["MODEL", "INFER"] = Field("MODEL", alias="NPU_PROFILING_TYPE")
    """What is told with PERF_COUNT: MODEL, each layer of the last inference; INFER, how long
    inferences took on average, at least and at most."""
