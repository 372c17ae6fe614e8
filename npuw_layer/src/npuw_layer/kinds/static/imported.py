"""Import of a static model that was exported through NPUW, from an untrusted file."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from npuw_layer.backends.protocols import Device, ImportsMemory
from npuw_layer.errors import BlobError
from npuw_layer.kinds.static.compiled import CompiledStatic, StaticPrograms, assemble
from npuw_layer.kinds.static.initial_values import PARTS, unpack_values
from npuw_layer.options import Options
from npuw_layer.storage.container import STATIC
from npuw_layer.storage.model_blob.imported import BlobBytes, read_model_blob
from npuw_layer.storage.model_files import WeightSources
from npuw_layer.storage.programs import Origin
from npuw_layer.weights.stored_weights import WantedWeights

_log = logging.getLogger(__name__)


def import_static(
    opened: BlobBytes,
    make_device: Callable[[Options], Device],
    make_npu: Callable[[Device, Options], ImportsMemory],
) -> CompiledStatic:
    """Load an exported static model.

    Args:
        opened: the blob; options of this run must not contradict its options.
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
        origin = Origin(time.perf_counter() - began, imported=1)
        _log.info("%s: %s", opened.name, origin)
        npu = make_npu(found.device, options)
        sources = WeightSources(found.files, stored)
        return assemble(npu, found.device, options, programs, sources, origin)
