"""Where models run."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from npuw_layer.options.base import OptionGroup


class DeviceOptions(OptionGroup):
    """Devices."""

    title: ClassVar[str] = "Devices"

    devices: str = Field("NPU", alias="NPUW_DEVICES")
    """The device, by its name among the entry points: NPU, or CPU (numpy, for exact checks)."""
    platform: str = Field("4000", alias="NPU_PLATFORM")
    """The device's generation: 3720, 4000 or 5010; or the path of a file (.toml) of your own."""
    tiles: int = Field(-1, alias="NPU_TILES", ge=-1, le=64)
    """NCE tiles to use; -1 leaves it to the compiler."""
