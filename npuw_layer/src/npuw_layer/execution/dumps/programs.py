"""Programs that dump their inputs and outputs (NPUW_DUMP_IO)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count, repeat
from pathlib import Path

from compiler_layer.partition.compiled import LITERAL_PREFIX
from npuw_layer.backends.arena import nbytes
from npuw_layer.backends.protocols import (
    Array,
    LoadedModel,
    Memory,
    Program,
    TensorInfo,
    is_seen,
)
from npuw_layer.execution.decorator import ModelDecorator
from npuw_layer.execution.devices.accuracy import tensors
from npuw_layer.execution.dumps.tensors import folder_of, indexed, write_tensors
from npuw_layer.execution.partition.model import LoadedParts
from npuw_layer.options.reports import DumpOptions, selected
from npuw_layer.tensors.names import VOCABULARY


def dumping_model(model: LoadedModel, name: str, options: DumpOptions) -> LoadedModel:
    """Wrap the chosen submodels of a static model so that they dump tensors; see ``dumped``."""
    calls = list(model.calls()) if isinstance(model, LoadedParts) else []
    places = len(calls) or 1
    chosen = selected(options.dump_io, places)
    if not chosen:
        return model
    folder = folder_of("NPUW_DUMP_IO", options)
    files = {
        number: _runs(folder / indexed(name, number, places), options.dump_io_iters)
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


def _runs(base: Path, keeps_all: bool) -> Iterator[Path]:
    """Return the common prefix of each run's file names, for all programs of a submodel."""
    if not keeps_all:
        return repeat(base)
    return map(lambda number: base.with_name(f"{base.name}_iter_{number:04}"), count())


class DumpedProgram:
    """A program that dumps its tensors, except weights; satisfies ``protocols.Program``.

    Args:
        model: the program's model.
        program: the program to run.
        files: prefix of the file names of each run.
        names: names of inputs and outputs in the files, where they differ.
    """

    def __init__(
        self,
        model: LoadedModel,
        program: Program,
        files: Iterator[Path],
        names: Mapping[str, str] | None = None,
    ) -> None:
        self._program = program
        self._files = files
        self._names = names or {}
        # Dumped graphs lack inputs that no op reads.
        read = [info for info in model.inputs if not info.name.startswith(VOCABULARY)]
        self._inputs, self._outputs = tensors(read), tensors(model.outputs)
        self._bound: dict[str, tuple[Memory, int]] = {}

    def bind(self, name: str, memory: Memory, offset: int) -> None:
        """Bind an input or output to memory; see ``protocols.Program``."""
        self._program.bind(name, memory, offset)
        if name in self._inputs or name in self._outputs:
            self._bound[name] = memory, offset

    def prepare(self) -> None:
        """Do the remaining preparations of the first run."""
        self._program.prepare()

    def run(self) -> None:
        """Execute once.

        Raises:
            RuntimeError: a tensor is not bound, or the device failed.
            NpuwFault: a file cannot be written.
        """
        base = next(self._files)
        # Before the run: the run may overwrite a state in place.
        write_tensors(base, "input", self._seen(self._inputs))
        self._program.run()
        write_tensors(base, "output", self._seen(self._outputs))

    def _seen(self, infos: Mapping[str, TensorInfo]) -> Sequence[tuple[TensorInfo, Array]]:
        """Return the host-visible tensors as bytes, without literals, which are constants."""
        found: list[tuple[TensorInfo, Array]] = []
        for own, info in infos.items():
            if own not in self._bound or own.startswith(LITERAL_PREFIX):
                continue
            memory, offset = self._bound[own]
            if is_seen(memory):
                data = memory.data[offset : offset + nbytes(info)]
                found.append((replace(info, name=self._names.get(own, own)), data))
        return found
