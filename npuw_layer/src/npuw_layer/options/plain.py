"""Properties of the NPU plugin itself, and the choice between it and NPUW."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from npuw_layer.options.base import OptionGroup


class PlainOptions(OptionGroup):
    """Plain NPU properties."""

    title: ClassVar[str] = "Plain NPU properties"

    use_npuw: bool | None = Field(None, alias="NPU_USE_NPUW")
    """YES runs the model through NPUW, NO runs a static model directly; if unset, NPUW_LLM decides.
    """
    llm: bool | None = Field(None, alias="NPUW_LLM")
    """YES: NPUW splits the model as a language model; if unset, NPU_USE_NPUW decides, and if
    both are unset, models whose inputs have dynamic shapes are split."""
    batch_mode: Literal["AUTO", "PLUGIN", "COMPILER"] = Field("AUTO", alias="NPU_BATCH_MODE")
    """Handling of the batch of a static model for the NPU itself, which is the first dimension of
    all inputs and outputs. PLUGIN runs item by item: if the batch is dynamic, an inference accepts
    any number of items, which must be independent; not for models with state. COMPILER compiles a
    program of a fixed batch. AUTO is PLUGIN for a dynamic batch, else COMPILER; OpenVINO's AUTO is
    PLUGIN in both cases, if layouts name the batch."""
    gqa: bool = Field(False, alias="NPUW_GQA")
    """The model is static and in ONNX Runtime's form: its caches are inputs and outputs, and its
    attention is GroupQueryAttention. It runs through NPUW (NPU_USE_NPUW), by default with
    NPUW_ONLINE_PIPELINE = REP and CACHE_MODE = OPTIMIZE_SPEED. A stateful model with such attention
    needs NPUW_LLM instead, which splits it."""
    run_inferences_sequentially: bool = Field(False, alias="NPU_RUN_INFERENCES_SEQUENTIALLY")
    """Run the requests of a static model for the NPU itself one after the other, in the order of
    their start; each round must repeat the order of the first. Another order is an error, and so is
    ``infer``."""
    export_raw_blob: bool = Field(False, alias="NPU_EXPORT_RAW_BLOB")
    """Export a static model as the compiler's ELF alone, for tools that read ELF files. Models that
    run through NPUW have no single ELF. The ELF of a model with state lacks the variables' initial
    values, and that of a model run item by item is the program of one item."""
    import_raw_blob: bool = Field(False, alias="NPU_IMPORT_RAW_BLOB")
    """Import an ELF without metadata, as NPU_EXPORT_RAW_BLOB or `npuc compile` write. The driver
    verifies it like any other; no check can find wrong weight files."""
    disable_version_check: bool = Field(False, alias="NPU_DISABLE_VERSION_CHECK")
    """Import a static model's blob whatever versions made it. The driver verifies the program as
    usual. With metadata of another major version, only the payload is used; a file without a footer
    is a payload."""
