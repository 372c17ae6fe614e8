"""Export of a compiled LLM to one file with the programs of all stages."""

from __future__ import annotations

from typing import BinaryIO

from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.programs import blob_weights
from npuw_layer.storage.container import MODEL
from npuw_layer.storage.model_blob.checks import exported
from npuw_layer.storage.model_blob.exported import Exported, write_model


def export_llm(compiled: CompiledLLM, file: BinaryIO) -> None:
    """Write a compiled LLM to a stream.

    Raises:
        OptionError: the device's programs cannot be exported, or encryption fails.
        ModelError: the model's files have changed since compilation.
        OSError: the stream fails.
    """
    loaded, device, options = list(compiled.models.values()), compiled.device, compiled.options
    model = Exported(
        device=device,
        options=options,
        programs=[
            (stage.name, exported(device, options, program))
            for stage, program in zip(compiled.plan.stages, compiled.programs, strict=True)
        ],
        loaded=loaded,
        weights=blob_weights(compiled.plan.stages, loaded, options),
        bank=compiled.bank,
        sources=compiled.sources,
    )
    write_model(MODEL, model, file)
