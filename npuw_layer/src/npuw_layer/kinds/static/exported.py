"""Export of a compiled static model to one file: the program and its initial values.

Through NPUW, the file is a blob of NPUW; for the NPU itself, it has the format of OpenVINO's NPU
plugin, ``storage.native_blob``.
"""

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
    if not options.use_npuw:
        # Imported here: few models are exported.
        from npuw_layer.kinds.static.native_blob.exported import export_native

        export_native(compiled, file)
        return
    wanted = None if options.weightless else WantedWeights.of(programs.loaded.inputs)
    program = exported(compiled.device, options, programs.program)
    model = Exported(
        device=compiled.device,
        options=options,
        programs=list(zip(PARTS, (program, programs.values), strict=True)),
        loaded=[programs.loaded],
        weights=wanted,
        bank=compiled.bank,
        sources=compiled.sources,
    )
    write_model(STATIC, model, file)
