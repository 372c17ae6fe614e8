"""The options of a compiled model, under OpenVINO's names.

Source: fact sheet npuw §b; NPUW_LLM_GENERATE_PYRAMID_STEPS and NPUW_COMPILER are this project's.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from npuw_layer.errors import OptionError


class Options(BaseModel):
    """What a compiled model depends on besides the model; unknown names are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=False)

    use_npuw: bool | None = Field(None, alias="NPU_USE_NPUW")
    """YES leaves the model to NPUW, NO runs a static model as it is; else see ``routing``."""
    llm: bool | None = Field(None, alias="NPUW_LLM")
    """Whether NPUW is to split the model as a language model."""
    max_prompt_len: int = Field(1024, alias="NPUW_LLM_MAX_PROMPT_LEN", ge=1, le=1 << 20)
    """The longest prompt, in tokens; rounded up to 64, and to the chunk."""
    min_response_len: int = Field(128, alias="NPUW_LLM_MIN_RESPONSE_LEN", ge=0, le=1 << 20)
    """What can at least be generated after a full prompt; rounded up to 64."""
    prefill_hint: Literal["DYNAMIC", "STATIC"] = Field("DYNAMIC", alias="NPUW_LLM_PREFILL_HINT")
    """DYNAMIC reads long prompts in chunks, STATIC whole."""
    prefill_chunk_size: int = Field(1024, alias="NPUW_LLM_PREFILL_CHUNK_SIZE", ge=0)
    """Tokens of a chunk, a power of two; 0 reads prompts whole."""
    generate_pyramid: bool = Field(True, alias="NPUW_LLM_GENERATE_PYRAMID")
    """Compile generate models of several capacities, so that short conversations run faster."""
    pyramid_steps: tuple[int, ...] = Field((), alias="NPUW_LLM_GENERATE_PYRAMID_STEPS")
    """Their capacities, ascending, e.g. "256,1152"; empty doubles from 256."""
    prefill_pyramid: bool = Field(True, alias="NPUW_LLM_PREFILL_PYRAMID")
    """Compile prefill models of several sizes, so that short prompts, and the last chunks of long
    ones, do not pay for a whole chunk."""
    prefill_attention_hint: Literal["PYRAMID", "STATIC"] = Field(
        "PYRAMID", alias="NPUW_LLM_PREFILL_ATTENTION_HINT"
    )
    """With STATIC all chunks of a prompt attend to the whole cache; with PYRAMID there are models
    for the first ones that span less."""
    max_generation_token_len: int = Field(1, alias="NPUW_LLM_MAX_GENERATION_TOKEN_LEN", ge=1, le=64)
    """Tokens that one generate step takes at most, e.g. candidates of speculative decoding; more
    than 1 is rounded up to 8."""
    shared_head: bool = Field(True, alias="NPUW_LLM_SHARED_HEAD")
    """Cut the product with the vocabulary off, into one model for prefill and all variants."""
    kv_switchover: Literal["ZERO_COPY", "COPY"] = Field("ZERO_COPY", alias="NPUW_LLM_KV_SWITCHOVER")
    """Where prefill puts a prompt's K and V: right where generate reads them, or into a buffer that
    is copied, as the original does."""
    continuous_prefill: bool = Field(False, alias="NPUW_LLM_ENABLE_CONTINUOUS_PREFILL")
    """Let several tokens at once go on with what is stored, by prefill; otherwise they must be a
    new conversation, or fit one generate step."""
    prefix_caching: bool = Field(False, alias="NPUW_LLM_ENABLE_PREFIX_CACHING")
    """Keep K and V of prompts by blocks, and take them from there when a prompt begins alike."""
    prefix_block_size: int = Field(256, alias="NPUW_LLM_PREFIX_CACHING_BLOCK_SIZE", ge=1)
    """Tokens of such a block."""
    prefix_max_blocks: int = Field(128, alias="NPUW_LLM_PREFIX_CACHING_MAX_NUM_BLOCKS", ge=1)
    """Blocks to keep; the least recently used go first."""
    prefix_max_bytes: int = Field(1 << 30, alias="NPUW_LLM_PREFIX_CACHING_MAX_BYTES", ge=0)
    """Bytes that they may take."""
    on_full: Literal["ERROR", "TRUNCATE", "SLIDE"] = Field("ERROR", alias="NPUW_LLM_ON_FULL")
    """What to do when the KV cache is full: fail; forget the older half, and read the rest anew; or
    let each new token take the place of the oldest, as StreamingLLM does."""
    sink_tokens: int = Field(4, alias="NPUW_LLM_SINK_TOKENS", ge=0)
    """Tokens at the beginning that are never forgotten (attention sinks)."""
    devices: str = Field("NPU", alias="NPUW_DEVICES")
    """The device, by its name among the entry points: NPU, or CPU (numpy, for exact checks)."""
    compiler: str = Field("npuc", alias="NPUW_COMPILER")
    """The compiler, by its name among the entry points."""
    precision: Literal["f16", "bf16", "f32"] = Field("f16", alias="INFERENCE_PRECISION_HINT")
    """The element type of activations and caches; f32 is for exact comparison."""
    dynamic_quantization_group_size: int = Field(
        0, alias="DYNAMIC_QUANTIZATION_GROUP_SIZE", ge=0, le=(1 << 64) - 1
    )
    """0 keeps activations floats. Any other number quantises them to 8 bits, a scale per token,
    where weights have 8 bits and one scale per column (W8A8); tokens are not cut into groups. The
    graph interpreter (NPUW_DEVICES=CPU) stays exact."""
    kv_cache_precision: Literal["", "i8"] = Field("", alias="KV_CACHE_PRECISION")
    """The element type of K and V caches: empty is that of activations, i8 keeps 8 bits and a scale
    for each row of a head, and attention reads them so: half the memory and half the traffic."""
    platform: str = Field("4000", alias="NPU_PLATFORM")
    """The device's generation: 3720, 4000 or 5010; or the path of a file (.toml) of your own."""
    tiles: int = Field(-1, alias="NPU_TILES", ge=-1)
    """NCE tiles to use; -1 leaves it to the compiler."""
    cache_dir: str = Field("", alias="CACHE_DIR")
    """Folder that keeps compiled programs; empty keeps none."""

    cache_mode: Literal["OPTIMIZE_SIZE", "OPTIMIZE_SPEED"] = Field(
        "OPTIMIZE_SIZE", alias="CACHE_MODE"
    )
    """OPTIMIZE_SIZE makes blobs without weights, which all share one copy of the model's file;
    OPTIMIZE_SPEED puts the weights into each blob."""
    enable_weightless: bool | None = Field(None, alias="ENABLE_WEIGHTLESS")
    """Blobs without weights, or with them, whatever CACHE_MODE says."""
    weights_bank: str = Field("", alias="NPUW_WEIGHTS_BANK", max_length=256)
    """The name of the weights bank. Models that name the same one have one copy of equal weights in
    device memory, in this process and, unlike in the original, in all others of the user; empty
    keeps a bank to oneself."""
    weights_bank_alloc: Literal["", "SHARED"] = Field("", alias="NPUW_WEIGHTS_BANK_ALLOC")
    """Where the bank's weights are. Empty uses them where their file is mapped, and allocates what
    must be converted. SHARED copies all of them, once for all processes, to memory that does not
    depend on the file any more; a bank without a name is then that of all who have none."""
    blob_path: str = Field("", alias="BLOB_PATH")
    """A whole compiled model in one file, *.blob: it is imported instead of compiling anything; or
    written, with EXPORT_BLOB."""
    export_blob: bool = Field(False, alias="EXPORT_BLOB")
    """Write what was compiled to BLOB_PATH; if that is empty, to openvino_model.blob in the current
    folder. CACHE_MODE says whether the weights are in it."""
    weights_path: str = Field("", alias="WEIGHTS_PATH")
    """Where an imported blob finds the weights that it is without: the model's .bin, or the folder
    of its files."""
    model_ptr: str = Field("", alias="MODEL_PTR")
    """The same, by the model: its .xml or folder. (OpenVINO takes a model's object here.)"""
    fold: bool = Field(True, alias="NPUW_FOLD")
    """Whether equal layers are compiled once and instantiated for each, as NPUW does for LLMs."""

    @field_validator(
        "use_npuw",
        "llm",
        "generate_pyramid",
        "prefill_pyramid",
        "shared_head",
        "continuous_prefill",
        "prefix_caching",
        "enable_weightless",
        "fold",
        "export_blob",
        mode="before",
    )
    @classmethod
    def _read_flag(cls, value: object) -> object:
        """OpenVINO writes flags as YES and NO."""
        words = {"YES": True, "NO": False, "TRUE": True, "FALSE": False}
        return words.get(value.upper(), value) if isinstance(value, str) else value

    @field_validator("max_prompt_len", "min_response_len", "prefill_chunk_size", mode="before")
    @classmethod
    def _refuse_truth(cls, value: object) -> object:
        """Python would take True for 1."""
        if isinstance(value, bool):
            raise ValueError("must be an integer")
        return value

    @field_validator("platform", mode="before")
    @classmethod
    def _read_platform(cls, value: object) -> object:
        """Platforms look like numbers, and command lines make numbers of them."""
        return str(value) if isinstance(value, int) else value

    @field_validator("pyramid_steps", mode="before")
    @classmethod
    def _read_steps(cls, value: object) -> object:
        """Take "256,512" as well as a list."""
        return tuple(filter(None, value.split(","))) if isinstance(value, str) else value

    @field_validator("blob_path", "weights_path", "model_ptr", mode="before")
    @classmethod
    def _read_path(cls, value: object) -> object:
        """A path is as good as its text."""
        return str(value) if isinstance(value, Path) else value

    @field_validator("blob_path")
    @classmethod
    def _check_blob_path(cls, value: str) -> str:
        """openvino_genai checks this, too, but after compiling."""
        if value and not value.endswith(".blob"):
            raise ValueError("must end in .blob")
        return value

    @property
    def weightless(self) -> bool:
        """Whether blobs are without weights."""
        if self.enable_weightless is not None:
            return self.enable_weightless
        return self.cache_mode == "OPTIMIZE_SIZE"

    @property
    def resumes_prefill(self) -> bool:
        """Whether prompts may begin behind tokens that are stored already."""
        return self.continuous_prefill or self.prefix_caching

    @property
    def shares_weights(self) -> bool:
        """Whether other processes may use the weights too."""
        return bool(self.weights_bank or self.weights_bank_alloc)

    def compiler_config(self) -> dict[str, str]:
        """What the compiler is told."""
        return {
            "INFERENCE_PRECISION_HINT": self.precision,
            "DYNAMIC_QUANTIZATION_GROUP_SIZE": str(self.dynamic_quantization_group_size),
            "NPU_PLATFORM": self.platform,
            "NPU_TILES": str(self.tiles),
            "ENABLE_WEIGHTLESS": "YES" if self.weightless else "NO",
            "NPUW_FOLD": "YES" if self.fold else "NO",
        }


NAMES: dict[str, str] = {
    field.alias: name for name, field in Options.model_fields.items() if field.alias is not None
}
"""The options by OpenVINO's name, with the name of their field."""

RUN_TIME: frozenset[str] = frozenset(
    {"CACHE_DIR", "BLOB_PATH", "EXPORT_BLOB", "WEIGHTS_PATH", "MODEL_PTR"}
)
"""Options that no compiled program depends on; all others are fixed in an exported blob."""


def parse_options(config: Mapping[str, Any]) -> Options:
    """Check a configuration.

    Raises:
        OptionError: an option is unknown (the nearest name is suggested), or a value is wrong.
    """
    for name in config:
        if name not in NAMES:
            near = difflib.get_close_matches(name, NAMES, 1)
            hint = f"; did you mean {near[0]}?" if near else f"; known are {', '.join(NAMES)}"
            raise OptionError(f"unknown option {name!r}{hint}")
    try:
        return Options.model_validate(dict(config))
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        raise OptionError(f"{name} = {config[name]!r}: {first['msg']}") from None
