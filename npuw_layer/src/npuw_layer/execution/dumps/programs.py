"""Programs that write down what goes in and out (NPUW_DUMP_IO)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

from compiler_layer.partition.compiled import LITERAL_PREFIX
from npuw_layer.backends.protocols import (
    Array,
    LoadedModel,
    Memory,
    Program,
    TensorInfo,
    is_seen,
)
from npuw_layer.execution.decorator import ModelDecorator
from npuw_layer.execution.devices.accuracy import nbytes, tensors
from npuw_layer.execution.dumps.tensors import folder_of, indexed, write_tensors
from npuw_layer.execution.partition.model import LoadedParts
from npuw_layer.options.reports import DumpOptions, selected
from npuw_layer.tensors.names import VOCABULARY


def dumping_model(model: LoadedModel, name: str, options: DumpOptions) -> LoadedModel:
    """Let the chosen submodels of a static model write down tensors; see ``dumped``."""
    calls = list(model.calls()) if isinstance(model, LoadedParts) else []
    places = len(calls) or 1
    chosen = selected(options.dump_io, places)
    if not chosen:
        return model
    folder = folder_of("NPUW_DUMP_IO", options)
    files = {
        number: _Files(folder / indexed(name, number, places), options.dump_io_iters)
        for number in chosen
    }
    if not isinstance(model, LoadedParts):
        return ModelDecorator(model, lambda program: DumpedProgram(model, program, files[0]))

    def around(number: int, program: Program) -> Program:
        if number not in files:
            return program
        call, function = calls[number]
        return DumpedProgram(function, program, files[number], call.names)

    return model.around(around)


class _Files:
    """Where the tensors of a submodel go, run by run, whoever runs it."""

    def __init__(self, base: Path, keeps_all: bool) -> None:
        self._base = base
        self._runs = count() if keeps_all else None

    def next_run(self) -> Path:
        """What the names of the next run's files begin with."""
        if self._runs is None:
            return self._base
        return self._base.with_name(f"{self._base.name}_iter_{next(self._runs):04}")


class DumpedProgram:
    """A program that writes down its tensors, weights aside; satisfies ``protocols.Program``.

    Args:
        model: whose it is.
        program: to run.
        files: where they go.
        names: what inputs and outputs are called in the files, where that is something else.
    """

    def __init__(
        self,
        model: LoadedModel,
        program: Program,
        files: _Files,
        names: Mapping[str, str] | None = None,
    ) -> None:
        self._program = program
        self._files = files
        self._names = names or {}
        # Graphs are written without what no op reads.
        read = [info for info in model.inputs if not info.name.startswith(VOCABULARY)]
        self._inputs, self._outputs = tensors(read), tensors(model.outputs)
        self._bound: dict[str, tuple[Memory, int]] = {}

    def bind(self, name: str, memory: Memory, offset: int) -> None:
        """Let an input or output lie in memory; see ``protocols.Program``."""
        self._program.bind(name, memory, offset)
        if name in self._inputs or name in self._outputs:
            self._bound[name] = memory, offset

    def prepare(self) -> None:
        """Do now what else the first run would do."""
        self._program.prepare()

    def run(self) -> None:
        """Execute once.

        Raises:
            RuntimeError: a tensor is not bound, or the device failed.
            NpuwFault: a file cannot be written.
        """
        base = self._files.next_run()
        # Before the run: a state may be written where it was read.
        write_tensors(base, "input", self._seen(self._inputs))
        self._program.run()
        write_tensors(base, "output", self._seen(self._outputs))

    def _seen(self, infos: Mapping[str, TensorInfo]) -> Sequence[tuple[TensorInfo, Array]]:
        """What the host may see of tensors, as bytes; literals are constants of the graph."""
        found: list[tuple[TensorInfo, Array]] = []
        for own, info in infos.items():
            if own not in self._bound or own.startswith(LITERAL_PREFIX):
                continue
            memory, offset = self._bound[own]
            if is_seen(memory):
                data = memory.data[offset : offset + nbytes(info)]
                found.append((replace(info, name=self._names.get(own, own)), data))
        return found
