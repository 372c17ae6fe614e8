"""Import of an LLM from a file that ``export_llm`` wrote; the file is untrusted."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from npuw_layer.backends.protocols import Device, device_of
from npuw_layer.llm.compiled import CompiledLLM, assemble
from npuw_layer.llm.imported_ports import check_ports
from npuw_layer.llm.plan.stages import plan
from npuw_layer.llm.programs import blob_weights
from npuw_layer.options import Options
from npuw_layer.storage.container import MODEL
from npuw_layer.storage.model_blob.imported import BlobBytes, read_model_blob
from npuw_layer.storage.model_files import WeightSources
from npuw_layer.storage.programs import Origin

_log = logging.getLogger(__name__)


def import_llm(opened: BlobBytes, make_device: Callable[[Options], Device]) -> CompiledLLM:
    """Load an exported LLM.

    Args:
        opened: the blob; options of this run must not contradict its options.
        make_device: returns the device that options name.

    Returns:
        The LLM; its options are the blob's, with run-time options of this run.

    Raises:
        BlobVersionError: other versions, or another device, made the blob.
        BlobError: the blob is damaged, or not an LLM's.
        OptionError: an option contradicts the blob, or its weights are not found.
        ModelError: the available weights differ from the blob's.
        DeviceError: the device rejects the blob.
    """
    began = time.perf_counter()
    with opened.named():
        found = read_model_blob(
            opened,
            MODEL,
            lambda options: [stage.name for stage in plan(options).stages],
            make_device,
        )
        options, stages = found.options, plan(found.options).stages
        programs = found.blob.programs[: len(stages)]  # weights may follow them
        loaded = [
            found.load(stage.name, program, device_of(found.device, stage.kind.value))
            for stage, program in zip(stages, programs, strict=True)
        ]
        stored = found.stored(blob_weights(stages, loaded, options))
        found.check_files(loaded, stored)
        check_ports(stages, loaded, options)
    origin = Origin(time.perf_counter() - began, imported=len(stages))
    _log.info("%s: %s", opened.name, origin)
    sources = WeightSources(found.files, stored)
    return assemble(found.device, options, loaded, programs, origin, sources)
