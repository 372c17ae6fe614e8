"""The options of a compiled model, under OpenVINO's names.

Source: fact sheet npuw §b; NPUW_LLM_GENERATE_PYRAMID_STEPS, NPUW_LLM_BATCH_SLOTS and
NPUW_COMPILER are this project's.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from npuw_layer.errors import OptionError


class Options(BaseModel):
    """What a compiled model depends on besides the model; unknown names are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=False)

    use_npuw: Literal[True] = Field(True, alias="NPU_USE_NPUW")
    """The only way of running a model on this stack."""
    llm: Literal[True] = Field(True, alias="NPUW_LLM")
    """Only language models are supported."""
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
    batch_slots: tuple[Annotated[int, Field(ge=1, le=64)], ...] = Field(
        (1,), alias="NPUW_LLM_BATCH_SLOTS"
    )
    """How many conversations generate in one inference, e.g. "1,4,8": for each number above 1 the
    generate models are compiled once more, and ``npuw_layer.batching`` takes the smallest that
    holds those who have something to say."""
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
    fold: bool = Field(True, alias="NPUW_FOLD")
    """Whether equal layers are compiled once and instantiated for each, as NPUW does for LLMs."""

    @field_validator(
        "use_npuw", "llm", "generate_pyramid", "enable_weightless", "fold", mode="before"
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

    @field_validator("pyramid_steps", "batch_slots", mode="before")
    @classmethod
    def _read_steps(cls, value: object) -> object:
        """Take "256,512" as well as a list, and a single number."""
        if isinstance(value, int) and not isinstance(value, bool):
            return (value,)
        return tuple(filter(None, value.split(","))) if isinstance(value, str) else value

    @field_validator("batch_slots")
    @classmethod
    def _order_slots(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        """One conversation alone is always possible."""
        return tuple(sorted({1, *value}))

    @property
    def weightless(self) -> bool:
        """Whether blobs are without weights."""
        if self.enable_weightless is not None:
            return self.enable_weightless
        return self.cache_mode == "OPTIMIZE_SIZE"

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
