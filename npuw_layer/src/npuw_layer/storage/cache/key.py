"""Dependencies of a program: they name its cache entry, and explain a missing one.

A key has exactly the inputs that may change a program's bytes. An option that only
matters at run time, or that is spelled differently, leads to the same entry.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from driver_layer.support.files import read_regular
from driver_layer.support.versions import package_version
from npuw_layer.backends.protocols import (
    Device,
)
from npuw_layer.options import Options
from npuw_layer.options.partition import choices

MODEL = "model"
STAGE = "stage."
"""Prefix of the parts that distinguish the static models of one LLM."""

VERSIONS = frozenset({"device", "npuw"})
"""Parts that change with the installation, not with the request."""


@dataclass(frozen=True)
class CacheKey:
    """All dependencies of a program, by name."""

    parts: dict[str, str]

    @cached_property
    def name(self) -> str:
        """Name of the entry's file, without its suffix; a model's entries share a prefix."""
        text = "\0".join(f"{name}={value}" for name, value in sorted(self.parts.items()))
        return f"{self.model}-{hashlib.sha256(text.encode()).hexdigest()[:40]}"

    @property
    def model(self) -> str:
        """Common prefix of the names of a model's entries."""
        return self.parts[MODEL][:12]

    def differences(self, other: Mapping[str, str]) -> dict[str, tuple[str, str]]:
        """Return the parts that differ from another program's: its value, and ours."""
        names = sorted(self.parts.keys() | other.keys())
        pairs = {name: (other.get(name, ""), self.parts.get(name, "")) for name in names}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def weights_key(model: str, weights: str, versions: Mapping[str, str]) -> CacheKey:
    """Return the key of stored weights: the model, the weights' digest, and versions."""
    return CacheKey({MODEL: model, "weights": weights, **versions})


def own_version() -> dict[str, str]:
    """Return this package's version, which defines options and the splitting of models."""
    return {"npuw": package_version("npuw_layer")}


def current_versions(device: Device, options: Options) -> dict[str, str]:
    """Return the installed versions: this package, and the device with its compiler."""
    return {**own_version(), "device": f"{options.devices} {device.version}"}


def compiler_choices(options: Options) -> dict[str, str]:
    """Return the compiler's configuration, in one canonical form for each meaning."""
    config = options.compiler_config()
    # The device's version identifies the platform, whatever the platform file's name.
    del config["NPU_PLATFORM"]
    config["NPU_TILES"] = str(max(0, options.tiles))
    return config


def partition_choices(options: Options) -> dict[str, str]:
    """Return the options that partition static models, in one canonical form for each meaning."""
    tiles = f"{options.spatial_nway} {options.spatial_dyn}" if options.runs_spatial else ""
    return {
        "NPUW_PLAN": _digest_of(options.plan),
        "NPUW_ONLINE_PIPELINE": _pipeline(options),
        "NPUW_ONLINE_ISOLATE": str(options.isolated_ops),
        "NPUW_ONLINE_AVOID": str(choices(options.online_avoid)),
        "NPUW_ONLINE_NO_FOLD": str(sorted(options.unfolded_tags)),
        "NPUW_FOLD_ONLY": str(sorted({*options.fold_only})),
        "NPUW_SPATIAL": tiles,
    }


def _pipeline(options: Options) -> str:
    """Return the options that grow submodels; singly isolated ops are among the other choices."""
    match options.online_pipeline:
        case "REP" | "REG" if options.cuts_layers:
            return f"REP {options.online_keep_blocks} {options.online_keep_block_size}"
        case "JUST":
            return f"JUST {options.least_ranges}"
        case "INIT":
            return "INIT"
        case _:
            return "NONE"


def _digest_of(path: str) -> str:
    """Return the digest of a file's content; empty if unreadable, which its reader reports."""
    try:
        return hashlib.sha256(read_regular(Path(path).expanduser())).hexdigest() if path else ""
    except OSError:
        return ""
