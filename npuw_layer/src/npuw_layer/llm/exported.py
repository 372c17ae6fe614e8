"""A compiled LLM as one file: all its programs, what they were compiled with, and of which files.

Source: fact sheet npuw §d (what the original's LLM blob holds), genai §c.2 (EXPORT_BLOB).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from npuw_layer.blob.container import MODEL, describe, write_container
from npuw_layer.blob.manifest import ModelManifest
from npuw_layer.cache.key import current_versions
from npuw_layer.cache.known_files import KnownFiles
from npuw_layer.cache.replace import remove_leftovers, replacing
from npuw_layer.errors import NpuwFault, OptionError
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.model_files import needed_files
from npuw_layer.llm.programs import constants_of
from npuw_layer.options import NAMES, RUN_TIME, Options
from npuw_layer.options.base import written
from npuw_layer.ports import Device, FindsConstants

DEFAULT_PATH = "openvino_model.blob"
"""Where EXPORT_BLOB writes without a BLOB_PATH, as in openvino_genai."""


def check_target(path: Path) -> None:
    """See before a long compilation that its result can be written.

    Raises:
        OptionError: it cannot.
    """
    folder = path.absolute().parent
    if not folder.is_dir():
        raise OptionError(f"BLOB_PATH {path}: there is no folder {folder}")
    if path.is_dir() or not os.access(folder, os.W_OK):
        raise OptionError(f"BLOB_PATH {path}: it cannot be written")


def check_device(device: Device, options: Options) -> None:
    """See that a device's programs mean the same elsewhere.

    Raises:
        OptionError: they do not.
    """
    check_options(options)
    if not isinstance(device, FindsConstants):
        raise OptionError(
            f"NPUW_DEVICES = {options.devices!r}: its programs name files of this machine, so they "
            "are neither exported nor imported"
        )


def check_options(options: Options) -> None:
    """See that nothing is asked for that takes more than programs.

    Raises:
        OptionError: something is.
    """
    if options.weights_offload != "NO":
        raise OptionError(
            f"NPUW_WEIGHTS_OFFLOAD = {options.weights_offload}: models in pieces are neither "
            "exported nor imported; leave it out, or use CACHE_DIR"
        )
    if options.acc_check:
        raise OptionError(
            "NPUW_ACC_CHECK = YES: to compare devices takes the model's graphs, which exported "
            "blobs are without; leave it out, or use CACHE_DIR"
        )


def export_file(compiled: CompiledLLM, options: Options, path: Path) -> None:
    """Write a compiled LLM to a file, which replaces another only when it is whole.

    Raises:
        NpuwFault: the disk is full, or the folder is read-only.
    """
    try:
        remove_leftovers(path.absolute().parent, path.name)
        with replacing(path.absolute()) as file:
            export_llm(compiled, options, file)
    except OSError as error:
        raise NpuwFault(f"{path}: {error.strerror}") from None


def export_llm(compiled: CompiledLLM, options: Options, file: BinaryIO) -> None:
    """Write a compiled LLM to a stream.

    Raises:
        OptionError: its device's programs cannot be exported.
        ModelError: the model's files have changed since it was compiled.
        OSError: the stream fails.
    """
    device = compiled.device
    check_device(device, options)
    known = KnownFiles(Path(options.cache_dir).expanduser() if options.cache_dir else None)
    files = needed_files(compiled.models.values())
    manifest = ModelManifest(
        parts=tuple(
            describe(one.stage.name, one.program, constants_of(device, one.program))
            for one in compiled.programs
        ),
        versions=current_versions(device, options),
        options=fixed_options(options),
        files=compiled.files.digests(files, known) if files else {},
        model=compiled.files.identity(known),
    )
    write_container(file, MODEL, manifest, [one.program for one in compiled.programs])


def fixed_options(options: Options) -> dict[str, str]:
    """Give what a compiled model cannot be without, as texts that ``parse_options`` reads.

    What was not set stays so: some options count only if they are, and the versions tell defaults.
    """
    names = [name for name, field in NAMES.items() if field in options.model_fields_set]
    values = {name: getattr(options, NAMES[name]) for name in names if name not in RUN_TIME}
    if is_own_platform(values):
        # A file of this machine; the device's version says what was in it.
        del values["NPU_PLATFORM"]
    return {name: written(value) for name, value in values.items() if value is not None}


def is_own_platform(fixed: Mapping[str, object]) -> bool:
    """Tell whether NPU_PLATFORM is a file, not a name."""
    return not str(fixed.get("NPU_PLATFORM", "0")).isalnum()
