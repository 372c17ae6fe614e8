"""A compiled LLM as one file: all its programs, what they were compiled with, and of which files.

Source: fact sheet npuw §d (what the original's LLM blob holds), genai §c.2 (EXPORT_BLOB).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from npuw_layer.blob.container import MODEL, describe
from npuw_layer.blob.encryption import write_programs
from npuw_layer.blob.manifest import ModelManifest
from npuw_layer.cache.key import current_versions
from npuw_layer.cache.known_files import KnownFiles
from npuw_layer.cache.replace import remove_leftovers, replacing
from npuw_layer.errors import NpuwFault, OptionError
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.model_files import needed_files, weight_files
from npuw_layer.llm.programs import blob_weights, constants_of
from npuw_layer.llm.stages import isolated_attention
from npuw_layer.options import NAMES, RUN_TIME, Options
from npuw_layer.options.base import written
from npuw_layer.ports import Device, FindsConstants
from npuw_layer.stored_weights import PART, WantedWeights

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


def check_compatibility(options: Options) -> None:
    """See that whoever has this version can import what is exported, if that is asked for.

    Raises:
        OptionError: they cannot.
    """
    if not options.ensure_compatibility:
        return
    problem = ""
    if options.encryption:
        problem = "what CACHE_ENCRYPTION_CALLBACKS encrypt is for their owner alone"
    elif is_own_platform({"NPU_PLATFORM": options.platform}):
        problem = f"NPU_PLATFORM {options.platform} is of this machine alone"
    elif options.devices != "NPU":
        problem = f"programs of NPUW_DEVICES = {options.devices!r} have no versioned layout"
    elif options.routes_experts:
        problem = "mixtures of experts in parts (HOST_ROUTED) have no versioned layout"
    elif options.cuts_models:
        problem = "models in parts (NPUW_ONLINE_…) have no versioned layout"
    elif isolated := isolated_attention(options):
        problem = (
            f"models whose attention is {' or '.join(isolated.values())} have no versioned layout"
        )
    if problem:
        raise OptionError(f"NPUW_ENSURE_COMPATIBILITY = YES: {problem}; leave one of them out")


def export_file(compiled: CompiledLLM, path: Path) -> None:
    """Write a compiled LLM to a file, which replaces another only when it is whole.

    Raises:
        NpuwFault: the disk is full, or the folder is read-only.
    """
    try:
        remove_leftovers(path.absolute().parent, lambda name: name == path.name, locks=False)
        with replacing(path.absolute()) as file:
            export_llm(compiled, file)
    except OSError as error:
        raise NpuwFault(f"{path}: {error.strerror}") from None


def export_llm(compiled: CompiledLLM, file: BinaryIO) -> None:
    """Write a compiled LLM to a stream.

    Raises:
        OptionError: its device's programs cannot be exported, or encrypting fails.
        ModelError: the model's files have changed since it was compiled.
        OSError: the stream fails.
    """
    device, options = compiled.device, compiled.options
    check_compatibility(options)
    check_device(device, options)
    known = KnownFiles(Path(options.cache_dir).expanduser() if options.cache_dir else None)
    programs = [one.program for one in compiled.programs]
    parts = [
        describe(one.stage.name, one.program, constants_of(device, one.program))
        for one in compiled.programs
    ]
    loaded = list(compiled.models.values())
    weights = blob_weights(compiled.plan.stages, loaded, options)
    if weights is not None:
        programs.append(_gather(compiled, weights))
        parts.append(describe(PART, programs[-1], weights.spans))
    files = needed_files(loaded, () if weights is None else weights.infos)
    manifest = ModelManifest(
        parts=tuple(parts),
        versions=current_versions(device, options),
        options=fixed_options(options),
        files=compiled.sources.files.digests(files, known) if files else {},
        model=compiled.sources.identity(known),
    )
    write_programs(file, MODEL, manifest, programs, options.encryption)


def _gather(compiled: CompiledLLM, weights: WantedWeights) -> memoryview:
    """Give the weights as one part, those of the files as these were.

    Raises:
        ModelError: the files have changed since the model was compiled.
    """
    stored = compiled.sources.stored
    if stored is not None and stored.layout == weights.layout:
        return stored.content
    content = weights.gather(compiled.bank.read)
    compiled.sources.files.check(
        weight_files(name for name in weights.infos if name not in (stored or ()))
    )
    return content


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
