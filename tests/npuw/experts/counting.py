"""An NPU that counts what it runs."""

from __future__ import annotations

from collections import Counter

from compiler_layer.mixtures.ports import ROWS
from npuw_layer.adapters.compiler_layer import StaticCompiler
from npuw_layer.adapters.level_zero import LevelZeroDevice
from npuw_layer.ports import LoadedModel, Memory, Program


class CountingNpu(LevelZeroDevice):
    """Counts compilations, programs and runs, those of experts apart from all others."""

    def __init__(self) -> None:
        super().__init__(StaticCompiler(), "4000")
        self.runs: Counter[str] = Counter()
        self.made: Counter[str] = Counter()
        self.loaded: Counter[str] = Counter()

    def load(self, program: bytes | memoryview) -> LoadedModel:
        return _Counted(super().load(program), self)


class _Counted:
    def __init__(self, loaded: LoadedModel, npu: CountingNpu) -> None:
        self.inputs = loaded.inputs
        self.outputs = loaded.outputs
        self._loaded = loaded
        self._npu = npu
        names = {info.name for info in loaded.inputs}
        self._kind = "expert" if ROWS in names else "other"
        npu.loaded[self._kind] += 1

    def create_program(self) -> Program:
        self._npu.made[self._kind] += 1
        return _CountedProgram(self._loaded.create_program(), self._npu.runs, self._kind)


class _CountedProgram:
    def __init__(self, program: Program, runs: Counter[str], kind: str) -> None:
        self._program = program
        self._runs = runs
        self._kind = kind

    def bind(self, name: str, memory: Memory, offset: int) -> None:
        self._program.bind(name, memory, offset)

    def prepare(self) -> None:
        self._program.prepare()

    def run(self) -> None:
        self._runs[self._kind] += 1
        self._program.run()
