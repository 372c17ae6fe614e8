"""A compiled static model as one file: its program, and what its variables start as."""

from __future__ import annotations

from typing import BinaryIO

from npuw_layer.blob.container import STATIC
from npuw_layer.model_blob.exported import Exported, write_model
from npuw_layer.static.compiled import CompiledStatic
from npuw_layer.stored_weights import WantedWeights

PARTS = ("program", "initial values")
"""What they are called in the file."""


def export_static(compiled: CompiledStatic, file: BinaryIO) -> None:
    """Write a compiled static model to a stream.

    Raises:
        OptionError: its device's programs cannot be exported, or encrypting fails.
        ModelError: the model's files have changed since it was compiled.
        OSError: the stream fails.
    """
    programs, options = compiled.programs, compiled.options
    wanted = None if options.weightless else WantedWeights.of(programs.loaded.inputs)
    model = Exported(
        device=compiled.device,
        options=options,
        programs=list(zip(PARTS, (programs.program, programs.values), strict=True)),
        loaded=[programs.loaded],
        weights=wanted,
        bank=compiled.bank,
        sources=compiled.sources,
    )
    write_model(STATIC, model, file)
