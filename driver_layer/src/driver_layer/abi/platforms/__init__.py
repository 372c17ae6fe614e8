"""The NPU generations: a TOML file for each, and where CMX lies in all of them.

To try another device, copy a file and change it; its path is taken wherever a platform's name is
(NPU_PLATFORM, ``npuc --platform``), and ``load_platform`` reads it. Clocks are what
the public cost model plans with; real parts run from 1.16 to 1.95 GHz.

    platform  what is known of a generation
    load      reads it from a file
    cmx_map   addresses in CMX
"""

from __future__ import annotations

from importlib.resources import files

from driver_layer.abi.platforms.cmx_map import (
    CMX_BASE,
    CMX_METADATA_ADDRESS,
    CMX_METADATA_OFFSET,
    CMX_WORKSPACE_ADDRESS,
    CMX_WORKSPACE_OFFSET,
    TILE_OFFSET_MASK,
    TILE_SELECT_MASK,
    TILE_SELECT_SHIFT,
    tile_base,
)
from driver_layer.abi.platforms.load import load_platform, parse_platform
from driver_layer.abi.platforms.platform import Platform
from driver_layer.errors import PlatformError

__all__ = [
    "CMX_BASE",
    "CMX_METADATA_ADDRESS",
    "CMX_METADATA_OFFSET",
    "CMX_WORKSPACE_ADDRESS",
    "CMX_WORKSPACE_OFFSET",
    "DEFAULT_PLATFORM",
    "PLATFORMS",
    "PLATFORM_NAMES",
    "TILE_OFFSET_MASK",
    "TILE_SELECT_MASK",
    "TILE_SELECT_SHIFT",
    "Platform",
    "load_platform",
    "platform_of",
    "tile_base",
]


def _own_platforms() -> dict[str, Platform]:
    """Read the files of this package."""
    found = [entry for entry in files(__name__).iterdir() if entry.name.endswith(".toml")]
    read = [parse_platform(entry.read_bytes(), entry.name) for entry in found]
    return {platform.name: platform for platform in sorted(read, key=lambda one: one.name)}


PLATFORMS: dict[str, Platform] = _own_platforms()
"""The platforms by name."""

DEFAULT_PLATFORM = "4000"

PLATFORM_NAMES = {"METEORLAKE": "3720", "LUNARLAKE": "4000", "PANTHERLAKE": "5010"}
"""What the products are called that have them."""


def platform_of(name: str) -> Platform:
    """Give a platform by its name, or one of your own by its file's path, which ends with .toml.

    Raises:
        PlatformError: there is no such platform; else as ``load_platform``.
    """
    if name in PLATFORMS:
        return PLATFORMS[name]
    if name.endswith(".toml"):
        return load_platform(name)
    known = ", ".join(PLATFORMS)
    raise PlatformError(f"unknown platform; known are {known}, or a file (.toml) of your own", name)
