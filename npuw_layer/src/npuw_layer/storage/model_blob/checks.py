"""Checks of an export's content and target, before anything is compiled."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from driver_layer.support.files import looking_at, place_of
from npuw_layer.backends.protocols import (
    Device,
    ExportsPrograms,
    FindsConstants,
    ability,
)
from npuw_layer.errors import DeviceError, OptionError
from npuw_layer.options import NAMES, RUN_TIME, Options
from npuw_layer.options.base import written
from npuw_layer.options.stages import MAPS, fixed_part

DEFAULT_PATH = "openvino_model.blob"
"""Path that EXPORT_BLOB writes to without a BLOB_PATH, as in openvino_genai."""


def check_target(path: Path) -> None:
    """Check before a long compilation that its result can be written.

    Raises:
        OptionError: the result cannot be written.
    """
    try:
        folder = place_of(path)[0].parent
    except OSError as error:
        raise OptionError(f"BLOB_PATH {path}: it cannot be written: {error.strerror}") from None
    with looking_at(path, lambda told: OptionError(f"BLOB_PATH {told}")):
        if not folder.is_dir():
            raise OptionError(f"BLOB_PATH {path}: no folder {folder} exists")
        if not os.access(folder, os.W_OK):
            raise OptionError(f"BLOB_PATH {path}: it cannot be written")


def check_device(device: Device, options: Options) -> None:
    """Check that a device's programs can be used on other machines.

    Raises:
        OptionError: the programs cannot be used elsewhere.
    """
    check_options(options)
    if not (ability(device, FindsConstants) or ability(device, ExportsPrograms)):
        names = dict.fromkeys(repr(own.devices) for own in options.of_stages)
        raise OptionError(
            f"NPUW_DEVICES = {' and '.join(names)}: its programs name files of this machine, and "
            "can be neither exported nor imported; use CACHE_DIR"
        )


def exported(device: Device, options: Options, program: bytes | memoryview) -> bytes | memoryview:
    """Return the exported form of a program.

    Raises:
        OptionError: the program cannot be used on other machines.
    """
    exporting = ability(device, ExportsPrograms)
    if exporting is None:
        return program
    try:
        return exporting.exported(program)
    except DeviceError as error:
        raise OptionError(
            f"NPUW_DEVICES = {options.devices!r}: {error}, so the model cannot be exported; use "
            "CACHE_DIR"
        ) from None


def check_options(options: Options) -> None:
    """Check that no option requires more than programs.

    Raises:
        OptionError: an option requires more.
    """
    if options.weights_offload != "NO":
        raise OptionError(
            f"NPUW_WEIGHTS_OFFLOAD = {options.weights_offload}: offloaded models can be neither "
            "exported nor imported; leave it out, or use CACHE_DIR"
        )
    if any(own.plan for own in options.of_stages):
        raise OptionError(
            "NPUW_PLAN: a blob cannot contain the plan's file; use NPUW_ONLINE_ISOLATE instead, "
            "or CACHE_DIR"
        )
    if any(own.acc_check for own in options.of_stages):
        raise OptionError(
            "NPUW_ACC_CHECK = YES: comparing devices needs the model's graphs, which exported "
            "blobs do not contain; leave it out, or use CACHE_DIR"
        )


def check_compatibility(options: Options) -> None:
    """Check that every machine with this version can import the export, if this is requested.

    Raises:
        OptionError: another machine could not import it.
    """
    if not options.ensure_compatibility:
        return
    problem = ""
    if options.encryption:
        problem = "only the owner of CACHE_ENCRYPTION_CALLBACKS can decrypt the blob"
    elif is_own_platform({"NPU_PLATFORM": options.platform}):
        problem = f"NPU_PLATFORM {options.platform} exists only on this machine"
    elif others := [own.devices for own in options.of_stages if own.devices != "NPU"]:
        problem = f"programs of NPUW_DEVICES = {others[0]!r} have no versioned layout"
    elif options.routes_experts:
        problem = "partitioned mixtures of experts (HOST_ROUTED) have no versioned layout"
    elif any(own.runs_spatial for own in options.of_stages):
        problem = "tiled blocks (NPUW_SPATIAL) have no versioned layout"
    elif any(own.cuts_models for own in options.of_stages):
        problem = "partitioned models (NPUW_ONLINE_…, NPUW_PLAN) have no versioned layout"
    elif isolated := options.isolated_attention:
        problem = (
            f"models whose attention is {' or '.join(isolated.values())} have no versioned layout"
        )
    if problem:
        raise OptionError(f"NPUW_ENSURE_COMPATIBILITY = YES: {problem}; leave one of them out")


def fixed_options(options: Options) -> dict[str, str]:
    """Return the options that a compiled model depends on, as texts that ``parse_options`` reads.

    Unset options stay unset: some take effect only when set, and the versions identify defaults.
    """
    names = [name for name, field in NAMES.items() if field in options.model_fields_set]
    values = {name: getattr(options, NAMES[name]) for name in names if name not in RUN_TIME}
    values |= {name: fixed_part(values[name]) for name in MAPS if name in values}
    if is_own_platform(values):
        # A file of this machine; the device's version identifies its content.
        del values["NPU_PLATFORM"]
    return {name: written(value) for name, value in values.items() if value is not None}


def is_own_platform(fixed: Mapping[str, object]) -> bool:
    """Return whether NPU_PLATFORM is a file, not a name."""
    return not str(fixed.get("NPU_PLATFORM", "0")).isalnum()
