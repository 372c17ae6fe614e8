"""The NPU generations, a TOML file each, and the CMX address map that they share.

To try another device, copy a file and change it; a path is accepted wherever a platform's name is
(NPU_PLATFORM, ``npuc --platform``), and ``load_platform`` reads the file. Clocks are those of
the public cost model; real parts run from 1.16 to 1.95 GHz.

    platform  the numbers of a generation, and reading them from a file
    cmx_map   addresses in CMX; all of its names are here, too
"""

from __future__ import annotations

from importlib.resources import files

from driver_layer.abi.platforms.platform import Platform as Platform
from driver_layer.abi.platforms.platform import load_platform as load_platform
from driver_layer.abi.platforms.platform import parse_platform
from driver_layer.errors import PlatformError

from .cmx_map import *


def _own_platforms() -> dict[str, Platform]:
    """Read the files of this package."""
    found = [entry for entry in files(__name__).iterdir() if entry.name.endswith(".toml")]
    read = [parse_platform(entry.read_bytes(), entry.name) for entry in found]
    return {platform.name: platform for platform in sorted(read, key=lambda one: one.name)}


PLATFORMS: dict[str, Platform] = _own_platforms()
"""The platforms by name."""

DEFAULT_PLATFORM = "4000"

PLATFORM_NAMES = {"METEORLAKE": "3720", "LUNARLAKE": "4000", "PANTHERLAKE": "5010"}
"""Platform names by the code names of the products."""


def platform_of(name: str) -> Platform:
    """Return a platform by its name, or by the path of a file that ends with .toml.

    Raises:
        PlatformError: the platform is unknown; also as ``load_platform``.
    """
    if name in PLATFORMS:
        return PLATFORMS[name]
    if name.endswith(".toml"):
        return load_platform(name)
    known = ", ".join(PLATFORMS)
    raise PlatformError(f"unknown platform; choose {known}, or the path of a .toml file", name)
