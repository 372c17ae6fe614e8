"""Options of devices and the compiler: choice of devices and compiler, and order of programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from driver_layer.abi.platforms import DEFAULT_PLATFORM, PLATFORM_NAMES, PLATFORMS
from npuw_layer.options.base import OURS, OptionGroup, readable


def device_names(text: str) -> Sequence[str]:
    """Parse NPUW_DEVICES, e.g. "NPU,CPU".

    Raises:
        ValueError: the list is empty, or names a device twice.
    """
    names = [part.strip() for part in text.split(",") if part.strip()]
    if not names or len(set(names)) != len(names):
        raise ValueError('name each device once, e.g. "NPU,CPU"')
    return names


def pins(text: str) -> list[tuple[str, str]]:
    """Parse NPUW_SUBMODEL_DEVICE, e.g. "0:CPU,last:NPU", into pairs of submodel and device.

    Raises:
        ValueError: an entry is malformed.
    """
    found: list[tuple[str, str]] = []
    for entry in filter(None, (part.strip() for part in text.split(","))):
        which, colon, device = (part.strip() for part in entry.partition(":"))
        if not colon or not which or not device:
            raise ValueError(f'{entry!r} is not a pin; write e.g. "0:CPU,last:NPU"')
        found.append((which, device))
    return found


class DeviceOptions(OptionGroup):
    """Devices."""

    title: ClassVar[str] = "Devices"

    devices: Annotated[str, readable(device_names)] = Field("NPU", alias="NPUW_DEVICES")
    """The devices, in the order in which they are tried for each submodel, e.g. "NPU,CPU", by
    entry-point name: NPU, CPU (numpy, for exact checks), OPENVINO_CPU (the CPU plugin of the
    package openvino). Submodels of a cut model are placed one by one."""
    submodel_device: Annotated[str, readable(pins)] = Field("", alias="NPUW_SUBMODEL_DEVICE")
    """First device of submodels, e.g. "0:CPU,last:NPU". Submodels are numbered in compilation
    order: prefill, generate variants, LM head. Names ("generate_256") and kinds ("prefill",
    "generate", "head") are accepted, too."""
    fallback_exec: bool = Field(True, alias="NPUW_FALLBACK_EXEC")
    """YES: the next device takes over a submodel when its device fails at run time; never with
    DYNAMIC attention."""
    acc_check: bool = Field(False, alias="NPUW_ACC_CHECK")
    """Run each submodel on NPUW_ACC_DEVICE, too, and move inaccurate ones there. Each part of a
    partitioned model is checked separately; ``execution_report()`` shows the errors by kind of
    part."""
    acc_thresh: float = Field(0.01, alias="NPUW_ACC_THRESH", ge=0, allow_inf_nan=False)
    """The largest accepted error of an output: RMSE relative to the range of its values."""
    acc_device: str = Field("", alias="NPUW_ACC_DEVICE")
    """The reference device of NPUW_ACC_CHECK; empty is CPU."""
    platform: str = Field("4000", alias="NPU_PLATFORM")
    """The device's generation: 3720, 4000 or 5010, also as METEORLAKE, LUNARLAKE or PANTHERLAKE, or
    as NPU4000; AUTO_DETECT is the default; or the path of a user-defined platform (.toml)."""
    tiles: int = Field(-1, alias="NPU_TILES", ge=-1, le=64)
    """NCE tiles to use; -1 lets the compiler decide."""

    @field_validator("platform")
    @classmethod
    def _check_platform(cls, value: str) -> str:
        """Convert a platform to the number that compiler and driver use."""
        if value.endswith(".toml"):
            return value
        name = value.upper().removeprefix("NPU")
        name = DEFAULT_PLATFORM if name == "AUTO_DETECT" else PLATFORM_NAMES.get(name, name)
        if name not in PLATFORMS:
            known = ", ".join((*PLATFORMS, *PLATFORM_NAMES))
            raise ValueError(f"unknown platform; use {known}, or a platform file (.toml)")
        return name


class CompilerOptions(OptionGroup):
    """The compiler."""

    title: ClassVar[str] = "Compiler"

    compiler: str = Field("npuc", alias="NPUW_COMPILER", json_schema_extra=OURS)
    """The compiler, by entry-point name."""
    fold: bool = Field(True, alias="NPUW_FOLD")
    """Compile equal layers once, and instantiate the program for each, as NPUW does for LLMs."""


class TurnOptions(OptionGroup):
    """Order of programs of several models that wait for the NPU.

    A started program runs to its end; programs of other models may run between those of an
    inference.
    """

    title: ClassVar[str] = "Turns"

    model_priority: Literal["LOW", "MEDIUM", "HIGH"] = Field("MEDIUM", alias="MODEL_PRIORITY")
    """Urgency of the model relative to others of the process: of the programs that wait for the
    NPU, the most urgent runs first; equal ones run in order of submission."""
    workload_type: Literal["DEFAULT", "EFFICIENT"] = Field("DEFAULT", alias="WORKLOAD_TYPE")
    """EFFICIENT runs the model in the background: its programs start when no others wait, whatever
    their MODEL_PRIORITY is."""
