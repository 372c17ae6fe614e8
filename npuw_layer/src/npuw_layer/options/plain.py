"""Properties of the NPU plugin itself, and the choice between it and NPUW."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from npuw_layer.options.base import OptionGroup


class PlainOptions(OptionGroup):
    """Plain NPU properties."""

    title: ClassVar[str] = "Plain NPU properties"

    use_npuw: bool | None = Field(None, alias="NPU_USE_NPUW")
    """YES leaves the model to NPUW, NO runs a static model as it is; if unset, NPUW_LLM decides."""
    llm: bool | None = Field(None, alias="NPUW_LLM")
    """Whether NPUW is to split the model as a language model; if unset, that follows from
    NPU_USE_NPUW, and if that is unset, too, from the model: it must be split if its inputs have
    dynamic shapes."""
    batch_mode: Literal["AUTO", "PLUGIN", "COMPILER"] = Field("AUTO", alias="NPU_BATCH_MODE")
    """Who takes the batch of a static model for the NPU itself, the first dimension of all inputs
    and outputs. PLUGIN runs item by item: an inference takes any number of items if the batch is
    open, and these must not depend on one another; not for models with state. COMPILER makes a
    program of a batch that is fixed. AUTO is PLUGIN where the batch is open, else COMPILER; the
    original's is PLUGIN in both cases, where layouts say what the batch is."""
    gqa: bool = Field(False, alias="NPUW_GQA")
    """The model is a static one as ONNX Runtime has them: its caches are inputs and outputs, and
    its attention is GroupQueryAttention. It goes through NPUW (NPU_USE_NPUW) as one with
    NPUW_ONLINE_PIPELINE = REP and CACHE_MODE = OPTIMIZE_SPEED, unless these say something else.
    A stateful model with such attention needs NPUW_LLM instead, which splits it."""
    run_inferences_sequentially: bool = Field(False, alias="NPU_RUN_INFERENCES_SEQUENTIALLY")
    """Requests of a static model for the NPU itself run one after the other, in the order in which
    they are started, and in each round in the order of the first: another one is an error, and so
    is ``infer``."""
    export_raw_blob: bool = Field(False, alias="NPU_EXPORT_RAW_BLOB")
    """Export a static model as what the compiler made and nothing else: an ELF, for tools that read
    such. Models that go through NPUW have no such thing; of one with state it would not say what
    variables start as, and of one that is run item by item it is the program of one item."""
    import_raw_blob: bool = Field(False, alias="NPU_IMPORT_RAW_BLOB")
    """Import an ELF that nothing is said of, such as NPU_EXPORT_RAW_BLOB or `npuc compile` write.
    The driver verifies it as any other; that files of weights are the right ones, nobody can."""
    disable_version_check: bool = Field(False, alias="NPU_DISABLE_VERSION_CHECK")
    """Import a static model's blob whatever versions made it. The driver verifies the program as
    ever. Of metadata of another major version the payload alone is taken, and a file without a
    footer is one."""
