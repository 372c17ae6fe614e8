"""What a program depends on: the name of its entry, and what is compared to tell why one is missed.

A key has all that may change a program's bytes and nothing else: an option that only matters when
the program runs, or that was written in another way, finds the same entry.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from driver_layer.support.files import read_regular
from npuw_layer.backends.protocols import (
    Device,
)
from npuw_layer.backends.versions import package_version
from npuw_layer.options import Options
from npuw_layer.options.partition import choices

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


def weights_key(model: str, weights: str, versions: Mapping[str, str]) -> CacheKey:
    """Join what stored weights depend on: the model, which they are, and who converts them."""
    return CacheKey({MODEL: model, "weights": weights, **versions})


def own_version() -> dict[str, str]:
    """This package, which knows options and splits models."""
    return {"npuw": package_version("npuw_layer")}


def current_versions(device: Device, options: Options) -> dict[str, str]:
    """What is installed: this package, and the device with its compiler."""
    return {**own_version(), "device": f"{options.devices} {device.version}"}


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
