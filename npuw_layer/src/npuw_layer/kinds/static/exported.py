"""Export of a compiled static model as a blob of NPUW: the program and its initial values."""

from __future__ import annotations

from typing import BinaryIO

from npuw_layer.kinds.static.compiled import CompiledStatic
from npuw_layer.kinds.static.initial_values import PARTS
from npuw_layer.storage.container import STATIC
from npuw_layer.storage.model_blob.checks import exported
from npuw_layer.storage.model_blob.exported import Exported, write_model
from npuw_layer.weights.stored_weights import WantedWeights


def export_static(compiled: CompiledStatic, file: BinaryIO) -> None:
    """Write a compiled static model to a stream.

    Raises:
        OptionError: programs of the device cannot be exported, or encryption fails.
        ModelError: the model's files have changed since compilation.
        OSError: the stream fails.
    """
    programs, options = compiled.programs, compiled.options
    wanted = None if options.weightless else WantedWeights.of(programs.loaded.inputs)
    program = exported(compiled.device, options, programs.program)
    write_model(STATIC, content_of(compiled, program, wanted), file)


def content_of(
    compiled: CompiledStatic, program: bytes | memoryview, weights: WantedWeights | None
) -> Exported:
    """Return the content of a file; ``Exported`` describes the weights."""
    return Exported(
        device=compiled.device,
        options=compiled.options,
        programs=list(zip(PARTS, (program, compiled.programs.values), strict=True)),
        loaded=[compiled.programs.loaded],
        weights=weights,
        bank=compiled.bank,
        sources=compiled.sources,
    )
