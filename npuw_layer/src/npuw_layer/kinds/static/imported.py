"""Import of a static model from an untrusted file."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from npuw_layer.backends.protocols import Device, ImportsMemory
from npuw_layer.errors import BlobError
from npuw_layer.kinds.static.compiled import CompiledStatic, StaticContent, StaticPrograms, assemble
from npuw_layer.kinds.static.initial_values import PARTS, unpack_values
from npuw_layer.options import Options
from npuw_layer.storage.container import STATIC
from npuw_layer.storage.model_blob.imported import BlobBytes, read_model_blob
from npuw_layer.storage.model_files import WeightSources
from npuw_layer.storage.programs import Origin
from npuw_layer.weights.stored_weights import WantedWeights

_log = logging.getLogger(__name__)

MakeDevice = Callable[[Options], Device]
"""Creates the device that options name."""


def import_static(
    opened: BlobBytes,
    read: Callable[[BlobBytes, MakeDevice], StaticContent],
    make_device: MakeDevice,
    make_npu: Callable[[Device, Options], ImportsMemory],
) -> CompiledStatic:
    """Load an exported static model.

    Args:
        opened: the blob; options of this run must not contradict its options.
        read: reads the blob's format.
        make_device: creates the device that options name.
        make_npu: returns the NPU whose memory a device uses.

    Raises:
        BlobVersionError: other versions, or another device, made the blob.
        BlobError: the blob is damaged or invalid.
        OptionError: an option contradicts the blob, or its weights are not found.
        ModelError: the available weights differ from the blob's.
        DeviceError: the device rejects the blob.
    """
    began = time.perf_counter()
    with opened.named():
        found = read(opened, make_device)
        origin = Origin(time.perf_counter() - began, imported=1)
        _log.info("%s: %s", opened.name, origin)
        return assemble(make_npu(found.device, found.options), found, origin)


def read_static(opened: BlobBytes, make_device: MakeDevice) -> StaticContent:
    """Read a file that was exported through NPUW; raises as ``import_static``."""
    found = read_model_blob(opened, STATIC, lambda _: PARTS, make_device)
    options = found.options
    if options.llm is not False:
        raise BlobError("its options are those of a language model")
    program, values = found.blob.programs[: len(PARTS)]
    loaded = found.load(PARTS[0], program)
    wanted = None if options.weightless else WantedWeights.of(loaded.inputs)
    stored = found.stored(wanted)
    found.check_files([loaded], stored)
    programs = StaticPrograms(program, values, loaded, unpack_values(values))
    return StaticContent(found.device, options, programs, WeightSources(found.files, stored))
