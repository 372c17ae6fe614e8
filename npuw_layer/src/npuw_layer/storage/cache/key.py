"""What a program depends on: the name of its entry, and what is compared to tell why one is missed.

A key has all that may change a program's bytes and nothing else: an option that only matters when
the program runs, or that was written in another way, finds the same entry.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from driver_layer.regular_file import read_regular
from npuw_layer.backends.protocols import (
    Device,
    device_of,
)
from npuw_layer.llm.plan.stages import Stage, kv_layout, lengths_of
from npuw_layer.options import Options
from npuw_layer.options.partition import choices
from npuw_layer.options.stages import StageKind
from npuw_layer.storage.versions import package_version

MODEL = "model"
STAGE = "stage."
"""Begins the parts that tell the static models of one LLM apart."""

VERSIONS = frozenset({"device", "npuw"})
"""Parts that change with what is installed, not with what is asked for."""


@dataclass(frozen=True)
class CacheKey:
    """All that a program depends on, by name."""

    parts: dict[str, str]

    @cached_property
    def name(self) -> str:
        """The entry's file, without its suffix; entries of a model begin alike."""
        text = "\0".join(f"{name}={value}" for name, value in sorted(self.parts.items()))
        return f"{self.model}-{hashlib.sha256(text.encode()).hexdigest()[:40]}"

    @property
    def model(self) -> str:
        """What the names of a model's entries begin with."""
        return self.parts[MODEL][:12]

    def differences(self, other: Mapping[str, str]) -> dict[str, tuple[str, str]]:
        """Tell what another program depends on differently: its value, and ours."""
        names = sorted(self.parts.keys() | other.keys())
        pairs = {name: (other.get(name, ""), self.parts.get(name, "")) for name in names}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def stage_key(model: str, stage: Stage, versions: Mapping[str, str], options: Options) -> CacheKey:
    """Join what a stage's program depends on.

    Args:
        model: the digest of its content.
        stage: which static model.
        versions: as ``stage_versions`` gives them.
        options: what was asked for.
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


def weights_key(model: str, weights: str, versions: Mapping[str, str]) -> CacheKey:
    """Join what stored weights depend on: the model, which they are, and who converts them."""
    return CacheKey({MODEL: model, "weights": weights, **versions})


def own_version() -> dict[str, str]:
    """This package, which knows options and splits models."""
    return {"npuw": package_version("npuw_layer")}


def current_versions(device: Device, options: Options) -> dict[str, str]:
    """What is installed: this package, and the device with its compiler."""
    return {**own_version(), "device": f"{options.devices} {device.version}"}


def stage_versions(device: Device, options: Options, kind: StageKind) -> dict[str, str]:
    """The same for one kind of a language model's static models, which may run elsewhere."""
    return current_versions(device_of(device, kind), options.of_stage(kind))


def compiler_choices(options: Options) -> dict[str, str]:
    """What the compiler is told, where one meaning has one form."""
    config = options.compiler_config()
    # The device's version says which platform it is, whatever its file is called.
    del config["NPU_PLATFORM"]
    config["NPU_TILES"] = str(max(0, options.tiles))
    quantized = options.dynamic_quantization_group_size != 0
    config["DYNAMIC_QUANTIZATION_GROUP_SIZE"] = "ANY" if quantized else "0"
    return config


def partition_choices(options: Options) -> dict[str, str]:
    """How static models are cut, where one meaning has one form."""
    return {
        "NPUW_PLAN": _digest_of(options.plan),
        "NPUW_ONLINE_PIPELINE": _pipeline(options),
        "NPUW_ONLINE_ISOLATE": str(options.isolated_ops),
        "NPUW_ONLINE_AVOID": str(choices(options.online_avoid)),
        "NPUW_ONLINE_NO_FOLD": str(sorted(options.unfolded_tags)),
        "NPUW_FOLD_ONLY": str(sorted({*options.fold_only})),
        "NPUW_SPATIAL": _spatial(options),
    }


def _pipeline(options: Options) -> str:
    """What grows submodels; what it cuts out one by one is said by the choices of ops."""
    match options.online_pipeline:
        case "REP" | "REG" if options.cuts_layers:
            return f"REP {options.online_keep_blocks} {options.online_keep_block_size}"
        case "JUST":
            return f"JUST {options.least_stretches}"
        case "INIT":
            return "INIT"
        case _:
            return "NONE"


def _spatial(options: Options) -> str:
    """How blocks are cut into tiles, if they are."""
    return f"{options.spatial_nway} {options.spatial_dyn}" if options.runs_spatial else ""


def _digest_of(path: str) -> str:
    """Tell what a file says, wherever it is; who reads it says what is wrong with it."""
    try:
        return hashlib.sha256(read_regular(Path(path).expanduser())).hexdigest() if path else ""
    except OSError:
        return ""


def _choices(options: Options) -> dict[str, str]:
    """Options that matter to a stage of an LLM."""
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
    """Return how models without generate stages read, and how long their texts may be."""
    if options.generates:
        return {}
    lengths = lengths_of(options)
    return {
        "NPUW_LLM_MAX_PROMPT_LEN": str(lengths.max_prompt),
        "NPUW_LLM_PREFILL_CHUNK_SIZE": str(lengths.chunk),
    }
