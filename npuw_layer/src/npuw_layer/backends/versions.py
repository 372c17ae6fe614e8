"""The version of the compiler, as OpenVINO's NPU plugin writes it."""

from __future__ import annotations

from driver_layer.support.versions import package_version


def compiler_number() -> int:
    """Return the compiler's version as NPUW does: 16 bits of major, then 16 bits of minor."""
    major, minor, *_ = package_version("compiler_layer").split(".")
    return int(major) << 16 | int(minor)
