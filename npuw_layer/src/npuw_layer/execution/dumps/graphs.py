"""Static models and their submodels as IRs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from npuw_layer.execution.dumps.tensors import folder_of, indexed, reported
from npuw_layer.execution.partition.ports import Listener
from npuw_layer.options.reports import DumpOptions, selected
from npuw_layer.storage.cache.replace import replacing

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from compiler_layer.partition.parts import Part
    from npuw_layer.execution.partition.container import Call


class GraphDumps(Listener):
    """Listener that writes IRs while models are compiled.

    Args:
        options: the graphs to write, and the folder.
    """

    def __init__(self, options: DumpOptions) -> None:
        self._options = options

    def whole(self, submodel: str, model: Model) -> None:
        """Write a static model (NPUW_DUMP_FULL), its states as inputs and outputs.

        Ports replace states because OpenVINO cannot compile a model that assigns a smaller tensor
        to a variable than it reads, as models with new rows do.

        Raises:
            NpuwFault: a file cannot be written.
            ModelError: OpenVINO lacks an op of the model.
        """
        if self._options.dump_full:
            self._write("NPUW_DUMP_FULL", submodel, model)

    def cut(self, submodel: str, parts: Sequence[Part], calls: Sequence[Call]) -> None:
        """Write submodels (NPUW_DUMP_SUBS); errors as ``whole``."""
        for number in selected(self._options.dump_subs, len(parts)):
            name = indexed(submodel, number, len(parts))
            self._write("NPUW_DUMP_SUBS", name, parts[number].model)

    def failed(self, submodel: str, parts: Sequence[Part], error: RuntimeError) -> None:
        """Write the submodels of a failed compilation, and the error; errors as ``whole``."""
        option = "NPUW_DUMP_SUBS_ON_FAIL"
        chosen = selected(self._options.dump_subs_on_fail, len(parts))
        for number in chosen:
            name = indexed(submodel, number, len(parts))
            self._write(option, f"failed_{name}", parts[number].model)
        if chosen:
            why = folder_of(option, self._options) / f"failed_{submodel}.txt"
            with reported(option, why), replacing(why) as file:
                file.write(f"{error}\n".encode())

    def _write(self, option: str, name: str, model: Model) -> None:
        from compiler_layer.pipeline import in_opset
        from compiler_layer.rewriting.state import lift_state
        from compiler_layer.writers.openvino_ir import write_ir

        path: Path = folder_of(option, self._options) / f"{name}.xml"
        with reported(option, path):
            written = in_opset(model)
            lift_state(written)  # submodels have no states at this point
            write_ir(written, path)
